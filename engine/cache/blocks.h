/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_BLOCKS_H
#define ENGINE_CACHE_BLOCKS_H

/* Reference counts of KV blocks, by number; the contents of a block belong to the backend.
 *
 * A block is free or has one or more holders. Misuse (a reference to a free block, an unref too many) is a
 * programming error and aborts, because two sequences could otherwise write into one block. */

#include <stdbool.h>
#include <stdint.h>

struct blocks;

/* Blocks 0 … n − 1, all free. 0 or -ENOMEM. */
int blocks_new(uint32_t n, struct blocks **ret_blocks);
struct blocks *blocks_free(struct blocks *blocks);

/* Takes `n` free blocks with one holder each, or none: false if there are fewer. */
bool blocks_alloc(struct blocks *blocks, uint32_t n, uint32_t *ret_ids);

/* Adds or removes one holder of each of the `n` blocks; a block without holders is free. */
void blocks_ref(struct blocks *blocks, const uint32_t *ids, uint32_t n);
void blocks_unref(struct blocks *blocks, const uint32_t *ids, uint32_t n);

uint32_t blocks_total(const struct blocks *blocks);
uint32_t blocks_available(const struct blocks *blocks);
uint32_t blocks_holders(const struct blocks *blocks, uint32_t id);

#endif
