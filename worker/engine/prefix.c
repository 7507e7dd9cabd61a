/* SPDX-License-Identifier: MIT */
/* A cached block is described at the index of its number, so the tree needs no memory of its own. Places are
 * found through chained hash buckets; idle blocks stand in a list, the one that was idle first in front. The
 * ids lie apart, for they are four fifths of it and only a look-up that has found its place reads them.
 *
 * Why the front of the list is always a leaf: whoever holds a block holds its parent, so a block's last
 * holder never leaves after its parent's; and prefix_release puts a sequence's blocks into the list from the
 * last to the first. A block's children therefore stand before it, or are not idle, and then it is not
 * either.
 *
 * Where windows slide, a sequence gives back the first of its blocks and keeps what is behind them. Such a
 * block may be evicted before its children. They are then out of reach, for a parent is named by its number
 * and by how often that was evicted, and go when their own time has come. */

#include "worker/engine/prefix.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>
#include <utlist.h>

#include "common/hash.h"
#include "worker/engine/backend.h"

#define NONE  UINT32_MAX
#define SPACE (1ull << 63) /* a parent that is a space */

struct space {
    uint64_t number; /* SPACE and a count that is never used twice */
    uint32_t users;  /* sequences and first blocks */
    UT_hash_handle by_salt, by_number;
    uint32_t salt_len;
    uint8_t salt[];
};

struct cached {
    uint64_t hash;
    uint64_t parent; /* the name of a block, or a space */
    uint32_t evictions;
    uint32_t next_in_bucket;
    uint32_t prev_idle, next_idle; /* NONE at the ends */
    bool kept;
};

struct prefix {
    struct blocks *blocks;
    struct cached *cached;                /* [blocks_total] */
    int32_t (*ids)[BACKEND_BLOCK_TOKENS]; /* [blocks_total], of those that are kept */
    uint32_t *buckets;                    /* [mask + 1] */
    uint32_t mask, most;
    uint32_t first_idle, last_idle;
    struct space *spaces, *numbers; /* uthash by salt and by number */
    uint64_t n_spaces;              /* ever */
    struct prefix_counts counts;
};

/* ---- life ---- */

int prefix_new(struct blocks *blocks, uint32_t most, struct prefix **ret_prefix)
{
    struct prefix *prefix = calloc(1, sizeof *prefix);
    uint32_t n = blocks_total(blocks);
    if (!prefix)
        return -ENOMEM;
    prefix->blocks = blocks;
    prefix->most = most;
    prefix->first_idle = prefix->last_idle = NONE;
    prefix->mask = 1;
    while (prefix->mask < n && prefix->mask < UINT32_MAX / 2)
        prefix->mask = prefix->mask * 2 + 1;
    prefix->cached = calloc((size_t)n + 1, sizeof *prefix->cached);
    prefix->ids = calloc((size_t)n + 1, sizeof *prefix->ids);
    prefix->buckets = malloc(((size_t)prefix->mask + 1) * sizeof *prefix->buckets);
    if (!prefix->cached || !prefix->ids || !prefix->buckets) {
        prefix_free(prefix);
        return -ENOMEM;
    }
    memset(prefix->buckets, 0xff, ((size_t)prefix->mask + 1) * sizeof *prefix->buckets);
    *ret_prefix = prefix;
    return 0;
}

struct prefix *prefix_free(struct prefix *prefix)
{
    struct space *space, *next;
    if (!prefix)
        return NULL;
    HASH_CLEAR(by_number, prefix->numbers);
    HASH_ITER(by_salt, prefix->spaces, space, next)
    {
        HASH_DELETE(by_salt, prefix->spaces, space);
        free(space);
    }
    free(prefix->cached);
    free(prefix->ids);
    free(prefix->buckets);
    free(prefix);
    return NULL;
}

/* ---- spaces ---- */

uint64_t prefix_enter(struct prefix *prefix, struct bytes salt)
{
    struct space *space;
    if (prefix->most == 0)
        return 0;
    const void *key = salt.len > 0 ? salt.data : ""; /* no pointer may be null, not even to no bytes */
    HASH_FIND(by_salt, prefix->spaces, key, (unsigned)salt.len, space);
    if (!space) {
        space = calloc(1, sizeof *space + salt.len);
        if (!space)
            return 0;
        space->number = SPACE | ++prefix->n_spaces;
        space->salt_len = (uint32_t)salt.len;
        memcpy(space->salt, key, salt.len);
        HASH_ADD(by_salt, prefix->spaces, salt, space->salt_len, space);
        HASH_ADD(by_number, prefix->numbers, number, sizeof space->number, space);
    }
    space->users++;
    return space->number;
}

static struct space *find_space(const struct prefix *prefix, uint64_t number)
{
    struct space *space;
    HASH_FIND(by_number, prefix->numbers, &number, sizeof number, space);
    return space;
}

void prefix_leave(struct prefix *prefix, uint64_t number)
{
    struct space *space = number ? find_space(prefix, number) : NULL;
    if (!space || --space->users > 0)
        return;
    HASH_DELETE(by_salt, prefix->spaces, space);
    HASH_DELETE(by_number, prefix->numbers, space);
    free(space);
}

struct bytes prefix_salt(const struct prefix *prefix, uint64_t number)
{
    const struct space *space = number ? find_space(prefix, number) : NULL;
    return space ? (struct bytes){space->salt, space->salt_len} : (struct bytes){"", 0};
}

/* ---- places ---- */

/* What the children of a block call it: no space, and not what those of its last content did. */
static uint64_t name_of(const struct prefix *prefix, uint32_t block)
{
    return (uint64_t)(prefix->cached[block].evictions & INT32_MAX) << 32 | block;
}

