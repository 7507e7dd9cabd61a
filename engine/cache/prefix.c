/* SPDX-License-Identifier: MIT */
/* A node is described at the index of its block of group 0, so the tree needs no memory of its own. Places
 * are found through chained hash buckets; the idle blocks of a group stand in a list, the one that was idle
 * first in front. The ids lie apart, for they are four fifths of it and only a look-up that has found its
 * place reads them.
 *
 * Why the front of group 0's list is a leaf as a rule: whoever holds a block holds its parent, so a block's
 * last holder never leaves after its parent's; and prefix_release puts a sequence's blocks into the list from
 * the last to the first. A node's children therefore stand before it, or are not idle, and then it is not
 * either. There are two exceptions. Where the window of group 0 slides, a sequence gives back the first of
 * its blocks and keeps what is behind them; and who computed again what is there already holds blocks of its
 * own, and puts what it computes next behind the nodes that were there. Such a node may be evicted before its
 * children. They are then out of reach, for a parent is named by its number and by how often that was
 * evicted, and go when their own time has come. */

#include "engine/cache/prefix.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "common/system/sparse.h"
#include "engine/cache/branches.h"
#include "engine/cache/spaces.h"

#define NONE  UINT32_MAX
#define SPACE SPACES_BIT   /* a parent that is a space */
#define NAMED (1ull << 62) /* one that is a node: no name is 0 */

struct node {
    uint64_t hash;   /* of a whole one */
    uint64_t parent; /* the name of a node, or a space */
    uint32_t evictions;
    uint32_t next_in_bucket;
    uint32_t blocks[BACKEND_MOST_GROUPS]; /* NONE: it has lost that one */
    uint32_t snapshot;                    /* of the state behind it; NONE */
    uint32_t n_ids;                       /* fewer than a block has: a tail, in no bucket */
    uint32_t ends; /* bit n − 1: a prompt or a sequence ended with the n-th of them */
};

struct idle {
    uint32_t prev, next; /* NONE at the ends */
};

/* The blocks of a group. */
struct pool {
    struct backend_group group;
    struct blocks *blocks;
    uint32_t *node_of; /* [total]: whose each is; NONE: the cache does not keep it */
    struct idle *idle; /* [total] */
    size_t n;          /* entries of both, one more than there are blocks */
    uint32_t first_idle, last_idle, n_idle;
};

struct prefix {
    struct pool pools[BACKEND_MOST_GROUPS];
    uint32_t n_pools;
    struct pool snapshots;                /* without blocks where none are used */
    struct node *nodes;                   /* [total of group 0] */
    int32_t (*ids)[BACKEND_BLOCK_TOKENS]; /* [the same], of those that are kept */
    uint32_t *buckets;                    /* [mask + 1] */
    struct branches *branches;            /* nodes that are found by their first ids */
    uint32_t mask, most;
    struct spaces spaces;
    struct prefix_counts counts;
};

/* ---- life ---- */

static int pool_init(struct pool *pool, const struct backend_group *group, struct blocks *blocks)
{
    const size_t n = (size_t)blocks_total(blocks) + 1;
    *pool = (struct pool){.group = *group, .blocks = blocks, .n = n, .first_idle = NONE, .last_idle = NONE};
    pool->node_of = malloc(n * sizeof *pool->node_of);
    pool->idle = sparse_new(n, sizeof *pool->idle);
    if (!pool->node_of || !pool->idle)
        return -ENOMEM;
    memset(pool->node_of, 0xff, n * sizeof *pool->node_of);
    return 0;
}

static void pool_deinit(struct pool *pool)
{
    free(pool->node_of);
    sparse_free(pool->idle, pool->n, sizeof *pool->idle);
}

int prefix_use_snapshots(struct prefix *prefix, struct blocks *snapshots)
{
    return pool_init(&prefix->snapshots, &(struct backend_group){0}, snapshots);
}

