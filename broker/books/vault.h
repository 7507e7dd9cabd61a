/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_VAULT_H
#define BROKER_BOOKS_VAULT_H

/* Memory that outlives the broker: blocks in a segment that the supervisor holds. The next broker finds every
 * block that was kept, as it was when this one died, and nothing of those that were not.
 *
 * A block is handed out, filled, and then kept, which is one store: there is no moment at which a half of it
 * could be found. What its owner changes in it later is the owner's care. Blocks are never moved. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

/* Of a block. Sizes are powers of two, and from 4 KiB on 5, 6 and 7 eighths of them too. */
#define VAULT_LEAST_BYTES ((size_t)512)
#define VAULT_MOST_BYTES  ((size_t)16 << 20) /* and of a vault a multiple of this */

struct vault;

/* Makes an empty segment for blocks of `bytes` in all. Its descriptor is close-on-exec. 0 or -errno. */
int vault_create(size_t bytes, int *ret_fd);

/* Maps a segment, as it was made or as an earlier process left it, and gives memory back that no block of it
 * uses. The descriptor stays with the caller, and open. One that says of blocks what cannot be is emptied. 0
 * or -errno with the reason; -EINVAL when it is no vault. */
int vault_open(int fd, struct vault **ret_vault, struct error *err);

/* Whether it was emptied when it was opened. */
bool vault_was_damaged(const struct vault *vault);

/* Leaves the blocks as they are. Takes NULL; returns NULL. */
struct vault *vault_close(struct vault *vault);

/* A block of at least `size` bytes, of which *ret_size may be used; its content is whatever was there. NULL:
 * the vault is full, or the machine. */
void *vault_take(struct vault *vault, size_t size, size_t *ret_size);

/* From now on the block will be found. What was written to it before is in it. */
void vault_keep(struct vault *vault, void *block);

/* Gives back what is beyond the first `size` bytes of a block. Returns what may still be used. */
size_t vault_shrink(struct vault *vault, void *block, size_t size);

/* Gives the block back; it will not be found. */
void vault_give(struct vault *vault, void *block);

/* The first kept block behind this one, NULL: of all. NULL when there is none. In order of addresses. */
void *vault_next(const struct vault *vault, const void *block, size_t *ret_size);

/* Gives memory of the machine back that no block uses. */
void vault_trim(struct vault *vault);

/* Bytes for blocks in all. */
size_t vault_bytes(const struct vault *vault);

/* Bytes in blocks that are handed out. */
size_t vault_used(const struct vault *vault);

#endif
