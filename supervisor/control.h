/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CONTROL_H
#define SUPERVISOR_CONTROL_H

/* The socket on which the pool's owner asks for something (proto/control.h), and those who wait to hear what
 * becomes of it. Nothing here waits: who does not read misses reports, and nobody else. */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "proto/control.h"

#define CONTROL_PEERS 8

struct control_peer {
    int fd;                 /* -1: none */
    uint64_t order;         /* of coming */
    bool follows;           /* it asked, and is told what happens */
    enum control_kind kind; /* what it asked for */
    uint32_t number;
};

struct control {
    int fd;    /* where they connect; -1: not open */
    bool deaf; /* descriptors are wanting: who connects is looked for at the next turn, not waited for */
    uint64_t came;
    struct control_peer peers[CONTROL_PEERS];
};

/* Listens in the run directory, which is locked; what is in the way there is of a pool that was killed. 0 or
 * -errno with the reason. */
int control_open(struct control *control, const char *rundir, struct error *err);

/* `rundir_fd`: the directory, which may have been moved. A control that is not open is none. */
void control_close(struct control *control, int rundir_fd);

/* Adds what is to be waited for; at most CONTROL_PEERS + 1. Returns how many. */
nfds_t control_poll(const struct control *control, struct pollfd *ret_items);

/* Takes who came and what they ask; what cannot be understood is refused. True when one asks for something:
 * *ret_peer is to be answered, by control_follow or control_refuse. */
bool control_take(struct control *control, struct control_peer **ret_peer);

void control_follow(struct control_peer *peer);
void control_refuse(struct control_peer *peer, const char *text);

/* Tells all who follow; a last report ends their connections. */
void control_report(struct control *control, enum control_result result, const char *text);

#endif
