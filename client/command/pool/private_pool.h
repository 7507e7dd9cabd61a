/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_POOL_PRIVATE_POOL_H
#define CLIENT_COMMAND_POOL_PRIVATE_POOL_H

/* A pool for the duration of a verb: quern-broker as a child, in a fresh temporary run directory. */

#include <sys/types.h>

#include "client/command/pool/pool.h"
#include "common/files/rundir.h"

struct private_pool {
    pid_t pid;                        /* of the broker; 0: it ended */
    int log;                          /* its output; 0: not created */
    char rundir[RUNDIR_PATH_MAX + 1]; /* "": not created */
};

/* Starts a pool with the options' model, or else the default one, and waits until it is ready. -errno with a
 * reason that includes the pool's last line; -EINTR if the user interrupted. Call private_pool_end in any
 * case. */
int private_pool_start(struct private_pool *pool, const struct pool_options *options, struct error *err);

/* Ends the broker and removes the directory. Does nothing for a zeroed pool. */
void private_pool_end(struct private_pool *pool);

#endif
