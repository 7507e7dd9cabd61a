/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_GATEWAY_H
#define TESTS_INTEGRATION_HOSTILE_GATEWAY_H

/* A real quern-gateway in front of a pool, with two keys, as a child of this process. */

#include <stdbool.h>
#include <sys/types.h>

#include "tests/integration/support/pool.h"

/* The keys, named after their owners. */
#define GATEWAY_GOOD_KEY    "good-0123456789abcdef0123456789abcdef"
#define GATEWAY_HOSTILE_KEY "mallory-0123456789abcdef0123456789abcd"

struct gateway_process {
    pid_t pid; /* 0: none runs */
    int port;
    char keys[RUNDIR_PATH_MAX + 32], log[RUNDIR_PATH_MAX + 32]; /* files */
};

/* Starts a gateway and waits until it serves. False after a minute, with its log on stderr. */
bool gateway_start(struct gateway_process *gateway, const struct pool *pool);

bool gateway_runs(const struct gateway_process *gateway);

/* How many lines of its log contain this text. */
unsigned gateway_says(const struct gateway_process *gateway, const char *text);

/* The end of its log, for a failure's message; valid until the next call. */
const char *gateway_log(const struct gateway_process *gateway);

/* Tells it to end. Returns its status, 128 + the signal that ended it, or -1 if it had to be killed. */
int gateway_end(struct gateway_process *gateway, int timeout_s);

/* Removes its files. */
void gateway_forget(struct gateway_process *gateway);

#endif
