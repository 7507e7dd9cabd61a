/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_VAULT_H
#define BROKER_BOOKS_VAULT_H

/* Memory that outlives the broker: blocks in a segment that the supervisor holds. The next broker finds every
 * kept block as it was when this one died, and no others.
 *
 * A block is handed out, filled, and then kept by a single store, so half a block is never found. Later
 * changes are up to its owner. Blocks never move. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Of a block. Sizes are powers of two, and from 4 KiB on 5, 6 and 7 eighths of them too. */
#define VAULT_LEAST_BYTES ((size_t)512)
#define VAULT_MOST_BYTES  ((size_t)64 << 20)
#define VAULT_STEP_BYTES  ((size_t)16 << 20) /* a vault has a multiple of these */

struct vault;

/* Makes an empty segment for blocks of `bytes` in all. Its descriptor is close-on-exec. 0 or -errno. */
int vault_create(size_t bytes, int *ret_fd);

/* Maps a segment, new or as an earlier process left it, and returns memory to the system that no block uses.
 * The descriptor stays open and the caller's. A segment with impossible marks is emptied. 0 or -errno with
 * the reason; -EINVAL: not a vault. */
int vault_open(int fd, struct vault **ret_vault, struct error *err);

/* Whether it was emptied when it was opened. */
bool vault_was_damaged(const struct vault *vault);

/* Leaves the blocks as they are. Takes NULL; returns NULL. */
struct vault *vault_close(struct vault *vault);

/* A block of *ret_size ≥ `size` bytes with undefined content. NULL: the vault or the machine is full. */
void *vault_take(struct vault *vault, size_t size, size_t *ret_size);

/* From now on the next process finds the block, with what was written before this call. */
void vault_keep(struct vault *vault, void *block);

/* Gives back what is beyond the first `size` bytes of a block. Returns what may still be used. */
size_t vault_shrink(struct vault *vault, void *block, size_t size);

/* Gives the block back; it will not be found. */
void vault_give(struct vault *vault, void *block);

/* The next kept block by address; of NULL the first. NULL: there is none. */
void *vault_next(const struct vault *vault, const void *block, size_t *ret_size);

/* Returns memory to the system that no block uses. */
void vault_trim(struct vault *vault);

/* Bytes for blocks in all. */
size_t vault_bytes(const struct vault *vault);

/* Bytes in blocks that are handed out. */
size_t vault_used(const struct vault *vault);

#endif
