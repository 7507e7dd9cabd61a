/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_SCHEDULER_H
#define WORKER_ENGINE_SCHEDULER_H

/* Who runs, who waits, and what a step is made of.
 *
 * The scheduler owns the waiting list, the slots and the KV blocks, and opens and closes the backend's slots.
 * It submits nothing and knows no events: the engine asks it for a plan, submits that, and tells it what came
 * of it. */

#include <stdbool.h>
#include <stdint.h>

#include "worker/engine/backend.h"
#include "worker/engine/blocks.h"
#include "worker/engine/sequence.h"

struct plan { /* a step, and whose each of its row sets is */
    struct backend_row_set *sets;
    struct sequence **sequences;
    uint32_t n;
    uint32_t decode_rows, prefill_rows;
};

struct scheduler {
    const struct backend_ops *ops;
    struct backend *backend;
    uint32_t n_slots, max_rows;
    uint64_t step_ns; /* budget of a step while sequences decode */

    struct sequence *waiting; /* utlist, in order of admission */
    uint32_t n_waiting;
    struct sequence **running; /* [n_slots], in order of seniority; ended ones too until they leave */
    uint32_t n_running;
    uint32_t *free_slots; /* [n_slots], a stack */
    struct blocks *blocks;

    double row_ns;    /* measured: a row of prefill, 0 before the first */
    double decode_ns; /* measured: a step that only decodes */
    uint64_t preemptions;
};

/* The backend is open and outlives the scheduler. 0 or -ENOMEM. */
int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots, uint32_t step_ms);

/* Frees the scheduler's own memory and every sequence in it; touches no slot of the backend. */
void scheduler_deinit(struct scheduler *scheduler);

int plan_init(struct plan *plan, uint32_t n_slots); /* 0 or -ENOMEM */
void plan_deinit(struct plan *plan);

/* Puts a sequence into the waiting list, or takes it out. */
void scheduler_enqueue(struct scheduler *scheduler, struct sequence *sequence);
void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence);

/* The waiting sequence that may start now, or NULL; it still waits. */
struct sequence *scheduler_next(struct scheduler *scheduler);

/* Gives a waiting sequence a slot. 0; -ENOMEM leaves it waiting. */
int scheduler_start(struct scheduler *scheduler, struct sequence *sequence);

/* Takes slot and blocks from a running sequence that has no step in flight; it is then in no list. */
void scheduler_release(struct scheduler *scheduler, struct sequence *sequence);

/* Sends a running sequence back to the waiting list, to be computed again from all its ids: at once, or once
 * its steps in flight are done and the engine calls scheduler_settle. */
void scheduler_preempt(struct scheduler *scheduler, struct sequence *sequence);
void scheduler_settle(struct scheduler *scheduler, struct sequence *sequence);

/* Builds a step: the next token of every sequence that decodes, then chunks of prompts within the budget;
 * allots blocks and preempts for them. Its sequences count the step as in flight from here on. */
void scheduler_plan(struct scheduler *scheduler, struct plan *ret_plan);

/* Learns how long a step took. */
void scheduler_measure(struct scheduler *scheduler, const struct plan *plan, uint64_t ns);

#endif
