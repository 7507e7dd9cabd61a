/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_POOL_H
#define TESTS_UNIT_CUDA_POOL_H

/* Where a KV block has a key and a value, written a second time from what cuda/kv.h says. */

#include "cuda/kernels.h"

static inline uint16_t *pool_head(const struct device_kv *kv, uint32_t block, uint32_t layer, uint32_t head)
{
    uint32_t padded = (kv->dim + 7) / 8 * 8;
    return (uint16_t *)(kv->pool + block * kv->block_bytes + layer * kv->layer_bytes) +
           (size_t)head * 2 * padded * 32;
}

static inline uint16_t *pool_key(const struct device_kv *kv, uint32_t block, uint32_t layer, uint32_t head,
                                 uint32_t offset, uint32_t d)
{
    return pool_head(kv, block, layer, head) + (d / 8 * 32 + offset) * 8 + d % 8;
}

static inline uint16_t *pool_value(const struct device_kv *kv, uint32_t block, uint32_t layer, uint32_t head,
                                   uint32_t offset, uint32_t d)
{
    uint32_t padded = (kv->dim + 7) / 8 * 8;
    return pool_head(kv, block, layer, head) + (size_t)padded * 32 + (offset / 8 * padded + d) * 8 +
           offset % 8;
}

#endif
