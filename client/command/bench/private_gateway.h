/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_BENCH_PRIVATE_GATEWAY_H
#define CLIENT_COMMAND_BENCH_PRIVATE_GATEWAY_H

/* A quern-gateway for the duration of a verb: a child, for the pool of a run directory, on a free port of
 * the loopback interface. */

#include <netinet/in.h>
#include <sys/types.h>

#include "common/error.h"

struct private_gateway {
    pid_t pid;                  /* 0: it ended */
    int log;                    /* what it writes comes here; −1: nothing was started */
    struct sockaddr_in address; /* where it serves */
};

/* Starts one and waits until it serves the pool's model. -errno with a reason; -EINTR if the user
 * interrupted. Call private_gateway_end in any case. */
int private_gateway_start(struct private_gateway *gateway, const char *rundir, struct error *err);

/* A zeroed one, but for the log, is none. */
void private_gateway_end(struct private_gateway *gateway);

/* Its resident memory, what it shares with others counted in part (PSS), in bytes; 0: not known. */
uint64_t private_gateway_memory(const struct private_gateway *gateway);

#endif
