/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_PREFIX_H
#define ENGINE_CACHE_PREFIX_H

/* The prefix cache: full KV blocks, found by their own ids and all ids before those.
 *
 * It is a tree. A node stands for 32 ids; its place is its parent, the node before it, and those ids. The
 * parent of a first node is a *space*, which stands for the request's salt. A look-up finds a place by hash
 * and compares parent and ids, so a collision makes no hit. A node has a block of group 0, whose number is
 * its name, and one of each other group (backend.h) until another sequence needs that one.
 *
 * The cache holds each of these blocks (blocks.h), beside the sequences that use it. A block that only the
 * cache holds is *idle* and may be evicted when blocks of its group run out, the longest idle first. If a
 * block of group 0 is evicted, so is its node with everything it has, and nodes behind it are no longer
 * found, not even after another node has taken the number. Where no window slides, a sequence that holds a
 * block holds all before it and returns them from the last to the first, so nodes behind are evicted first.
 * A block of another group is evicted alone.
 *
 * A hit is the longest row of nodes, shortened to where each group with a window has all blocks that the row
 * behind the hit sees. The sequence holds those; it needs none of the blocks before them. So a prefix that
 * many requests share keeps the blocks of its last window in use, and a conversation those of its end. A
 * sequence that computes a node again because a block is missing gives the node that block (prefix_insert).
 *
 * In a model with recurrent layers (backend.h) some nodes also have a snapshot of the state behind them, and
 * a hit ends at such a node. Snapshots have a budget of their own; one is evicted alone, the longest idle
 * first, or with its node.
 *
 * All memory is allocated at the start. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "engine/backend/backend.h"
#include "engine/cache/blocks.h"

struct prefix;

struct prefix_counts {
    uint32_t cached, idle;                       /* nodes, and those of them unused, now */
    uint64_t inserted, evicted;                  /* nodes, so far */
    uint64_t completed;                          /* nodes that got a block which they had lost, so far */
    uint32_t snapshots;                          /* that nodes have, now */
    uint64_t snapshots_given, snapshots_evicted; /* so far */
};

/* For all blocks of the groups, blocks[n_groups], which outlive it; at most `most` nodes are kept. 0 or
 * -ENOMEM. */
int prefix_new(const struct backend_group *groups, uint32_t n_groups, struct blocks *const *blocks,
               uint32_t most, struct prefix **ret_prefix);
struct prefix *prefix_free(struct prefix *prefix);

/* From now on a hit has to have a snapshot, of which these, as blocks, are the numbers; they outlive the
 * cache. Before anything is kept. 0 or -ENOMEM. */
int prefix_use_snapshots(struct prefix *prefix, struct blocks *snapshots);

/* The space of a salt, from the first prefix_enter until as many prefix_leave and the last of its nodes: 0
 * where there is not enough memory for it, or no block is ever kept: a space in which nothing is found. */
uint64_t prefix_enter(struct prefix *prefix, struct bytes salt);
void prefix_leave(struct prefix *prefix, uint64_t space);

/* The salt of a space, borrowed as long as the space is in use. */
struct bytes prefix_salt(const struct prefix *prefix, uint64_t space);

/* How many of the first ids' nodes, up to `most`, are a hit. Writes their blocks to tables[group][…]: all of
 * group 0, and of others those from backend_first_block on. The caller holds them before anything else
 * happens. *ret_place: that of the last node; the space when there is none. */
uint32_t prefix_find(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                     uint32_t *const *tables, uint64_t *ret_place);

/* The same, and how many nodes a hit would have if all of them had snapshots. */
uint32_t prefix_find_reaching(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                              uint32_t *const *tables, uint64_t *ret_place, uint32_t *ret_reach);

/* A number for a snapshot that is to be taken, evicting an idle one where none is free. False: all are being
 * taken. It is the caller's until it is given to a node, or back. */
bool prefix_take_snapshot(struct prefix *prefix, uint32_t *ret_snapshot);
void prefix_return_snapshot(struct prefix *prefix, uint32_t snapshot);

/* The node at a place gets the snapshot of the state behind it, unless it has one, or is gone: then it is
 * given back. True: it got it. */
bool prefix_give_snapshot(struct prefix *prefix, uint64_t place, uint32_t snapshot);

/* The snapshot of the node at a place, which is used now; false when it has none. */
bool prefix_snapshot_at(struct prefix *prefix, uint64_t place, uint32_t *ret_snapshot);

/* The node's snapshot is not wanted any more. */
void prefix_drop_snapshot(struct prefix *prefix, uint64_t place);

/* Keeps blocks[n_groups], which are filled for good with the 32 ids behind *place, as a node there. True: it
 * is new. *place becomes that of the node. Another one may be there already: it gets those of the blocks that
 * it has lost, and the next ones go behind it. 0: there is none, for the one before was evicted, or the cache
 * is full of nodes in use; nothing is kept behind it. */
bool prefix_insert(struct prefix *prefix, uint64_t *place, const int32_t *ids, const uint32_t *blocks);

/* The block of group 0 by which the node at a place is known; false for a space, and for 0. */
bool prefix_node_at(uint64_t place, uint32_t *ret_block);

/* The place of a node that is kept, by its block of group 0. */
uint64_t prefix_place_of(const struct prefix *prefix, uint32_t node);

/* The block of a group that a node has, which is known by that of group 0; it has not lost it. */
uint32_t prefix_block_of(const struct prefix *prefix, uint32_t node, uint32_t group);

/* Blocks of a group that are free or idle: what can be had. */
uint32_t prefix_available(const struct prefix *prefix, uint32_t group);

/* As blocks_alloc, evicting idle blocks where too few are free. */
bool prefix_alloc(struct prefix *prefix, uint32_t group, uint32_t n, uint32_t *ret_ids);

/* A sequence begins to hold the blocks that were found, or gives blocks of its table back. */
void prefix_hold(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);
void prefix_release(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);

/* How many idle blocks are among them. */
uint32_t prefix_idle(const struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);

struct prefix_counts prefix_counts(const struct prefix *prefix);

#endif