int prefix_new(const struct backend_group *groups, uint32_t n_groups, struct blocks *const *blocks,
               uint32_t most, struct prefix **ret_prefix)
{
    struct prefix *prefix = calloc(1, sizeof *prefix);
    const uint32_t n = blocks_total(blocks[0]);
    int r = prefix ? 0 : -ENOMEM;
    for (uint32_t g = 0; r == 0 && g < n_groups; g++)
        r = pool_init(&prefix->pools[prefix->n_pools++], &groups[g], blocks[g]);
    if (r < 0) {
        prefix_free(prefix);
        return r;
    }
    prefix->most = most;
    prefix->mask = 1;
    while (prefix->mask < n && prefix->mask < UINT32_MAX / 2)
        prefix->mask = prefix->mask * 2 + 1;
    prefix->nodes = sparse_new((size_t)n + 1, sizeof *prefix->nodes);
    prefix->ids = sparse_new((size_t)n + 1, sizeof *prefix->ids);
    prefix->buckets = malloc(((size_t)prefix->mask + 1) * sizeof *prefix->buckets);
    if (!prefix->nodes || !prefix->ids || !prefix->buckets ||
        branches_new(n, (const int32_t(*)[BACKEND_BLOCK_TOKENS])prefix->ids, &prefix->branches) < 0) {
        prefix_free(prefix);
        return -ENOMEM;
    }
    memset(prefix->buckets, 0xff, ((size_t)prefix->mask + 1) * sizeof *prefix->buckets);
    *ret_prefix = prefix;
    return 0;
}

struct prefix *prefix_free(struct prefix *prefix)
{
    if (!prefix)
        return NULL;
    spaces_deinit(&prefix->spaces);
    sparse_free(prefix->nodes, prefix->pools[0].n, sizeof *prefix->nodes);
    sparse_free(prefix->ids, prefix->pools[0].n, sizeof *prefix->ids);
    for (uint32_t g = 0; g < prefix->n_pools; g++)
        pool_deinit(&prefix->pools[g]);
    pool_deinit(&prefix->snapshots);
    free(prefix->buckets);
    branches_free(prefix->branches);
    free(prefix);
    return NULL;
}

/* ---- spaces ---- */

uint64_t prefix_enter(struct prefix *prefix, struct bytes salt)
{
    return prefix->most > 0 ? spaces_enter(&prefix->spaces, salt) : 0;
}

void prefix_leave(struct prefix *prefix, uint64_t space)
{
    if (space != 0)
        spaces_leave(&prefix->spaces, space);
}

struct bytes prefix_salt(const struct prefix *prefix, uint64_t space)
{
    return space != 0 ? spaces_salt(&prefix->spaces, space) : (struct bytes){"", 0};
}

/* ---- places ---- */

static bool is_kept(const struct prefix *prefix, uint32_t node)
{
    return prefix->pools[0].node_of[node] == node;
}

static bool is_tail(const struct prefix *prefix, uint32_t node)
{
    return is_kept(prefix, node) && prefix->nodes[node].n_ids < BACKEND_BLOCK_TOKENS;
}

/* What the children of a node call it: no space, and not what those of its last content did. */
static uint64_t name_of(const struct prefix *prefix, uint32_t node)
{
    return NAMED | (uint64_t)(prefix->nodes[node].evictions & (INT32_MAX >> 1)) << 32 | node;
}

bool prefix_node_at(uint64_t place, uint32_t *ret_block)
{
    if (place & SPACE || place == 0)
        return false;
    *ret_block = (uint32_t)place;
    return true;
}

uint64_t prefix_place_of(const struct prefix *prefix, uint32_t node)
{
    return name_of(prefix, node);
}

uint32_t prefix_block_of(const struct prefix *prefix, uint32_t node, uint32_t group)
{
    return prefix->nodes[node].blocks[group];
}

/* A space is there as long as the sequence is in it. */
static bool is_there(const struct prefix *prefix, uint64_t place)
{
    uint32_t node;
    if (!prefix_node_at(place, &node))
        return place != 0;
    return is_kept(prefix, node) && name_of(prefix, node) == place;
}

static uint64_t hash_place(uint64_t parent, const int32_t *ids)
{
    return hash64(ids, BACKEND_BLOCK_TOKENS * sizeof *ids, parent);
}

/* The node at a place, or NONE. */
static uint32_t find_place(const struct prefix *prefix, uint64_t parent, const int32_t *ids, uint64_t hash)
{
    uint32_t at = prefix->buckets[hash & prefix->mask];
    for (; at != NONE; at = prefix->nodes[at].next_in_bucket) {
        const struct node *node = &prefix->nodes[at];
        if (node->hash == hash && node->parent == parent &&
            memcmp(prefix->ids[at], ids, sizeof *prefix->ids) == 0)
            return at;
    }
    return NONE;
}

