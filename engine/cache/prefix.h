/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_PREFIX_H
#define ENGINE_CACHE_PREFIX_H

/* The prefix cache: KV blocks, found by their own ids and all ids before those.
 *
 * It is a tree. A node stands for 32 ids; its key is its parent, the node before it, and those ids. The
 * parent of a first node is a *space*, which stands for the request's salt. A look-up hashes the key and
 * compares parent and ids, so a collision makes no hit. A node has a block of group 0, whose number
 * identifies it, and one of each other group (backend.h) until another sequence needs that block.
 *
 * The cache holds each of these blocks (blocks.h), in addition to the sequences that use it. A block that
 * only the cache holds is *idle* and may be evicted when blocks of its group run out, the longest idle first.
 * If a block of group 0 is evicted, so is its node with all other blocks, and its descendants are no longer
 * found, even after another node gets the same number. Without windows, a sequence that holds a block holds
 * all before it and releases them from the last to the first, so descendants are evicted first. A block of
 * another group is evicted alone.
 *
 * A hit is the longest path of nodes, shortened to where each group with a window has all blocks that the
 * next row sees. The sequence holds these and needs no earlier ones. So a prefix shared by many requests
 * keeps the blocks of its last window in use, and a conversation keeps those at its end. A sequence that
 * computes a node again because a block is missing gives that block to the node (prefix_insert).
 *
 * In a model with recurrent layers (backend.h) some nodes also have a snapshot of the state after their ids,
 * and a hit ends at such a node. Snapshots have a separate budget; one is evicted with its node, or alone,
 * the longest idle first.
 *
 * A *tail* is a node with fewer than 32 ids: the last block of a prompt, or of a sequence that ended. It has
 * no descendants. The holder of its block may continue writing after those ids; others only copy from it.
 * Tails, and nodes passed to prefix_share, are also found by only the first of their ids
 * (prefix_find_common). A client that sees how much was found could use this to guess another client's prompt
 * id by id; so in a space that strangers share, a match must end where a prompt or a sequence ended.
 *
 * All memory is allocated at the start. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "engine/backend/backend.h"
#include "engine/cache/blocks.h"

struct prefix;

struct prefix_counts {
    uint32_t cached, idle;      /* current nodes; unused ones among them */
    uint64_t inserted, evicted; /* nodes, so far; a tail that becomes whole is not counted again */
    uint64_t completed;         /* nodes that got a lost block back, so far */
    uint32_t snapshots;         /* that nodes have now */
    uint64_t snapshots_given, snapshots_evicted; /* so far */
};

/* A cache for all blocks of the groups, blocks[n_groups], which must outlive it; it keeps at most `most`
 * nodes. 0 or -ENOMEM. */
int prefix_new(const struct backend_group *groups, uint32_t n_groups, struct blocks *const *blocks,
               uint32_t most, struct prefix **ret_prefix);
struct prefix *prefix_free(struct prefix *prefix);

/* From now on a hit must end with a snapshot; `snapshots` counts the references to their numbers, and must
 * outlive the cache. Call it before anything is kept. 0 or -ENOMEM. */
int prefix_use_snapshots(struct prefix *prefix, struct blocks *snapshots);

/* The space of a salt. It exists from the first prefix_enter until as many calls of prefix_leave, and as long
 * as it has nodes. Returns 0, a space in which nothing is found, if memory is short or the cache keeps no
 * blocks. */
uint64_t prefix_enter(struct prefix *prefix, struct bytes salt);
void prefix_leave(struct prefix *prefix, uint64_t space);

/* The salt of a space, borrowed as long as the space is in use. */
struct bytes prefix_salt(const struct prefix *prefix, uint64_t space);

/* How many nodes of the ids, up to `most`, are a hit. Writes their blocks to tables[group][…]: all of group
 * 0, and of others those from backend_first_block on. The caller must hold them before any other call.
 * *ret_place: the place of the last node; the space if there is none. */
