/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_LAUNCH_H
#define SUPERVISOR_CHILDREN_LAUNCH_H

/* Starting one process of the pool: a worker, the broker, or a gateway. */

#include <sys/types.h>

#include "broker/settings/options.h"
#include "common/error.h"
#include "supervisor/children/doors.h"

struct launch_plan {
    const char *program; /* path of quern-worker */
    const struct options *options;
    const char *name;
    uint32_t index; /* place in the pool, which determines its share of the cores */
    uint32_t incarnation;
    struct doors doors; /* the sockets that the broker connects to */
    int board_fd;       /* its slot of the board */
    int store_fd;       /* of the prefix store; -1: there is none */
};

/* Starts a worker in a separate process group, with default signals (but SIGPIPE ignored), its doors, its
 * slot of the board, the prefix store, and a pipe as stderr, whose non-blocking read end is returned. It gets
 * SIGTERM when this process dies. 0 or -errno with the reason. */
int launch_worker(const struct launch_plan *plan, pid_t *ret_pid, int *ret_stderr, struct error *err);

/* Starts quern-worker to count the devices that the options name (worker/count.h), in a separate process
 * group. Returns the non-blocking read end of a pipe with its output. 0 or -errno with the reason. */
int launch_count(const char *program, const struct options *options, pid_t *ret_pid, int *ret_said,
                 struct error *err);

/* The same to check the options (worker/check.h). */
int launch_worker_check(const char *program, const struct options *options, pid_t *ret_pid, int *ret_said,
                        struct error *err);

/* The same for quern-gateway, which also gets the listening socket: the clients that it may serve depend on
 * it. */
int launch_gateway_check(const char *program, const struct options *options, int listen_fd, pid_t *ret_pid,
                         int *ret_said, struct error *err);

/* Starts the broker in the caller's process group, with signals as a shell sets them. It inherits `fds`, the
 * first of which is its end of the connection to the supervisor. `began_ns`: when the pool began. 0 or -errno
 * with the reason. */
int launch_broker(const char *program, const struct options *options, uint64_t began_ns, const int *fds,
                  size_t n_fds, pid_t *ret_pid, struct error *err);

/* Starts a gateway in the caller's process group and with its stderr. It ignores Ctrl-C, which the caller
 * forwards, and gets SIGTERM when the caller dies. It inherits the listening socket and the socket for its
 * report (proto/gateway_report.h). 0 or -errno with the reason. */
int launch_gateway(const char *program, const struct options *options, int listen_fd, int report_fd,
                   pid_t *ret_pid, struct error *err);

#endif