static uint64_t hash_place(uint64_t parent, const int32_t *ids)
{
    return hash64(ids, BACKEND_BLOCK_TOKENS * sizeof *ids, parent);
}

/* The block at a place, or NONE. */
static uint32_t find_place(const struct prefix *prefix, uint64_t parent, const int32_t *ids, uint64_t hash)
{
    uint32_t block = prefix->buckets[hash & prefix->mask];
    for (; block != NONE; block = prefix->cached[block].next_in_bucket) {
        const struct cached *cached = &prefix->cached[block];
        if (cached->hash == hash && cached->parent == parent &&
            memcmp(prefix->ids[block], ids, sizeof *prefix->ids) == 0)
            return block;
    }
    return NONE;
}

uint32_t prefix_find(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                     uint32_t *ret_blocks)
{
    uint64_t parent = space;
    uint32_t n = 0;
    for (; space != 0 && n < most; n++, ids += BACKEND_BLOCK_TOKENS) {
        uint32_t block = find_place(prefix, parent, ids, hash_place(parent, ids));
        if (block == NONE)
            break;
        ret_blocks[n] = block;
        parent = name_of(prefix, block);
    }
    return n;
}

/* ---- idle blocks ---- */

static void become_idle(struct prefix *prefix, uint32_t block)
{
    struct cached *cached = &prefix->cached[block];
    cached->prev_idle = prefix->last_idle;
    cached->next_idle = NONE;
    if (prefix->last_idle == NONE)
        prefix->first_idle = block;
    else
        prefix->cached[prefix->last_idle].next_idle = block;
    prefix->last_idle = block;
    prefix->counts.idle++;
}

static void leave_idle(struct prefix *prefix, uint32_t block)
{
    const struct cached *cached = &prefix->cached[block];
    if (cached->prev_idle == NONE)
        prefix->first_idle = cached->next_idle;
    else
        prefix->cached[cached->prev_idle].next_idle = cached->next_idle;
    if (cached->next_idle == NONE)
        prefix->last_idle = cached->prev_idle;
    else
        prefix->cached[cached->next_idle].prev_idle = cached->prev_idle;
    prefix->counts.idle--;
}

static void evict(struct prefix *prefix)
{
    uint32_t block = prefix->first_idle;
    struct cached *cached = &prefix->cached[block];
    uint32_t *link = &prefix->buckets[cached->hash & prefix->mask];
    leave_idle(prefix, block);
    while (*link != block)
        link = &prefix->cached[*link].next_in_bucket;
    *link = cached->next_in_bucket;
    cached->kept = false;
    cached->evictions++;
    if (cached->parent & SPACE)
        prefix_leave(prefix, cached->parent);
    blocks_unref(prefix->blocks, &block, 1);
    prefix->counts.cached--;
    prefix->counts.evicted++;
}

/* ---- keeping ---- */

bool prefix_insert(struct prefix *prefix, uint64_t space, const int32_t *ids, const uint32_t *table,
                   uint32_t n)
{
    uint32_t block = table[n];
    struct cached *cached = &prefix->cached[block];
    if (space == 0 || (n > 0 && !prefix->cached[table[n - 1]].kept) || cached->kept)
        return false;
    uint64_t parent = n == 0 ? space : name_of(prefix, table[n - 1]);
    ids += (size_t)n * BACKEND_BLOCK_TOKENS;
    uint64_t hash = hash_place(parent, ids);
    if (find_place(prefix, parent, ids, hash) != NONE)
        return false;
    if (prefix->counts.cached >= prefix->most) {
        if (prefix->counts.idle == 0)
            return false;
        evict(prefix);
    }
    cached->kept = true;
    cached->parent = parent;
    cached->hash = hash;
    memcpy(prefix->ids[block], ids, sizeof *prefix->ids);
    cached->next_in_bucket = prefix->buckets[hash & prefix->mask];
    prefix->buckets[hash & prefix->mask] = block;
    if (n == 0)
        find_space(prefix, space)->users++;
    blocks_ref(prefix->blocks, &block, 1);
    prefix->counts.cached++;
    prefix->counts.inserted++;
    return true;
}

/* ---- holders ---- */

uint32_t prefix_available(const struct prefix *prefix)
{
    return blocks_available(prefix->blocks) + prefix->counts.idle;
}

bool prefix_alloc(struct prefix *prefix, uint32_t n, uint32_t *ret_ids)
{
    if (n > prefix_available(prefix))
        return false;
    while (blocks_available(prefix->blocks) < n)
        evict(prefix);
    return blocks_alloc(prefix->blocks, n, ret_ids);
}

static bool is_idle(const struct prefix *prefix, uint32_t block)
{
    return prefix->cached[block].kept && blocks_holders(prefix->blocks, block) == 1;
}

void prefix_hold(struct prefix *prefix, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (is_idle(prefix, ids[i]))
            leave_idle(prefix, ids[i]);
    blocks_ref(prefix->blocks, ids, n);
}

void prefix_release(struct prefix *prefix, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) {
        blocks_unref(prefix->blocks, &ids[i], 1);
        if (is_idle(prefix, ids[i]))
            become_idle(prefix, ids[i]);
    }
}

uint32_t prefix_idle(const struct prefix *prefix, const uint32_t *ids, uint32_t n)
{
    uint32_t idle = 0;
    for (uint32_t i = 0; i < n; i++)
        idle += is_idle(prefix, ids[i]);
    return idle;
}

struct prefix_counts prefix_counts(const struct prefix *prefix)
{
    return prefix->counts;
}
