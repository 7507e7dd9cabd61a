/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H

/* Who runs, who waits, and who holds which KV blocks.
 *
 * The scheduler owns the waiting list, the slots and the blocks, and opens and closes the backend's slots.
 * It submits nothing and knows no events. plan.h builds the steps. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"
#include "engine/cache/blocks.h"
#include "engine/cache/prefix.h"
#include "engine/sequence.h"
#include "engine/tier.h"

struct scheduler {
    const struct backend_ops *ops;
    struct backend *backend;
    struct backend_info info;
    uint32_t n_slots;

    struct sequence *waiting; /* utlist, in order of admission */
    uint32_t n_waiting;
    uint32_t n_new;        /* of those, how many have not run before, here or elsewhere */
    struct sequence *held; /* utlist: those that may make nothing until they get credit, in no order */
    uint32_t n_held;
    struct sequence **running; /* [n_slots], in order of seniority; ended ones too until they leave */
    uint32_t n_running;
    uint32_t *free_slots; /* [n_slots], a stack */
    struct blocks *blocks[BACKEND_MOST_GROUPS];
    struct blocks *snapshots;      /* NULL: the model's sequences have no states */
    struct prefix *prefix;         /* through which alone blocks are taken and given back */
    struct tier *tier;             /* behind it; NULL: none. Its owner's */
    struct scheduler_look {        /* at the waiting sequence that did not fit the last time */
        uint64_t arrival, changes; /* of the cache: nodes and snapshots that came, so far */
        uint32_t available[BACKEND_MOST_GROUPS], n_running;
    } refused;
    const struct engine_observer *observer; /* is told of lost slots; NULL: nobody is */
    uint64_t preemptions;
    uint64_t cache_hits;        /* ids that needed no prefill */
    uint64_t drafted, accepted; /* ids of drafts that were verified, and those that were right */
};

/* The backend is open and outlives the scheduler; the prefix cache keeps `most_cached` blocks of each group
 * at most. 0 or -ENOMEM. */
int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots, uint32_t most_cached);

/* Frees the scheduler's own memory and every sequence in it; touches no slot of the backend. */
void scheduler_deinit(struct scheduler *scheduler);

/* Takes a new sequence over, into the waiting list, or that of the held; it shares prefixes with those of the
 * same salt, unless it is uncached. */
void scheduler_add(struct scheduler *scheduler, struct sequence *sequence, struct bytes salt);

/* Takes a sequence out of the waiting list, or that of the held. */
void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence);

/* The sequence, which may be in any list, has got credit: one that was held waits for a slot now. */
void scheduler_credited(struct scheduler *scheduler, struct sequence *sequence);

/* Frees one that is in no list. */
void scheduler_forget(struct scheduler *scheduler, struct sequence *sequence);

/* The waiting sequence that may start now, and how many of its blocks are filled already; or NULL. It still
 * waits. One whose next block a running prompt is just computing waits for that, and lets others go first: it
 * takes the block then instead of computing it again. */
struct sequence *scheduler_next(struct scheduler *scheduler, uint32_t *ret_filled);

/* Gives the sequence that scheduler_next has just named a slot, the blocks that it said are filled, and a
 * copy of what the cache has of the next one. 0; -ENOMEM leaves it waiting. */
int scheduler_start(struct scheduler *scheduler, struct sequence *sequence, uint32_t n_filled);

/* Offers the prefix cache the blocks that are final by now, and the prompt's last one once its ids there are,
 * and gives back those that have slid out of their group's window. Once a token there may be one: the look is
 * inline. */
void scheduler_offer_blocks(struct scheduler *scheduler, struct sequence *sequence);
static inline void scheduler_offer(struct scheduler *scheduler, struct sequence *sequence)
{
    if (sequence->n_final >= sequence->offer_at)
        scheduler_offer_blocks(scheduler, sequence);
}

/* Takes slot and blocks from a sequence that has no step in flight; it is then in no list, or, if it was
 * preempted or spoiled, in the waiting list, to be computed again from all its ids. */
void scheduler_release(struct scheduler *scheduler, struct sequence *sequence);

/* Allots blocks of each group so that positions below `end` of a running sequence have one, and preempts its
 * juniors for them; returns how far they reach. A preempted sequence whose steps are in flight leaves when
 * the engine releases it. */
uint32_t scheduler_allot(struct scheduler *scheduler, struct sequence *sequence, uint32_t end);

/* A snapshot for the state that the sequence will have at a border of blocks, which the next set brings it
 * to. False: none can be had, or none is of use. */
bool scheduler_take_snapshot(struct scheduler *scheduler, struct sequence *sequence, uint32_t border,
                             uint32_t *ret_snapshot);

/* Most positions of a sequence that is alone: what the blocks of every group are enough for. A group with a
 * window sets no bound once it has what one sequence holds of it. */
uint32_t scheduler_most_positions(const struct scheduler *scheduler);

#endif
