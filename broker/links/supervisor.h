/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_SUPERVISOR_H
#define BROKER_LINKS_SUPERVISOR_H

/* The supervisor as the broker sees it: the parent process that starts workers, reports their ends, and kills
 * them on request. Nothing here waits. */

#include <stdbool.h>
#include <stdint.h>

#include "broker/choose/worker.h"
#include "common/error.h"
#include "proto/board.h"
#include "proto/supervision.h"

struct supervisor_place {
    struct place_record record; /* as received last */
    bool expected;              /* the record is what an earlier broker knew */
    bool ready_due, kill_due;   /* orders for this incarnation that could not be sent yet */
};

struct supervisor {
    int fd;           /* readable when there is news */
    bool gone;        /* it has ended, so this process must end too */
    uint32_t signals; /* how many told the pool to end */
    bool leave;       /* another broker takes over from us */
    uint64_t boot;    /* of this broker */
    int rundir_fd;    /* the run directory, locked */
    int vault_fd;     /* the memory that outlives the broker (vault.h) */
    /* The board: our own slot, and those of the workers. */
    struct board_slot *turns;
    const struct board_slot *slots[WORKER_MAX];
    uint32_t gateway_pid; /* 0: there is none */
    uint32_t n;
    struct supervisor_place places[WORKER_MAX];
    bool serving_due, stop_due; /* orders that could not be sent yet */
};

/* Takes over the connection and reads the welcome that waits on it. `n`: the number of places that the broker
 * expects. 0 or -errno with the reason. */
int supervisor_init(struct supervisor *supervisor, int fd, uint32_t n, struct error *err);

/* An earlier broker knew this process: if the place has a different one by now, the known one has died. */
void supervisor_expect(struct supervisor *supervisor, uint32_t index, uint32_t incarnation);

/* A change of a place: the death of its process, if there was one, and then the start of another. */
struct supervisor_change {
    uint32_t index;
    bool died; /* the record says why, and what comes next */
    bool born; /* a process was created or is being created */
};

/* Takes the next change. False: there is none. */
bool supervisor_take(struct supervisor *supervisor, struct supervisor_change *ret_change);

/* The broker can be reached: workers may be started. */
void supervisor_serving(struct supervisor *supervisor);

/* The worker in this place is ready. */
void supervisor_ready(struct supervisor *supervisor, uint32_t index);

/* Kills the worker in this place; its death is reported like any other. */
void supervisor_kill(struct supervisor *supervisor, uint32_t index);

/* Tells all workers to end; from then on none is started. */
void supervisor_stop(struct supervisor *supervisor);

/* Shows the supervisor that the loop turns, or that the take-over makes progress. Call it every turn. */
void supervisor_turn(struct supervisor *supervisor);

/* Sends orders that could not be sent before. Call it every turn. */
void supervisor_flush(struct supervisor *supervisor);

/* The number of live workers' processes. */
uint32_t supervisor_alive(const struct supervisor *supervisor);

/* Whether every place has failed for good. */
bool supervisor_all_failed(const struct supervisor *supervisor);

/* Whether every place has failed because its worker rejected the pool's settings. */
bool supervisor_all_unfit(const struct supervisor *supervisor);

/* A consistent copy of a place's slot of the board; zeros if it cannot be read. */
void supervisor_snapshot(const struct supervisor *supervisor, uint32_t index,
                         struct board_snapshot *ret_snapshot, uint64_t *ret_steps);

/* Frees everything except the connection, whose end tells the supervisor that this process has ended. */
void supervisor_deinit(struct supervisor *supervisor);

#endif
