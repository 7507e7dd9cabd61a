/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_VAULT_H
#define BROKER_BOOKS_VAULT_H

/* Memory that outlives the broker: blocks in a segment that the supervisor holds. The next broker finds every
 * kept block as it was when this one died, and no others.
 *
 * A block is allocated, filled, and then kept by a single store, so an incomplete block is never found. Its
 * owner must keep later changes consistent. Blocks never move. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Bounds of a block's size. Sizes are powers of two, and from 4 KiB on also 5, 6 and 7 eighths of them. */
#define VAULT_LEAST_BYTES ((size_t)512)
#define VAULT_MOST_BYTES  ((size_t)64 << 20)
#define VAULT_STEP_BYTES  ((size_t)16 << 20) /* a vault's size is a multiple of this */

struct vault;

/* Makes an empty segment for `bytes` of blocks. Its descriptor is close-on-exec. 0 or -errno. */
int vault_create(size_t bytes, int *ret_fd);

/* Maps a segment, new or as an earlier process left it, and returns unused memory to the system. The caller
 * keeps the descriptor. A segment with impossible marks is emptied. 0 or -errno with the reason; -EINVAL: not
 * a vault. */
int vault_open(int fd, struct vault **ret_vault, struct error *err);

/* Whether it was emptied when it was opened. */
bool vault_was_damaged(const struct vault *vault);

/* Unmaps the segment and leaves its blocks as they are. Takes NULL; returns NULL. */
struct vault *vault_close(struct vault *vault);

/* A block of *ret_size ≥ `size` bytes with undefined content. NULL: the vault or the machine is full. */
void *vault_take(struct vault *vault, size_t size, size_t *ret_size);

/* Keeps the block: the next process finds it, with everything written before this call. */
void vault_keep(struct vault *vault, void *block);

/* Frees what it can beyond the first `size` bytes of a block. Returns the block's new size. */
size_t vault_shrink(struct vault *vault, void *block, size_t size);

/* Frees the block; the next process does not find it. */
void vault_give(struct vault *vault, void *block);

/* The next kept block by address; the first one for NULL. NULL: there is none. */
void *vault_next(const struct vault *vault, const void *block, size_t *ret_size);

/* Returns unused memory to the system. */
void vault_trim(struct vault *vault);

/* The vault's size in bytes. */
size_t vault_bytes(const struct vault *vault);

/* Bytes of allocated blocks. */
size_t vault_used(const struct vault *vault);

#endif
