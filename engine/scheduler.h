/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SCHEDULER_H
#define ENGINE_SCHEDULER_H

/* Decides which sequences run, which wait, and which hold which KV blocks.
 *
 * The scheduler owns the waiting list, the slots and the blocks, and opens and closes the backend's slots. It
 * submits no steps (plan.h builds them) and delivers no events. */

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
    uint32_t n_new;        /* how many of them have not run before, here or elsewhere */
    struct sequence *held; /* utlist: sequences that wait for credit, in no order */
    uint32_t n_held;
    struct sequence **running; /* [n_slots], in order of seniority; ended ones stay in it until they leave */
    uint32_t n_running;
    uint32_t *free_slots; /* [n_slots], a stack */
    struct blocks *blocks[BACKEND_MOST_GROUPS];
    struct blocks *snapshots;      /* NULL: the model has no states */
    struct prefix *prefix;         /* all blocks are taken and given back through it */
    struct tier *tier;             /* the second tier of `prefix`; NULL: none. Not owned */
    struct scheduler_look {        /* at the waiting sequence that did not fit the last time */
        uint64_t arrival, changes; /* of the cache: nodes and snapshots added so far */
        uint32_t available[BACKEND_MOST_GROUPS], n_running;
    } refused;
    const struct engine_observer *observer; /* gets lost slots; NULL: none */
    uint64_t preemptions;
    uint64_t cache_hits;        /* ids that needed no prefill */
    uint64_t drafted, accepted; /* draft ids that were verified, and those that were right */
};

/* The backend is open and outlives the scheduler; the prefix cache keeps at most `most_cached` blocks of each
 * group. 0 or -ENOMEM. */
int scheduler_init(struct scheduler *scheduler, const struct backend_ops *ops, struct backend *backend,
                   uint32_t n_slots, uint32_t most_cached);

/* Frees the scheduler's own memory and every sequence in it; touches no slot of the backend. */
void scheduler_deinit(struct scheduler *scheduler);

/* Takes ownership of a new sequence and adds it to the waiting or the held list; it shares prefixes with
 * sequences of the same salt, unless it is uncached. */
void scheduler_add(struct scheduler *scheduler, struct sequence *sequence, struct bytes salt);

/* Removes a sequence from the waiting or the held list. */
void scheduler_dequeue(struct scheduler *scheduler, struct sequence *sequence);

/* The sequence, which may be in any list, has got credit; if it was held, it now waits for a slot. */
void scheduler_credited(struct scheduler *scheduler, struct sequence *sequence);

/* Frees a sequence that is in no list. */
void scheduler_forget(struct scheduler *scheduler, struct sequence *sequence);

/* The waiting sequence that may start now, and how many of its blocks are already filled; or NULL. It stays
 * in the waiting list. A sequence whose next block a running prompt is computing waits for that block instead
 * of computing it again, and lets others go first. */
struct sequence *scheduler_next(struct scheduler *scheduler, uint32_t *ret_filled);

/* Gives the sequence that scheduler_next has just returned a slot, the blocks reported as filled, and a copy
 * of the part of the next block that the cache has. 0; -ENOMEM leaves it waiting. */
int scheduler_start(struct scheduler *scheduler, struct sequence *sequence, uint32_t n_filled);

/* Offers the prefix cache the blocks that have become final, and the prompt's last block once its ids in it
 * are, and gives back those that have slid out of their group's window. There may be one after each token, so
 * the check is inline. */
void scheduler_offer_blocks(struct scheduler *scheduler, struct sequence *sequence);
static inline void scheduler_offer(struct scheduler *scheduler, struct sequence *sequence)
{
    if (sequence->n_final >= sequence->offer_at)
        scheduler_offer_blocks(scheduler, sequence);
}

/* Takes slot and blocks from a sequence that has no step in flight. It is in no list afterwards; if it was
 * preempted or spoiled, it is in the waiting list, to be computed again from all its ids. */
void scheduler_release(struct scheduler *scheduler, struct sequence *sequence);

/* Allots blocks of each group so that positions below `end` of a running sequence have one, preempting its
 * juniors if necessary; returns how far the blocks reach. A preempted sequence with steps in flight leaves
 * when the engine releases it. */
uint32_t scheduler_allot(struct scheduler *scheduler, struct sequence *sequence, uint32_t end);

/* Takes a snapshot for the state that the sequence will have at a block border that its next set reaches.
 * False: none is available, or none would be useful. */
bool scheduler_take_snapshot(struct scheduler *scheduler, struct sequence *sequence, uint32_t border,
                             uint32_t *ret_snapshot);

/* Most positions of a sequence that runs alone, limited by the blocks of every group. A group with a window
 * sets no limit if it has the blocks that one sequence holds. */
uint32_t scheduler_most_positions(const struct scheduler *scheduler);

#endif
