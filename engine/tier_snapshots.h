/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_TIER_SNAPSHOTS_H
#define ENGINE_TIER_SNAPSHOTS_H

/* Snapshots of states in the prefix store, for the tier.
 *
 * The store has blocks of one size. A snapshot is cut into pieces of that size, stored as successors of its
 * node. In place of ids, piece i has −1 − i, which is no id of a vocabulary. Pieces may be replaced one by
 * one but are useful only together: the store has a snapshot if it has all its pieces. At most one snapshot
 * at a time is copied out, and one in. */

#include <stdbool.h>
#include <stdint.h>

#include "engine/backend/backend.h"
#include "engine/cache/prefix.h"
#include "engine/cache/prefix_store.h"

struct tier_snapshots;

/* What the tier knows about nodes. */
struct tier_nodes {
    uint64_t (*number)(const void *arg, uint32_t node); /* in the store; 0: not there, or unknown */
    const void *arg;
    bool on_the_way; /* some nodes are queued, or being copied out */
};

/* For a backend with states; one block of each group together has `piece_bytes`. All arguments must outlive
 * it. 0 or -ENOMEM. */
int tier_snapshots_new(const struct backend_ops *ops, struct backend *backend, struct prefix *prefix,
                       struct prefix_store *store, size_t piece_bytes, struct tier_snapshots **ret_snapshots);
struct tier_snapshots *tier_snapshots_free(struct tier_snapshots *snapshots);

/* The node at a place, with `depth` nodes before it, has a snapshot to be copied out once the node itself is
 * in the store. Dropped if the queue is full, or if the prefix is short: its snapshot would take more room
 * than its blocks and save little. */
void tier_snapshots_offer(struct tier_snapshots *snapshots, uint64_t place, uint32_t depth);

/* Whether the store has all pieces of the snapshot of the node with this number and `depth`. They count as
 * used by `use` (prefix_store_use). */
bool tier_snapshots_has(const struct tier_snapshots *snapshots, uint64_t number, uint32_t depth,
                        uint64_t use);

/* Fetches it for the node at a place. 1: the node has one now; 0: impossible; -EAGAIN: not now, because one
 * is being copied in. */
int tier_snapshots_bring(struct tier_snapshots *snapshots, uint64_t place, uint64_t number, uint32_t depth);

/* Waits up to timeout_ms for a copy under way. 1: there was one; 0: there is none; -errno: the device has
 * failed. */
int tier_snapshots_wait(struct tier_snapshots *snapshots, int timeout_ms, struct error *err);

/* Call it once per step. 0 or -errno: the device has failed. */
int tier_snapshots_work(struct tier_snapshots *snapshots, const struct tier_nodes *nodes, struct error *err);

bool tier_snapshots_has_work(const struct tier_snapshots *snapshots);

#endif
