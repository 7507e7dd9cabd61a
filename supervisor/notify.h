/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

/* Notifies the service manager that started the pool, if it wants that: when the pool is ready, how many
 * workers are, when the pool ends, and, for the watchdog, that the supervisor's loop is running.
 *
 * The protocol is sd_notify(3): one datagram of lines NAME=VALUE to the socket that $NOTIFY_SOCKET names. It
 * is implemented here because libsystemd is too much for the process that must outlive all others, and
 * because other managers use the protocol too. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/error.h"

struct notify_state {
    bool ready;    /* a request would be answered */
    bool stopping; /* the pool is ending */
    uint32_t workers_ready, workers;
};

struct notify {
    int fd; /* -1: no service manager */
    struct sockaddr_un address;
    socklen_t address_size;
    struct notify_state told;
    bool behind;       /* `told` was not sent yet, or the socket was full */
    uint64_t every_ns; /* between watchdog notifications: half of its timeout; 0: no watchdog */
    uint64_t next_ns;  /* clock_ns: the next sign of life */
};

/* Removes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID from the environment, so that no child sends
 * notifications. 0; -EINVAL, -EAFNOSUPPORT or another -errno with the variable's name. After a failure
 * nothing is sent. */
int notify_init(struct notify *notify, struct error *err);

/* Sends changes since the last call, and the watchdog notification when due. Never blocks: if the socket is
 * full, tries again at the next call. */
void notify_turn(struct notify *notify, const struct notify_state *state, uint64_t now);

/* When to call notify_turn at the latest; UINT64_MAX: only on changes. */
uint64_t notify_due(const struct notify *notify, uint64_t now);

void notify_deinit(struct notify *notify);

#endif
