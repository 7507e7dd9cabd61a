/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_PREFIX_STORE_H
#define ENGINE_CACHE_PREFIX_STORE_H

/* The prefix store: KV blocks in memory that the workers of a pool share, so that other workers, and
 * replacements of a dead one, need not compute a worker's blocks again.
 *
 * A block is found by its key: its own 32 ids, which are compared, and the block before it, identified by a
 * number that is never reused. A first block has a model, a layout and a salt instead. So nothing depends on
 * a hash alone, and the successors of a replaced block are no longer found.
 *
 * There is no lock: no process waits, and any may be killed at any moment. A writer claims an entry with a
 * word that also holds the time, so a dead process's claim expires. A reader copies the block and accepts the
 * copy if the word shows that it was not written meanwhile and the checksum is right. Entries are in sets of
 * eight, so a write touches one entry and nothing else. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

#define PREFIX_STORE_MAX_SALT 176

struct prefix_store;

/* The meaning of a block's bytes: blocks of one kind can be exchanged. */
struct prefix_store_kind {
    uint8_t model[16]; /* digest */
    uint64_t layout;   /* backend_info.kv_layout, not 0 */
    size_t block_bytes;
};

/* Maps the segment behind `fd`, of any size, initially zero; the caller keeps the descriptor. The first
 * process that opens it fixes the block size. 0 or -errno with a reason; -ENOTSUP: the block size differs, or
 * the segment has room for too few blocks. */
int prefix_store_open(int fd, const struct prefix_store_kind *kind, struct prefix_store **ret_store,
                      struct error *err);
struct prefix_store *prefix_store_close(struct prefix_store *store);

/* A block's place in a prompt: its key. */
struct prefix_place {
    uint64_t before;    /* number of the block before; 0: it is the first */
    struct bytes salt;  /* of a first block; at most PREFIX_STORE_MAX_SALT bytes */
    const int32_t *ids; /* [32] */
    uint32_t depth;     /* number of blocks before */
    uint64_t use;       /* from prefix_store_use; among equally old blocks the deepest is replaced first */
};

/* A number for the blocks that one prompt uses: blocks with higher numbers are replaced later. */
uint64_t prefix_store_use(struct prefix_store *store);

/* The number of the block at a place, which counts as used now; 0: not found. */
uint64_t prefix_store_find(struct prefix_store *store, const struct prefix_place *place);

/* The same, and copies its bytes; if the result is 0, ret_bytes is undefined. */
uint64_t prefix_store_get(struct prefix_store *store, const struct prefix_place *place, void *ret_bytes);

/* Stores a block in place of a least recently used one, unless the block is already there. Returns its
 * number; 0: not stored, because all entries that it could replace are being written. */
uint64_t prefix_store_put(struct prefix_store *store, const struct prefix_place *place, const void *bytes);

/* The number of blocks that the store has room for. */
uint32_t prefix_store_room(const struct prefix_store *store);

#endif
