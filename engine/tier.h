/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_TIER_H
#define ENGINE_TIER_H

/* The second tier of the prefix cache: cached blocks are copied to the prefix store, and missing ones are
 * looked up there.
 *
 * Copies out are queued, and a few are made in each step, in parallel to it if the device can; a block that
 * is evicted before its turn is not copied. So the store keeps the cache's blocks even if the process is
 * killed, and evicting a block costs nothing. Copies in are made before a sequence starts, also a few in each
 * step, while other sequences run. An entry of the store has one block of each group, one after the other; a
 * node that lacks one is not stored. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"
#include "engine/cache/prefix.h"
#include "engine/cache/prefix_store.h"
#include "engine/sequence.h"

struct tier;

/* A tier for the blocks of a backend and their cache, which must outlive it. The tier takes ownership of the
 * store, whose entries hold one block of each group. 0 or -ENOMEM. */
int tier_new(const struct backend_ops *ops, struct backend *backend, struct prefix *prefix,
             struct prefix_store *store, struct tier **ret_tier);
struct tier *tier_free(struct tier *tier);

/* These blocks of a group were just allotted, or given back: their former contents are lost. */
void tier_fresh(struct tier *tier, uint32_t group, const uint32_t *ids, uint32_t n);

/* The cache now keeps the n-th blocks of the sequence, after the place `before`. */
void tier_offer(struct tier *tier, struct sequence *sequence, uint32_t n, uint64_t before);

/* The node at a place, after `depth` nodes, has a snapshot, to be stored too. */
void tier_offer_snapshot(struct tier *tier, uint64_t place, uint32_t depth);

/* For models with states. The look-up of a waiting sequence found n nodes that end with a snapshot, and
 * `reach` regardless of snapshots. Fetches blocks and a later snapshot, below `most`, from the store. Returns
 * how many blocks and snapshots were fetched: if any, repeat the look-up and this call. *ret_more: there may
 * be more, in another step. */
uint32_t tier_restore_snapshot(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t reach,
                               uint32_t most, bool *ret_more);

/* Fetches blocks of a waiting sequence, from the n-th on and below `most`, into the cache. The blocks before
 * were just found there. Updates the sequence's tables and place. Returns how many were fetched; *ret_more:
 * there may be more, in another step. */
uint32_t tier_restore(struct tier *tier, struct sequence *sequence, uint32_t n, uint32_t most,
                      bool *ret_more);

/* Call it once per step: finishes completed copies and starts others. 0 or -errno: the device has failed. */
int tier_work(struct tier *tier, struct error *err);

/* Waits up to timeout_ms for a copy under way, if there is nothing else to do. 0 or -errno: the device has
 * failed. */
int tier_wait(struct tier *tier, int timeout_ms, struct error *err);

/* Whether tier_work has something left to do. */
bool tier_has_work(const struct tier *tier);

/* The number of blocks fetched so far. */
uint64_t tier_restores(const struct tier *tier);

#endif
