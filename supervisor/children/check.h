/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_CHECK_H
#define SUPERVISOR_CHILDREN_CHECK_H

/* Whether a worker and a gateway would accept new settings, as processes of theirs say that read what the
 * settings name and serve nobody. The supervisor's loop goes on meanwhile. */

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "broker/settings/options.h"
#include "common/error.h"

#define CHECK_SAID 2048 /* bytes; more is not read */

struct check { /* zeroed: none is under way */
    const struct options *options;
    const char *program; /* that checks now; NULL: none */
    const char
        *gateway;  /* the gateway's, if its turn is still to come; NULL: it has come, or there is none */
    int listen_fd; /* the gateway's */
    pid_t pid;
    int fd; /* what it says; -1: it has ended, or says nothing more */
    uint64_t give_up_at;
    size_t len;
    char said[CHECK_SAID];
};

/* Begins with the worker's program. `gateway` NULL: no gateway. Programs and options outlive the check. 0, or
 * -errno with a reason. */
int check_begin(struct check *check, const char *worker, const char *gateway, int listen_fd,
                const struct options *options, uint64_t now, struct error *err);

/* Goes on as far as possible. 1: it is still under way; 0: the settings are good; -errno with the reason why
 * not. */
int check_turn(struct check *check, uint64_t now, struct error *err);

/* Kills the process that checks, if there is one. */
void check_stop(struct check *check);

#endif