/* The longest hit within the n nodes that were found: each group other than 0 has all blocks that the row
 * behind it sees. A node without one ends any hit that would still see it, and one look from the end on is
 * enough, for a shorter hit sees further back. */
static uint32_t cut_back(const struct prefix *prefix, const uint32_t *nodes, uint32_t n)
{
    uint32_t hit = n;
    for (uint32_t i = n; i-- > 0;) {
        bool seen = false;
        for (uint32_t g = 1; g < prefix->n_pools; g++) {
            const struct backend_group *group = &prefix->pools[g].group;
            if (i < backend_first_block(group, hit * BACKEND_BLOCK_TOKENS))
                continue;
            seen = true;
            if (prefix->nodes[nodes[i]].blocks[g] == NONE)
                hit = i;
        }
        if (!seen)
            break;
    }
    return hit;
}

/* The longest of the first n nodes that ends with a snapshot, where there are such. */
static uint32_t cut_to_snapshot(const struct prefix *prefix, const uint32_t *nodes, uint32_t n)
{
    while (prefix->snapshots.blocks && n > 0 && prefix->nodes[nodes[n - 1]].snapshot == NONE)
        n--;
    return n;
}

/* Both: a hit that a snapshot makes shorter sees further back. */
static uint32_t cut(const struct prefix *prefix, const uint32_t *nodes, uint32_t n)
{
    uint32_t before;
    do {
        before = n;
        n = cut_back(prefix, nodes, cut_to_snapshot(prefix, nodes, n));
    } while (n < before);
    return n;
}

uint32_t prefix_find(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                     uint32_t *const *tables, uint64_t *ret_place)
{
    uint32_t reach;
    return prefix_find_reaching(prefix, space, ids, most, tables, ret_place, &reach);
}

uint32_t prefix_find_reaching(const struct prefix *prefix, uint64_t space, const int32_t *ids, uint32_t most,
                              uint32_t *const *tables, uint64_t *ret_place, uint32_t *ret_reach)
{
    uint64_t parent = space;
    uint32_t n = 0;
    for (; space != 0 && n < most; n++, ids += BACKEND_BLOCK_TOKENS) {
        uint32_t node = find_place(prefix, parent, ids, hash_place(parent, ids));
        if (node == NONE)
            break;
        tables[0][n] = node;
        parent = name_of(prefix, node);
    }
    *ret_reach = cut_back(prefix, tables[0], n);
    n = cut(prefix, tables[0], *ret_reach);
    for (uint32_t g = 1; g < prefix->n_pools; g++)
        for (uint32_t i = backend_first_block(&prefix->pools[g].group, n * BACKEND_BLOCK_TOKENS); i < n; i++)
            tables[g][i] = prefix->nodes[tables[0][i]].blocks[g];
    *ret_place = n > 0 ? name_of(prefix, tables[0][n - 1]) : space;
    return n;
}

/* The most of the first `common` ids with which something ended; n, all that are wanted, also if something
 * did with one more. */
static uint32_t cut_to_end(uint32_t ends, uint32_t common, uint32_t n)
{
    if (common == n && ends >> n & 1)
        return n;
    while (common > 0 && !(ends >> (common - 1) & 1))
        common--;
    return common;
}

uint32_t prefix_find_common(const struct prefix *prefix, uint64_t place, const int32_t *ids, uint32_t n,
                            bool ends_only, uint32_t *ret_blocks)
{
    uint32_t common;
    const uint32_t node = branches_find(prefix->branches, place, ids, n, &common);
    if (common > 0 && ends_only)
        common = cut_to_end(prefix->nodes[node].ends, common, n);
    for (uint32_t g = 0; g < prefix->n_pools && common > 0; g++) {
        ret_blocks[g] = prefix->nodes[node].blocks[g];
        if (ret_blocks[g] == NONE)
            return 0;
    }
    return common;
}

/* ---- idle blocks ---- */

static bool is_idle(const struct pool *pool, uint32_t block)
{
    return pool->node_of[block] != NONE && blocks_holders(pool->blocks, block) == 1;
}

