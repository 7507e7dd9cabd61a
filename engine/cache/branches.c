/* SPDX-License-Identifier: MIT */
/* A search tree over all nodes, ordered by parent, then by ids, then by length. Of a parent's nodes, the one
 * with the longest common beginning is a neighbour of the place where the ids themselves would stand.
 *
 * It is a treap: besides its order each node has a priority, and none has a higher one than the node above
 * it. Priorities are a hash of the node's number, and ids decide nothing about them, so no choice of prompts
 * makes the tree deep. */

#include "engine/cache/branches.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/system/sparse.h"

struct branch {
    uint64_t parent;
    uint32_t left, right;
    uint32_t n_ids; /* 0: it is not in */
};

struct branches {
    uint32_t root, n;
    const int32_t (*ids)[BACKEND_BLOCK_TOKENS];
    struct branch *all; /* [n] */
};

/* Where something stands in the order. */
struct key {
    uint64_t parent;
    const int32_t *ids;
    uint32_t n, node; /* node: decides between equal ones */
};

int branches_new(uint32_t n, const int32_t (*ids)[BACKEND_BLOCK_TOKENS], struct branches **ret_branches)
{
    struct branches *branches = calloc(1, sizeof *branches);
    if (!branches)
        return -ENOMEM;
    branches->n = n > 0 ? n : 1;
    branches->all = sparse_new(branches->n, sizeof *branches->all);
    if (!branches->all) {
        free(branches);
        return -ENOMEM;
    }
    branches->root = BRANCHES_NONE;
    branches->ids = ids;
    *ret_branches = branches;
    return 0;
}

struct branches *branches_free(struct branches *branches)
{
    if (branches)
        sparse_free(branches->all, branches->n, sizeof *branches->all);
    free(branches);
    return NULL;
}

bool branches_has(const struct branches *branches, uint32_t node)
{
    return branches->all[node].n_ids > 0;
}

/* Fibonacci hashing, and the high bits once more for the low ones. */
static uint32_t priority(uint32_t node)
{
    const uint64_t hash = (node + 1ull) * 0x9e3779b97f4a7c15ull;
    return (uint32_t)((hash ^ hash >> 29) * 0xbf58476d1ce4e5b9ull >> 32);
}

static struct key key_of(const struct branches *branches, uint32_t node)
{
    const struct branch *branch = &branches->all[node];
    return (struct key){branch->parent, branches->ids[node], branch->n_ids, node};
}

static int compare_numbers(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

static int compare(const struct branches *branches, const struct key *key, uint32_t node)
{
    const struct branch *branch = &branches->all[node];
    if (key->parent != branch->parent)
        return compare_numbers(key->parent, branch->parent);
    const uint32_t n = key->n < branch->n_ids ? key->n : branch->n_ids;
    const int order = memcmp(key->ids, branches->ids[node], n * sizeof *key->ids);
    if (order != 0)
        return order;
    return key->n != branch->n_ids ? compare_numbers(key->n, branch->n_ids)
                                   : compare_numbers(key->node, node);
}

/* ---- changes ---- */

void branches_add(struct branches *branches, uint32_t node, uint64_t parent, uint32_t n_ids)
{
    struct branch *branch = &branches->all[node];
    assert(branch->n_ids == 0 && n_ids > 0 && n_ids <= BACKEND_BLOCK_TOKENS);
    branch->parent = parent;
    branch->n_ids = n_ids;
    const struct key key = key_of(branches, node);
    uint32_t *link = &branches->root;
    while (*link != BRANCHES_NONE && priority(*link) >= priority(node)) {
        struct branch *above = &branches->all[*link];
        link = compare(branches, &key, *link) < 0 ? &above->left : &above->right;
    }
    /* What stood there comes below it, cut in two. */
    uint32_t at = *link, *before = &branch->left, *behind = &branch->right;
    *link = node;
    while (at != BRANCHES_NONE) {
        if (compare(branches, &key, at) < 0) {
            *behind = at;
            behind = &branches->all[at].left;
            at = *behind;
        } else {
            *before = at;
            before = &branches->all[at].right;
            at = *before;
        }
    }
    *before = *behind = BRANCHES_NONE;
}

void branches_remove(struct branches *branches, uint32_t node)
{
    struct branch *branch = &branches->all[node];
    if (branch->n_ids == 0)
        return;
    const struct key key = key_of(branches, node);
    uint32_t *link = &branches->root;
    while (*link != node) {
        assert(*link != BRANCHES_NONE);
        struct branch *above = &branches->all[*link];
        link = compare(branches, &key, *link) < 0 ? &above->left : &above->right;
    }
    uint32_t left = branch->left, right = branch->right;
    while (left != BRANCHES_NONE && right != BRANCHES_NONE) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &branches->all[left].right;
            left = *link;
        } else {
            *link = right;
            link = &branches->all[right].left;
            right = *link;
        }
    }
    *link = left != BRANCHES_NONE ? left : right;
    branch->n_ids = 0;
}

/* ---- search ---- */

/* How many ids the key and the node begin with alike. */
static uint32_t common(const struct branches *branches, const struct key *key, uint32_t node)
{
    uint32_t n = 0;
    if (node == BRANCHES_NONE || branches->all[node].parent != key->parent)
        return 0;
    while (n < key->n && n < branches->all[node].n_ids && branches->ids[node][n] == key->ids[n])
        n++;
    return n;
}

uint32_t branches_find(const struct branches *branches, uint64_t parent, const int32_t *ids, uint32_t n,
                       uint32_t *ret_common)
{
    const struct key key = {parent, ids, n, 0};
    uint32_t before = BRANCHES_NONE, behind = BRANCHES_NONE;
    for (uint32_t at = branches->root; at != BRANCHES_NONE;) {
        if (compare(branches, &key, at) <= 0) {
            behind = at;
            at = branches->all[at].left;
        } else {
            before = at;
            at = branches->all[at].right;
        }
    }
    const uint32_t of_before = common(branches, &key, before), of_behind = common(branches, &key, behind);
    *ret_common = of_before > of_behind ? of_before : of_behind;
    if (*ret_common == 0)
        return BRANCHES_NONE;
    return of_before > of_behind ? before : behind;
}
