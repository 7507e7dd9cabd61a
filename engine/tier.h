/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_TIER_H
#define ENGINE_TIER_H

/* The second tier of the prefix cache: what the cache keeps is copied to the prefix store, and what it lacks
 * is looked for there.
 *
 * Copies out are queued and made a few in each step, beside the steps where the device can; a block that is
 * given up before its turn is not copied. So the store has what the cache has even if the process is killed,
 * and giving up a block costs nothing. Copies in are made before a sequence starts, a few in each step too,
 * while others run. A place of the store has the blocks of all groups, one after the other; a node that
 * lacks one is not stored. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"
#include "engine/cache/prefix.h"
#include "engine/cache/prefix_store.h"
#include "engine/sequence.h"

struct tier;

/* For the blocks of a backend, and their cache; all of it outlives the tier, and the store, whose blocks are
 * one of each group together, is the tier's from now on. 0 or -ENOMEM. */
int tier_new(const struct backend_ops *ops, struct backend *backend, struct prefix *prefix,
             struct prefix_store *store, struct tier **ret_tier);
struct tier *tier_free(struct tier *tier);

/* These blocks of a group were just allotted: what was in them is not in them any more. */
void tier_fresh(struct tier *tier, uint32_t group, const uint32_t *ids, uint32_t n);

/* The cache keeps the n-th blocks of the sequence from now on, behind the place `before`. */
void tier_offer(struct tier *tier, struct sequence *sequence, uint32_t n, uint64_t before);

/* The node at a place, with so many before it, has a snapshot that is to be kept too. */
void tier_offer_snapshot(struct tier *tier, uint64_t place, uint32_t depth);

/* Of models with states: of a waiting sequence n nodes were found that end with a snapshot, and `reach`
 * without one. Brings what the store has for it of blocks, and of a snapshot further on, below `most`. How
 * many blocks and snapshots came: if any did, the look-up is to be made again, and this asked again.
 * *ret_more: there may be more, in another step. */
uint32_t tier_restore_snapshot(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t reach,
                               uint32_t most, bool *ret_more);

/* Brings blocks of a waiting sequence, from the n-th on and below `most`, into the cache: those before were
 * just found there, and its tables and its place name them, as they do those brought. How many; *ret_more:
 * there may be others, to be asked for in another step. */
uint32_t tier_restore(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t most,
                      bool *ret_more);

/* Once a step: reads copies that are done and starts others. -errno: the device has failed. */
int tier_work(struct tier *tier, struct error *err);

/* Waits up to timeout_ms for a copy that is under way, when nothing else is to be done. -errno: the device
 * has failed. */
int tier_wait(struct tier *tier, int timeout_ms, struct error *err);

/* Whether tier_work has something left to do. */
bool tier_has_work(const struct tier *tier);

/* Blocks that were brought so far. */
uint64_t tier_restores(const struct tier *tier);

#endif