static void become_idle(struct pool *pool, uint32_t block)
{
    pool->idle[block] = (struct idle){pool->last_idle, NONE};
    if (pool->last_idle == NONE)
        pool->first_idle = block;
    else
        pool->idle[pool->last_idle].next = block;
    pool->last_idle = block;
    pool->n_idle++;
}

static void leave_idle(struct pool *pool, uint32_t block)
{
    const struct idle *idle = &pool->idle[block];
    if (idle->prev == NONE)
        pool->first_idle = idle->next;
    else
        pool->idle[idle->prev].next = idle->next;
    if (idle->next == NONE)
        pool->last_idle = idle->prev;
    else
        pool->idle[idle->next].prev = idle->prev;
    pool->n_idle--;
}

/* The cache keeps a block no longer. */
static void drop(struct prefix *prefix, uint32_t group, uint32_t block)
{
    struct pool *pool = &prefix->pools[group];
    if (is_idle(pool, block))
        leave_idle(pool, block);
    prefix->nodes[pool->node_of[block]].blocks[group] = NONE;
    pool->node_of[block] = NONE;
    blocks_unref(pool->blocks, &block, 1);
}

/* The node has its snapshot no longer. */
static void drop_snapshot(struct prefix *prefix, uint32_t at)
{
    struct pool *pool = &prefix->snapshots;
    const uint32_t snapshot = prefix->nodes[at].snapshot;
    leave_idle(pool, snapshot);
    pool->node_of[snapshot] = NONE;
    prefix->nodes[at].snapshot = NONE;
    blocks_unref(pool->blocks, &snapshot, 1);
    prefix->counts.snapshots--;
}

/* The node goes, with every block that it has. */
static void forget(struct prefix *prefix, uint32_t at)
{
    struct node *node = &prefix->nodes[at];
    uint32_t *link = &prefix->buckets[node->hash & prefix->mask];
    while (node->n_ids == BACKEND_BLOCK_TOKENS && *link != at)
        link = &prefix->nodes[*link].next_in_bucket;
    if (node->n_ids == BACKEND_BLOCK_TOKENS)
        *link = node->next_in_bucket;
    branches_remove(prefix->branches, at);
    node->evictions++;
    if (node->snapshot != NONE)
        drop_snapshot(prefix, at);
    if (node->parent & SPACE)
        prefix_leave(prefix, node->parent);
    for (uint32_t g = prefix->n_pools; g-- > 0;)
        if (node->blocks[g] != NONE)
            drop(prefix, g, node->blocks[g]);
    prefix->counts.cached--;
    prefix->counts.evicted++;
}

static void evict(struct prefix *prefix, uint32_t group)
{
    const uint32_t block = prefix->pools[group].first_idle;
    if (group == 0)
        forget(prefix, block);
    else
        drop(prefix, group, block);
}

/* ---- keeping ---- */

/* A node gets the block, which its content was computed into. */
static void give(struct prefix *prefix, uint32_t node, uint32_t group, uint32_t block)
{
    struct pool *pool = &prefix->pools[group];
    prefix->nodes[node].blocks[group] = block;
    pool->node_of[block] = node;
    blocks_ref(pool->blocks, &block, 1);
}

/* Gives the node what it lacks, and makes it the last to be evicted: it is in use. */
static void complete(struct prefix *prefix, uint32_t node, const uint32_t *blocks)
{
    bool lacked = false;
    for (uint32_t g = 1; g < prefix->n_pools; g++)
        if (prefix->nodes[node].blocks[g] == NONE && prefix->pools[g].node_of[blocks[g]] == NONE) {
            give(prefix, node, g, blocks[g]);
            lacked = true;
        }
    if (is_idle(&prefix->pools[0], node)) {
        leave_idle(&prefix->pools[0], node);
        become_idle(&prefix->pools[0], node);
    }
    prefix->counts.completed += lacked;
}

/* Makes room for one more node, without that of its parent going. False: there is none. */
static bool make_room(struct prefix *prefix, uint64_t parent)
{
    if (prefix->counts.cached >= prefix->most && prefix->pools[0].n_idle > 0)
        evict(prefix, 0);
    return prefix->counts.cached < prefix->most && is_there(prefix, parent);
}

