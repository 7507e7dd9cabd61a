/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_CHECK_H
#define SUPERVISOR_CHILDREN_CHECK_H

/* Finds out whether a worker and a gateway would accept new settings: a process of each program reads the
 * files that the settings name, reports, and serves no requests. The supervisor's loop runs on meanwhile. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/settings/options.h"
#include "common/error.h"

#define CHECK_SAID 2048 /* bytes; more is not read */

struct check { /* zeroed: none is in progress */
    const struct options *options;
    const char *program; /* the program that checks now; NULL: none */
    const char *gateway; /* the gateway's program, while its turn is still to come; NULL: it has come, or
                            there is none */
    int listen_fd;       /* the gateway's */
    pid_t pid;
    int fd; /* its output; -1: it has ended, or says nothing more */
    uint64_t give_up_at;
    size_t len;
    char said[CHECK_SAID];
};

/* Begins with the worker's program. `gateway` NULL: no gateway. Programs and options must outlive the check.
 * 0, or -errno with a reason. */
int check_begin(struct check *check, const char *worker, const char *gateway, int listen_fd,
                const struct options *options, uint64_t now, struct error *err);

/* Continues as far as possible. 1: still in progress; 0: the settings are good; -errno with the reason why
 * not. */
int check_turn(struct check *check, uint64_t now, struct error *err);

/* Kills the process that checks, if there is one. */
void check_stop(struct check *check);

#endif
