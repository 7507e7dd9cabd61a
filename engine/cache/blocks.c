/* SPDX-License-Identifier: MIT */
/* The KV block allocator: a count of holders per block and a stack of the free ones.
 *
 * The stack hands out the block freed last, whose memory is most likely still in a cache. Counts and stack
 * agree always: a block is on the stack exactly when its count is 0. */

#include "engine/cache/blocks.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "common/system/sparse.h"

struct blocks {
    uint32_t n;
    uint32_t n_free;
    uint32_t *free;    /* [n], the first n_free are free blocks */
    uint32_t *holders; /* [n] */
};

int blocks_new(uint32_t n, struct blocks **ret_blocks)
{
    struct blocks *blocks = calloc(1, sizeof *blocks);
    if (!blocks)
        return -ENOMEM;
    blocks->n = blocks->n_free = n;
    blocks->free = sparse_new((size_t)n + 1, sizeof *blocks->free);
    blocks->holders = sparse_new((size_t)n + 1, sizeof *blocks->holders);
    if (!blocks->free || !blocks->holders) {
        blocks_free(blocks);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        blocks->free[i] = n - 1 - i;
    *ret_blocks = blocks;
    return 0;
}

struct blocks *blocks_free(struct blocks *blocks)
{
    if (blocks) {
        sparse_free(blocks->free, (size_t)blocks->n + 1, sizeof *blocks->free);
        sparse_free(blocks->holders, (size_t)blocks->n + 1, sizeof *blocks->holders);
    }
    free(blocks);
    return NULL;
}

bool blocks_alloc(struct blocks *blocks, uint32_t n, uint32_t *ret_ids)
{
    if (n > blocks->n_free)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = blocks->free[--blocks->n_free];
        assert(blocks->holders[id] == 0);
        blocks->holders[id] = 1;
        ret_ids[i] = id;
    }
    return true;
}

void blocks_ref(struct blocks *blocks, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert(ids[i] < blocks->n && blocks->holders[ids[i]] > 0);
        blocks->holders[ids[i]]++;
    }
}

void blocks_unref(struct blocks *blocks, const uint32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        assert(ids[i] < blocks->n && blocks->holders[ids[i]] > 0);
        if (--blocks->holders[ids[i]] == 0)
            blocks->free[blocks->n_free++] = ids[i];
    }
}

uint32_t blocks_total(const struct blocks *blocks)
{
    return blocks->n;
}

uint32_t blocks_available(const struct blocks *blocks)
{
    return blocks->n_free;
}

uint32_t blocks_holders(const struct blocks *blocks, uint32_t id)
{
    assert(id < blocks->n);
    return blocks->holders[id];
}