static void set_ids(struct prefix *prefix, uint32_t at, const int32_t *ids, uint32_t n)
{
    prefix->nodes[at].n_ids = n;
    memcpy(prefix->ids[at], ids, n * sizeof *ids);
}

static void set_whole(struct prefix *prefix, uint32_t at, const int32_t *ids, uint64_t hash)
{
    uint32_t *bucket = &prefix->buckets[hash & prefix->mask];
    set_ids(prefix, at, ids, BACKEND_BLOCK_TOKENS);
    prefix->nodes[at].hash = hash;
    prefix->nodes[at].next_in_bucket = *bucket;
    *bucket = at;
}

/* Keeps the blocks as a node whose ids are set. */
static void keep(struct prefix *prefix, uint64_t parent, const uint32_t *blocks)
{
    struct node *node = &prefix->nodes[blocks[0]];
    node->parent = parent;
    node->snapshot = NONE;
    node->ends = 0;
    for (uint32_t g = 0; g < prefix->n_pools; g++)
        give(prefix, blocks[0], g, blocks[g]);
    if (parent & SPACE)
        spaces_use(&prefix->spaces, parent);
    prefix->counts.cached++;
    prefix->counts.inserted++;
}

bool prefix_insert(struct prefix *prefix, uint64_t *place, const int32_t *ids, const uint32_t *blocks)
{
    const uint64_t parent = *place;
    const uint32_t at = blocks[0];
    const bool tail = is_tail(prefix, at) && prefix->nodes[at].parent == parent;
    *place = 0;
    if (!is_there(prefix, parent) || (is_kept(prefix, at) && !tail))
        return false;
    const uint64_t hash = hash_place(parent, ids);
    const uint32_t other = find_place(prefix, parent, ids, hash);
    if (other != NONE) {
        if (tail)
            forget(prefix, at);
        complete(prefix, other, blocks);
        *place = name_of(prefix, other);
        return false;
    }
    if (tail)
        branches_remove(prefix->branches, at);
    else if (!make_room(prefix, parent))
        return false;
    set_whole(prefix, at, ids, hash);
    if (tail)
        branches_add(prefix->branches, at, parent, BACKEND_BLOCK_TOKENS);
    else
        keep(prefix, parent, blocks);
    *place = name_of(prefix, at);
    return true;
}

void prefix_share(struct prefix *prefix, uint64_t place, bool ends)
{
    uint32_t node;
    if (!is_there(prefix, place) || !prefix_node_at(place, &node))
        return;
    prefix->nodes[node].ends |= (uint32_t)ends << (BACKEND_BLOCK_TOKENS - 1);
    if (!branches_has(prefix->branches, node))
        branches_add(prefix->branches, node, prefix->nodes[node].parent, BACKEND_BLOCK_TOKENS);
}

/* ---- tails ---- */

/* Another node begins with all n ids, and has all its blocks. It counts as used now. */
static bool use_common(struct prefix *prefix, uint64_t place, const int32_t *ids, uint32_t n, bool ends_only)
{
    uint32_t blocks[BACKEND_MOST_GROUPS];
    if (prefix_find_common(prefix, place, ids, n, ends_only, blocks) < n)
        return false;
    prefix->nodes[blocks[0]].ends |= 1u << (n - 1);
    for (uint32_t g = prefix->n_pools; g-- > 0;) {
        prefix_hold(prefix, g, &blocks[g], 1);
        prefix_release(prefix, g, &blocks[g], 1);
    }
    return true;
}

void prefix_insert_tail(struct prefix *prefix, uint64_t place, const int32_t *ids, uint32_t n, bool ends_only,
                        const uint32_t *blocks)
{
    const uint32_t at = blocks[0];
    const bool grows = is_tail(prefix, at) && prefix->nodes[at].parent == place;
    assert(n > 0 && n < BACKEND_BLOCK_TOKENS && !prefix->snapshots.blocks);
    if (!is_there(prefix, place) || (is_kept(prefix, at) && !grows))
        return;
    if (grows)
        branches_remove(prefix->branches, at);
    if (use_common(prefix, place, ids, n, ends_only)) {
        if (grows)
            forget(prefix, at);
        return;
    }
    if (!grows && !make_room(prefix, place))
        return;
    set_ids(prefix, at, ids, n);
    if (!grows)
        keep(prefix, place, blocks);
    prefix->nodes[at].ends |= 1u << (n - 1);
    branches_add(prefix->branches, at, place, n);
}

