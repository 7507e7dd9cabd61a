/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_GATEWAY_H
#define SUPERVISOR_GATEWAY_H

/* The gateway of a pool that was asked to serve HTTP: a process that is kept running. It is a client of the
 * pool like any other, so whatever becomes of it, or of the broker, does not concern the other. */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/options.h"
#include "supervisor/restart.h"

struct gateway_child {
    const struct options *options;
    char program[PATH_MAX];
    pid_t pid;         /* 0: none */
    uint64_t start_at; /* clock_ns, while there is none; UINT64_MAX: not at all */
    struct restart restart;
};

/* Looks for the program, if HTTP is wanted. 0; -ENOENT when it is not there. The options outlive the child.
 */
int gateway_child_init(struct gateway_child *child, const struct options *options, struct error *err);

/* When it is to be started; UINT64_MAX: not while it runs, or not at all. */
uint64_t gateway_child_due(const struct gateway_child *child);

/* Starts it if that is due. */
void gateway_child_start(struct gateway_child *child, uint64_t now);

/* Takes its end, if it has: one by a signal starts it again. False: it ended by itself, which it does when
 * what it was told cannot be done, and has said why. */
bool gateway_child_reap(struct gateway_child *child, uint64_t now);

/* Sends it the signal; it is not started any more. */
void gateway_child_stop(struct gateway_child *child, int signal);

/* Ends it, waiting a moment for its last answers. */
void gateway_child_end(struct gateway_child *child);

#endif
