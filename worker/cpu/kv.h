/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_KV_H
#define WORKER_CPU_KV_H

/* The KV pool: blocks of 32 positions in half precision.
 *
 * A block is contiguous: [layer][keys, values][kv head]; keys are [dim][32 tokens], so that a vector holds
 * one dimension of eight tokens, values [32 tokens][value_dim], value_dim being the head's rounded up to 8.
 */

#include "common/error.h"
#include "worker/cpu/kernels.h"
#include "worker/cpu/memory.h"
#include "worker/model/model.h"

struct kv {
    uint32_t n_layers, n_heads, dim, value_dim;
    uint32_t n_blocks;
    size_t head_keys, head_values; /* halves of one head in one block */
    size_t layer_size, block_size; /* halves of one layer in one block, of one block */
    uint16_t *pool;                /* [n_blocks][block_size] */
};

/* Takes the pool. n_blocks 0: `wanted` of them, cut to memory_share. -ENOMEM names what would have
 * been needed, what there is and whose it is. */
int kv_init(struct kv *kv, const struct model_params *params, uint32_t n_blocks, uint64_t wanted,
            struct memory *memory, struct error *err);

/* Tells blocks of another geometry or order apart (backend_info.kv_layout). */
uint64_t kv_layout(const struct kv *kv);

static inline uint16_t *kv_keys(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head)
{
    return kv->pool + block * kv->block_size + layer * kv->layer_size + head * kv->head_keys;
}

static inline uint16_t *kv_values(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head)
{
    return kv->pool + block * kv->block_size + layer * kv->layer_size + kv->n_heads * kv->head_keys +
           head * kv->head_values;
}

/* Writes one position: keys and values [n_heads][dim]. */
void kv_store(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
              uint32_t offset, const float *keys, const float *values);

#endif
