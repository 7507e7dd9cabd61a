/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_SUPERVISOR_H
#define SUPERVISOR_SUPERVISOR_H

/* The supervisor's state, shared by its parts: the loop (supervise.c), the broker (broker_child.c) and the
 * requests of peers (changes.c). */

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/board.h"
#include "supervisor/boot.h"
#include "supervisor/children/check.h"
#include "supervisor/children/gateway.h"
#include "supervisor/control.h"
#include "supervisor/member.h"
#include "supervisor/notify.h"
#include "supervisor/places.h"
#include "supervisor/reload.h"

enum broker_change {
    BROKER_KEPT,
    BROKER_LEAVING, /* it was told to leave, so that the next one can take over */
    BROKER_ON_TRIAL /* the next one has started and does not serve yet */
};

struct supervision {
    struct options *options;
    char program[PATH_MAX]; /* quern-broker */
    int signal_fd, lock_fd;
    int vault_fd; /* the shared memory that each broker leaves to the next */
    int turns_fd; /* the broker's slot of the board, mapped at: */
    struct board_slot *turns;
    uint64_t now, began_ns;
    struct places places;
    struct gateway_child gateway;
    bool serving; /* a broker has served: workers may be started */

    pid_t broker;      /* 0: none */
    int link;          /* to the broker; -1: none */
    bool welcomed;     /* NEWS_WELCOME was sent */
    uint64_t start_at; /* clock_ns of the next start, while there is no broker */
    struct restart restart;
    struct stall stall;
    bool stalled; /* it was killed because its loop had stopped */
    enum broker_change change;
    bool leave_told;
    pid_t gateway_told; /* the gateway's process as sent to the broker, which assumes 0 at first */
    uint64_t change_by; /* BROKER_LEAVING: when it is killed */
    bool use_own;       /* the program at the path does not start: use this process's own program */

    struct control control;
    struct reload reload;
    int argc; /* the pool's command line, which is read again for new settings */
    char **argv;
    uint32_t most_journal; /* MiB of journal that the vault has room for */
    struct options next;   /* settings that are being checked */
    struct check check;
    bool changes;          /* the reload in progress changes settings */
    struct options before; /* the settings to restore if it fails */
    struct notify notify;  /* the service manager, if one started the pool */
    struct notify_state manager_told;
    struct member member; /* its file in the folder of a fleet */

    uint32_t signals; /* how many told the pool to end */
    bool signals_told;
    uint64_t leave_at; /* when a broker that was told to end at once is killed; 0: it was not told */
    bool failed;       /* it was told because the gateway failed, not by a signal */
    struct boot boot;
    bool boot_is_new; /* no broker has received it yet */
    uint64_t next_tick;
    bool ended; /* the pool has ended, with this: */
    int status; /* exit status, or -errno */
};

/* Ends the pool with an exit status or -errno, once the loop sees it. */
static inline void supervisor_end(struct supervision *self, int status)
{
    self->ended = true;
    self->status = status;
}

#endif