/* ---- snapshots: idle from the moment they are given, for whoever begins with one has a copy ---- */

bool prefix_take_snapshot(struct prefix *prefix, uint32_t *ret_snapshot)
{
    struct pool *pool = &prefix->snapshots;
    if (blocks_available(pool->blocks) == 0) {
        if (pool->n_idle == 0)
            return false;
        drop_snapshot(prefix, pool->node_of[pool->first_idle]);
        prefix->counts.snapshots_evicted++;
    }
    return blocks_alloc(pool->blocks, 1, ret_snapshot);
}

void prefix_return_snapshot(struct prefix *prefix, uint32_t snapshot)
{
    blocks_unref(prefix->snapshots.blocks, &snapshot, 1);
}

bool prefix_give_snapshot(struct prefix *prefix, uint64_t place, uint32_t snapshot)
{
    struct pool *pool = &prefix->snapshots;
    uint32_t node;
    if (!is_there(prefix, place) || !prefix_node_at(place, &node) || prefix->nodes[node].snapshot != NONE) {
        prefix_return_snapshot(prefix, snapshot);
        return false;
    }
    prefix->nodes[node].snapshot = snapshot;
    pool->node_of[snapshot] = node;
    become_idle(pool, snapshot);
    prefix->counts.snapshots++;
    prefix->counts.snapshots_given++;
    return true;
}

bool prefix_snapshot_at(struct prefix *prefix, uint64_t place, uint32_t *ret_snapshot)
{
    struct pool *pool = &prefix->snapshots;
    uint32_t node;
    if (!pool->blocks || !is_there(prefix, place) || !prefix_node_at(place, &node) ||
        prefix->nodes[node].snapshot == NONE)
        return false;
    *ret_snapshot = prefix->nodes[node].snapshot;
    leave_idle(pool, *ret_snapshot);
    become_idle(pool, *ret_snapshot);
    return true;
}

void prefix_drop_snapshot(struct prefix *prefix, uint64_t place)
{
    uint32_t node;
    if (is_there(prefix, place) && prefix_node_at(place, &node) && prefix->nodes[node].snapshot != NONE)
        drop_snapshot(prefix, node);
}

/* ---- holders ---- */

uint32_t prefix_available(const struct prefix *prefix, uint32_t group)
{
    const struct pool *pool = &prefix->pools[group];
    return blocks_available(pool->blocks) + pool->n_idle;
}

bool prefix_alloc(struct prefix *prefix, uint32_t group, uint32_t n, uint32_t *ret_ids)
{
    const struct pool *pool = &prefix->pools[group];
    if (n > prefix_available(prefix, group))
        return false;
    while (blocks_available(pool->blocks) < n)
        evict(prefix, group);
    return blocks_alloc(pool->blocks, n, ret_ids);
}

uint32_t prefix_drop_idle(struct prefix *prefix)
{
    const uint32_t n = prefix->pools[0].n_idle;
    for (uint32_t g = 0; g < prefix->n_pools; g++)
        while (prefix->pools[g].n_idle > 0)
            evict(prefix, g);
    return n;
}

void prefix_hold(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n)
{
    struct pool *pool = &prefix->pools[group];
    for (uint32_t i = 0; i < n; i++)
        if (is_idle(pool, ids[i]))
            leave_idle(pool, ids[i]);
    blocks_ref(pool->blocks, ids, n);
}

void prefix_release(struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n)
{
    struct pool *pool = &prefix->pools[group];
    for (uint32_t i = n; i-- > 0;) {
        blocks_unref(pool->blocks, &ids[i], 1);
        if (is_idle(pool, ids[i]))
            become_idle(pool, ids[i]);
    }
}

uint32_t prefix_idle(const struct prefix *prefix, uint32_t group, const uint32_t *ids, uint32_t n)
{
    uint32_t idle = 0;
    for (uint32_t i = 0; i < n; i++)
        idle += is_idle(&prefix->pools[group], ids[i]);
    return idle;
}

struct prefix_counts prefix_counts(const struct prefix *prefix)
{
    struct prefix_counts counts = prefix->counts;
    counts.idle = prefix->pools[0].n_idle;
    return counts;
}
