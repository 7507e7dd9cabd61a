/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_LAUNCH_H
#define SUPERVISOR_LAUNCH_H

/* Starting one process of the pool: a worker, the broker, or a gateway. */

#include <sys/types.h>

#include "broker/options.h"
#include "common/error.h"

struct launch_plan {
    const char *program; /* path of quern-worker */
    const struct options *options;
    const char *worker_link; /* endpoint that it shall connect to */
    const char *stream;      /* endpoint that the worker shall bind */
    const char *name;
    uint32_t index; /* place in the pool: slot on the board, and by it its share of the cores */
    uint32_t incarnation;
    int board_fd;
    int store_fd; /* of the prefix store; -1: there is none */
};

/* Starts it in a process group of its own, with default signals (but SIGPIPE ignored), the board, the prefix
 * store, and a pipe as its stderr, whose non-blocking read end is returned. It gets SIGTERM when we are gone.
 * 0 or -errno with the reason. */
int launch_worker(const struct launch_plan *plan, pid_t *ret_pid, int *ret_stderr, struct error *err);

/* Starts the broker, in our own process group, with signals as a shell gives them. It inherits `fds`, the
 * first of which is its end of the connection to us. 0 or -errno with the reason. */
int launch_broker(const char *program, const struct options *options, const int *fds, size_t n_fds,
                  pid_t *ret_pid, struct error *err);

/* Starts a gateway, in our own process group and with our stderr; it ignores a Ctrl-C, which we pass on,
 * and gets SIGTERM when we are gone. It inherits the socket that it listens on, and the one on which it says
 * whether it serves (proto/gateway_report.h). 0 or -errno with the reason. */
int launch_gateway(const char *program, const struct options *options, int listen_fd, int report_fd,
                   pid_t *ret_pid, struct error *err);

#endif
