/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

/* The state of the supervising process, for its parts: the loop (supervise.c), the broker (broker_child.c)
 * and what peers ask for (changes.c). */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/board.h"
#include "supervisor/boot.h"
#include "supervisor/children/gateway.h"
#include "supervisor/control.h"
#include "supervisor/notify.h"
#include "supervisor/places.h"
#include "supervisor/reload.h"

enum broker_change {
    BROKER_KEPT,
    BROKER_LEAVING, /* it is told to, for the next one */
    BROKER_ON_TRIAL /* the next one, until it serves */
};

struct supervision {
    struct options *options;
    char program[PATH_MAX]; /* quern-broker */
    int signal_fd, lock_fd;
    int vault_fd; /* what a broker leaves to the next */
    int turns_fd; /* the broker's slot of the board: */
    struct board_slot *turns;
    uint64_t now;
    struct places places;
    struct gateway_child gateway;
    bool serving; /* some broker could be reached: workers may be started */

    pid_t broker;      /* 0: none */
    int link;          /* to the broker; -1: none */
    bool welcomed;     /* it was told who we are */
    uint64_t start_at; /* clock_ns, while there is none */
    struct restart restart;
    struct stall stall;
    bool stalled; /* killed by us, for that */
    enum broker_change change;
    bool leave_told;
    pid_t gateway_told; /* to the broker; 0 is what it takes for granted */
    uint64_t change_by; /* BROKER_LEAVING: when it is killed instead */
    bool use_own;       /* the program at the path does not start: this process's own is used as the broker */

    struct control control;
    struct reload reload;
    int argc; /* our own line, which is read again for other settings */
    char **argv;
    uint32_t most_journal; /* what the shared memory for requests has room for */
    bool changes;          /* the reload under way is to other settings: */
    struct options before; /* those that are put back if it fails */
    struct notify notify;  /* the service manager, if one started us */
    struct notify_state manager_told;

    uint32_t signals; /* that asked us to end */
    bool signals_told;
    uint64_t leave_at; /* when a broker that was told to end at once is killed; 0: it was not */
    bool failed;       /* and it was told so for want of a gateway, not by a signal */
    struct boot boot;
    bool boot_is_new; /* no broker was told of it */
    uint64_t next_tick;
    bool ended; /* the pool has: */
    int status; /* exit status, or -errno */
};

/* Ends the pool with an exit status or -errno, once the loop sees it. */
static inline void supervisor_end(struct supervision *self, int status)
{
    self->ended = true;
    self->status = status;
}

#endif
