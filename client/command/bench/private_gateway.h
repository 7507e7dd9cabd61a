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
    int log;                    /* its output can be read here; −1: nothing was started */
    struct sockaddr_in address; /* where it serves */
};

/* Starts one and waits until it serves the pool's model. -errno with a reason; -EINTR if the user
 * interrupted. Call private_gateway_end in any case. */
int private_gateway_start(struct private_gateway *gateway, const char *rundir, struct error *err);

/* Ends the gateway. Does nothing if it is zeroed except for the log. */
void private_gateway_end(struct private_gateway *gateway);

/* Its resident memory in bytes, with shared pages counted proportionally (PSS); 0: unknown. */
uint64_t private_gateway_memory(const struct private_gateway *gateway);

#endif
