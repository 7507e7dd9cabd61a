/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_SCHEDULER_H
#define WORKER_ENGINE_SCHEDULER_H

/* Who runs, who waits, and who holds which KV blocks.
 *
 * The scheduler owns the waiting list, the slots and the blocks, and opens and closes the backend's slots. It
 * submits nothing and knows no events; what a step is made of is plan.h's. */

#include <stdbool.h>
#include <stdint.h>

#include "worker/engine/backend.h"
#include "worker/engine/blocks.h"
#include "worker/engine/sequence.h"

struct scheduler {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info info;
    uint32_t n_slots;

    struct sequence *waiting; /* utlist, in order of admission */
    uint32_t n_waiting;
    struct sequence **running; /* [n_slots], in order of seniority; ended ones too until they leave */
    uint32_t n_running;
    uint32_t *free_slots; /* [n_slots], a stack */
    struct blocks *blocks;
    uint64_t preemptions;
};

/* The backend is open and outlives the scheduler. 0 or -ENOMEM. */
int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots);

/* Frees the scheduler's own memory and every sequence in it; touches no slot of the backend. */
void scheduler_deinit(struct scheduler *scheduler);

/* Puts a sequence into the waiting list, or takes it out. */
void scheduler_enqueue(struct scheduler *scheduler, struct sequence *sequence);
void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence);

/* The waiting sequence that may start now, or NULL; it still waits. */
struct sequence *scheduler_next(struct scheduler *scheduler);

/* Gives a waiting sequence a slot. 0; -ENOMEM leaves it waiting. */
int scheduler_start(struct scheduler *scheduler, struct sequence *sequence);

/* Takes slot and blocks from a sequence that has no step in flight; it is then in no list, or, if it was
 * preempted or spoiled, in the waiting list, to be computed again from all its ids. */
void scheduler_release(struct scheduler *scheduler, struct sequence *sequence);

/* Allots blocks so that positions below `end` of a running sequence have one, and preempts its juniors for
 * them; returns how far they reach. A preempted sequence whose steps are in flight leaves when the engine
 * releases it. */
uint32_t scheduler_allot(struct scheduler *scheduler, struct sequence *sequence, uint32_t end);

#endif
