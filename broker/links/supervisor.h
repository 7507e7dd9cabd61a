/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_SUPERVISOR_H
#define BROKER_LINKS_SUPERVISOR_H

/* The supervisor as the broker sees it: the parent process, which starts workers, reports their ends, and
 * kills them on request. Nothing here waits. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/choose/worker.h"
#include "common/error.h"
#include "proto/board.h"
#include "proto/supervision.h"

struct supervisor_place {
    struct place_record record; /* as it was told last */
    bool expected;              /* it is what an earlier broker knew */
    bool ready_due, kill_due;   /* orders that could not be given yet, for this incarnation */
};

struct supervisor {
    int fd;           /* readable when there is news */
    bool gone;        /* it has ended, and so must we */
    uint32_t signals; /* that asked the pool to end */
    bool leave;       /* another broker is to take over from us */
    uint64_t boot;    /* of this broker */
    int rundir_fd;    /* the run directory, locked */
    int vault_fd;     /* what outlives the broker (vault.h) */
    /* The board: our own slot, and those of the workers. */
    struct board_slot *turns;
    const struct board_slot *slots[WORKER_MAX];
    /* 0: there is none. */
    uint32_t gateway_pid;
    uint32_t n;
    struct supervisor_place places[WORKER_MAX];
    bool serving_due, stop_due; /* orders that could not be given yet */
};

/* Takes the connection, and the welcome that waits there. `n`: how many places the broker expects. 0 or
 * -errno with the reason. */
int supervisor_init(struct supervisor *supervisor, int fd, uint32_t n, struct error *err);

/* An earlier broker knew of this process: if another has its place by now, it has died. */
void supervisor_expect(struct supervisor *supervisor, uint32_t index, uint32_t incarnation);

/* What has become of a place; first a death, if there was one, and then a birth. */
struct supervisor_change {
    uint32_t index;
    bool died; /* the record says why, and what comes next */
    bool born; /* a process is being made, or was */
};

/* Takes the next change. False when there is none. */
bool supervisor_take(struct supervisor *supervisor, struct supervisor_change *ret_change);

/* The broker can be reached: workers may be started. */
void supervisor_serving(struct supervisor *supervisor);

/* The worker on this place is ready. */
void supervisor_ready(struct supervisor *supervisor, uint32_t index);

/* Kills the worker on this place, whose death is then told like any other. */
void supervisor_kill(struct supervisor *supervisor, uint32_t index);

/* Tells all workers to end; from then on none is started. */
void supervisor_stop(struct supervisor *supervisor);

/* Shows the supervisor that the loop turns, or that the take-over makes progress. Call it every turn. */
void supervisor_turn(struct supervisor *supervisor);

/* Gives the orders that could not be given before. Every turn. */
void supervisor_flush(struct supervisor *supervisor);

/* Processes that live. */
uint32_t supervisor_alive(const struct supervisor *supervisor);

/* True when every place failed for good. */
bool supervisor_all_failed(const struct supervisor *supervisor);

/* True when every place failed because the pool's settings name what there is not. */
bool supervisor_all_unfit(const struct supervisor *supervisor);

/* A consistent copy of a place's slot of the board; zeros when it cannot be read. */
void supervisor_snapshot(const struct supervisor *supervisor, uint32_t index,
                         struct board_snapshot *ret_snapshot, uint64_t *ret_steps);

/* The connection stays, and says by its end that we have ended. */
void supervisor_deinit(struct supervisor *supervisor);

#endif