uint32_t prefix_find(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                     uint32_t *const *tables, uint64_t *ret_place);

/* The same; *ret_reach: how many nodes the hit would have if all of them had snapshots. */
uint32_t prefix_find_reaching(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                              uint32_t *const *tables, uint64_t *ret_place, uint32_t *ret_reach);

/* A number for a new snapshot; evicts an idle one if none is free. False: all are being taken. The caller
 * owns it until it gives it to a node or returns it. */
bool prefix_take_snapshot(struct prefix *prefix, uint32_t *ret_snapshot);
void prefix_return_snapshot(struct prefix *prefix, uint32_t snapshot);

/* Gives the node at a place a snapshot of the state after its ids. False: it has one already, or was evicted;
 * the snapshot is then returned. */
bool prefix_give_snapshot(struct prefix *prefix, uint64_t place, uint32_t snapshot);

/* The snapshot of the node at a place, which counts as used now; false if it has none. */
bool prefix_snapshot_at(struct prefix *prefix, uint64_t place, uint32_t *ret_snapshot);

/* Drops the node's snapshot. */
void prefix_drop_snapshot(struct prefix *prefix, uint64_t place);

/* Keeps blocks[n_groups], which have their final contents for the 32 ids after *place, as a node there. True:
 * the node is new. *place becomes the node's place. An existing node gets the blocks that it has lost, and
 * later nodes become its descendants. *place 0: no node was kept, because the one before was evicted or the
 * cache is full of nodes in use; later ones are not kept either. */
bool prefix_insert(struct prefix *prefix, uint64_t *place, const int32_t *ids, const uint32_t *blocks);

/* Keeps blocks[n_groups], which have their final contents for the n < 32 ids after a place, as a tail there.
 * If a tail already has these blocks, the ids replace its own; prefix_insert at the same place makes it a
 * whole node. Not kept if another node begins with these ids (`ends_only`: and something ended with them),
 * which then counts as used, or if there is no room, as above. Not for models with states. */
void prefix_insert_tail(struct prefix *prefix, uint64_t place, const int32_t *ids, uint32_t n, bool ends_only,
                        const uint32_t *blocks);

/* From now on prefix_find_common also finds the whole node at a place. `ends`: a prompt ends with it. */
void prefix_share(struct prefix *prefix, uint64_t place, bool ends);

/* The length of the longest beginning that the n < 32 ids after a place share with a node there; writes that
 * node's block of each group. `ends_only`: only up to where a prompt or a sequence ended, or all n if one
 * ended after n + 1. 0: none, or the node has lost a block. The caller must hold them before any other
 * call. */
uint32_t prefix_find_common(const struct prefix *prefix, uint64_t place, const int32_t *ids, uint32_t n,
                            bool ends_only, uint32_t *ret_blocks);

/* The block of group 0 that identifies the node at a place; false for a space, and for 0. */
bool prefix_node_at(uint64_t place, uint32_t *ret_block);

/* The place of a kept node, by its block of group 0. */
uint64_t prefix_place_of(const struct prefix *prefix, uint32_t node);

/* A node's block of another group, which it must not have lost; `node` is its block of group 0. */
uint32_t prefix_block_of(const struct prefix *prefix, uint32_t node, uint32_t group);

/* Blocks of a group that are free or idle, and so can be allocated. */
uint32_t prefix_available(const struct prefix *prefix, uint32_t group);

/* As blocks_alloc, but evicts idle blocks if too few are free. */
bool prefix_alloc(struct prefix *prefix, uint32_t group, uint32_t n, uint32_t *ret_ids);

/* Evicts all idle blocks, with their nodes and snapshots. Returns how many were of group 0. */
uint32_t prefix_drop_idle(struct prefix *prefix);

/* A sequence holds blocks that were found, or releases blocks of its table. */
void prefix_hold(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);
void prefix_release(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);

/* How many of these blocks are idle. */
uint32_t prefix_idle(const struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n);

struct prefix_counts prefix_counts(const struct prefix *prefix);

#endif
