/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_CACHE_PREFIX_STORE_H
#define ENGINE_CACHE_PREFIX_STORE_H

/* The prefix store: KV blocks in memory that the workers of a pool share. What one worker has computed the
 * others need not compute, nor one that is started in its place.
 *
 * A block is found by its place: its own 32 ids, which are compared, and the block before it, named by a
 * number that is used only once. A first block has instead what its bytes mean (model, layout) and whose
 * requests may use it (salt). So nothing relies on a hash, and blocks behind a replaced block are no longer
 * found.
 *
 * There is no lock: nobody waits, and a process may be killed at any moment. A writer claims a place with a
 * word that also holds the time, so a dead process's claim expires. A reader copies the block and believes
 * it if the word shows that nobody wrote meanwhile and the checksum is right. Places are in sets of eight,
 * so a write touches one place and nothing else. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

#define PREFIX_STORE_MAX_SALT 176

struct prefix_store;

/* What the bytes of a block mean: blocks of one kind can be exchanged. */
struct prefix_store_kind {
    uint8_t model[16]; /* digest */
    uint64_t layout;   /* backend_info.kv_layout, not 0 */
    size_t block_bytes;
};

/* Maps the segment behind `fd`, of any size, which was zeroes once; the descriptor stays the caller's. The
 * first that opens it settles the size of blocks: another one is -ENOTSUP, and so is a segment with room for
 * few blocks. -errno with a reason. */
int prefix_store_open(int fd, const struct prefix_store_kind *kind, struct prefix_store **ret_store,
                      struct error *err);
struct prefix_store *prefix_store_close(struct prefix_store *store);

/* Where a block stands in a prompt. */
struct prefix_place {
    uint64_t before;    /* number of the block before; 0: it is the first */
    struct bytes salt;  /* of a first block; at most PREFIX_STORE_MAX_SALT bytes */
    const int32_t *ids; /* [32] */
    uint32_t depth;     /* blocks before */
    uint64_t use;       /* of prefix_store_use: of equal age the deepest is replaced first */
};

/* A number for what one prompt uses: later ones are replaced later. */
uint64_t prefix_store_use(struct prefix_store *store);

/* The number of the block at a place, which is used now; 0: it is not there. */
uint64_t prefix_store_find(struct prefix_store *store, const struct prefix_place *place);

/* The same with its bytes; what ret_bytes has after a 0 means nothing. */
uint64_t prefix_store_get(struct prefix_store *store, const struct prefix_place *place, void *ret_bytes);

/* Keeps a block, in the place of one that was not used for long, unless it is there already. Its number; 0:
 * it is not kept, all that it could replace being written just now. */
uint64_t prefix_store_put(struct prefix_store *store, const struct prefix_place *place, const void *bytes);

/* Blocks that there is room for. */
uint32_t prefix_store_room(const struct prefix_store *store);

#endif
