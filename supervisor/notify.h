/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_NOTIFY_H
#define SUPERVISOR_NOTIFY_H

/* What the service manager is told that started the pool, if it wants to be told: that the pool is ready, how
 * many workers are, that it ends, and, for its watchdog, that the supervisor's loop still turns.
 *
 * The protocol is that of sd_notify(3): one datagram of lines NAME=VALUE to the socket that $NOTIFY_SOCKET
 * names. It is here in full, because that is less than libsystemd brings into the one process that must
 * outlive all others, and because managers other than systemd speak it too. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/error.h"

struct notify_state {
    bool ready;    /* a request would be answered */
    bool stopping; /* the pool was told to end */
    uint32_t workers_ready, workers;
};

struct notify {
    int fd; /* -1: nobody wants to be told */
    struct sockaddr_un address;
    socklen_t address_size;
    struct notify_state told;
    bool behind;       /* `told` is not what the manager knows: it was not told yet, or its socket was full */
    uint64_t every_ns; /* between signs of life: half of what the watchdog allows; 0: there is none */
    uint64_t next_ns;  /* clock_ns: the next sign of life */
};

/* Takes NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID out of the environment, so that no child speaks for us.
 * 0; -EINVAL, -EAFNOSUPPORT or another -errno with the variable's name. A notify that failed is as one that
 * nobody wants. */
int notify_init(struct notify *notify, struct error *err);

/* Tells what has changed since it was told last, and gives a sign of life when one is due. Never waits: what
 * the manager has no room for is told at the next call. */
void notify_turn(struct notify *notify, const struct notify_state *state, uint64_t now);

/* When notify_turn wants to be called at the latest; UINT64_MAX: only when something changes. */
uint64_t notify_due(const struct notify *notify, uint64_t now);

void notify_deinit(struct notify *notify);

#endif
