/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

/* The socket for requests of the pool's owner (proto/control.h), and the peers that follow their progress.
 * Nothing here waits: a peer that does not read misses reports, and affects no other. */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/control.h"

#define CONTROL_PEERS 8

struct control_peer {
    int fd;                 /* -1: none */
    uint64_t order;         /* of its connection */
    bool follows;           /* its request was taken, and it gets reports */
    enum control_kind kind; /* of its request */
    uint32_t number;
};

struct control {
    int fd;    /* the listener; -1: not open */
    bool deaf; /* out of descriptors: connections are checked at the next turn instead of polled */
    uint64_t came;
    struct control_peer peers[CONTROL_PEERS];
};

/* Listens in the run directory, which is locked, so an existing socket belongs to a killed pool. 0 or -errno
 * with the reason. */
int control_open(struct control *control, const char *rundir, struct error *err);

/* `rundir_fd`: the run directory, which may have been moved. Does nothing if the socket is not open. */
void control_close(struct control *control, int rundir_fd);

/* Adds descriptors to poll, at most CONTROL_PEERS + 1; returns how many. */
nfds_t control_poll(const struct control *control, struct pollfd *ret_items);

/* Accepts peers and reads requests, rejecting malformed ones. True if there is a request: answer *ret_peer
 * with control_follow or control_refuse. */
bool control_take(struct control *control, struct control_peer **ret_peer);

void control_follow(struct control_peer *peer);
void control_refuse(struct control_peer *peer, const char *text);

/* Sends a report to all followers; a final one closes their connections. */
void control_report(struct control *control, enum control_result result, const char *text);

#endif
