/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_PREFIX_H
#define WORKER_ENGINE_PREFIX_H

/* The prefix cache: full KV blocks, found by the ids that are in them and all ids before those.
 *
 * It is a tree. A block's place is its parent, the block before it, and its own 32 ids; a first block's
 * parent is the *space* that its request's salt stands for. A look-up finds a place by hash and compares
 * parent and ids, so that no collision makes a hit. The cache is a holder of each of its blocks (blocks.h)
 * beside the sequences that use it: one whose only holder is the cache is *idle* and may be evicted when
 * blocks run out, the longest idle first. A sequence that holds a block holds all before it, so nobody holds
 * what is behind an idle one; and a sequence gives its blocks back from the last to the first, so what is
 * behind goes first. But for those that slid out of a sequence's window: what is behind one of these is found
 * no longer when it is evicted, nor is it after another block has taken its number.
 *
 * All memory is taken when it is made. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "worker/engine/blocks.h"

struct prefix;

struct prefix_counts {
    uint32_t cached, idle;      /* blocks, now */
    uint64_t inserted, evicted; /* so far */
};

/* For all blocks of `blocks`, which outlives it; at most `most` are kept. 0 or -ENOMEM. */
int prefix_new(struct blocks *blocks, uint32_t most, struct prefix **ret_prefix);
struct prefix *prefix_free(struct prefix *prefix);

/* The space of a salt, from the first prefix_enter until as many prefix_leave and the last of its blocks: 0
 * where there is no memory for it, or no block is ever kept: a space in which nothing is found. */
uint64_t prefix_enter(struct prefix *prefix, struct bytes salt);
void prefix_leave(struct prefix *prefix, uint64_t space);

/* The salt of a space, borrowed as long as somebody is in it. */
struct bytes prefix_salt(const struct prefix *prefix, uint64_t space);

/* Writes the blocks that hold the first ids, up to `most`; returns how many. The caller holds them before
 * anything else happens. */
uint32_t prefix_find(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                     uint32_t *ret_blocks);

/* Keeps table[n], which is filled for good with ids[n · 32 …], when all before it in `table` are kept. False:
 * it is not kept, for another block has its place, one before it is not kept, or the cache is full of blocks
 * in use. */
bool prefix_insert(struct prefix *prefix, uint64_t space, const int32_t *ids, const uint32_t *table,
                   uint32_t n);

/* Blocks that are free or idle: what can be had. */
uint32_t prefix_available(const struct prefix *prefix);

/* As blocks_alloc, evicting idle blocks where too few are free. */
bool prefix_alloc(struct prefix *prefix, uint32_t n, uint32_t *ret_ids);

/* A sequence begins to hold the blocks that were found, or gives its table back. */
void prefix_hold(struct prefix *prefix, const uint32_t *ids, uint32_t n);
void prefix_release(struct prefix *prefix, const uint32_t *ids, uint32_t n);

/* How many idle blocks are among them. */
uint32_t prefix_idle(const struct prefix *prefix, const uint32_t *ids, uint32_t n);

struct prefix_counts prefix_counts(const struct prefix *prefix);

#endif
