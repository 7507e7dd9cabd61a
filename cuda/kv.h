/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KV_H
#define CUDA_KV_H

/* The inside of a KV block, for kernels only: where heads.cu writes and attention_piece.h reads.
 *
 * A layer's part of a block is [kv head][keys, values], f16, 32 positions each, dims padded to 8:
 *
 *   keys    [dim / 8][32 positions][8 dims]       a lane for each position: 32 lanes read 512 bytes in a row
 *   values  [position / 8][dim][8 positions]      a lane for each dim, the same
 *
 * Whoever multiplies queries and keys keeps its sum in its own lane, whoever weighs values too; nothing is
 * exchanged between lanes. The 16 bytes a lane loads are also what it holds in two fragments of a warp matrix
 * product, in an order of the summed index that both sides may share.
 *
 * Padded dims of keys are zero. Positions that nobody has written hold anything, not even numbers perhaps:
 * readers mask values, not only scores. */

#include "cuda/kernels.h"
#include "cuda/simt.h"
#include "worker/engine/backend.h"

#define KV_VECTOR 8 /* halves of a 16-byte load */

struct alignas(16) kv_halves {
    half_t x[KV_VECTOR];
};

__device__ static inline uint32_t kv_padded(uint32_t dim)
{
    return (dim + KV_VECTOR - 1) / KV_VECTOR * KV_VECTOR;
}

/* Keys of one head in a block: [padded / 8][32] vectors. */
__device__ static inline struct kv_halves *kv_keys(const struct device_kv *kv, uint32_t block, uint32_t layer,
                                                   uint32_t head)
{
    size_t head_halves = (size_t)kv_padded(kv->dim) * BACKEND_BLOCK_TOKENS;
    uint8_t *layer_start = kv->pool + block * kv->block_bytes + layer * kv->layer_bytes;
    return (struct kv_halves *)(layer_start + head * 2 * head_halves * sizeof(half_t));
}

/* Values of one head in a block: [4][padded] vectors. */
__device__ static inline struct kv_halves *kv_values(const struct device_kv *kv, uint32_t block,
                                                     uint32_t layer, uint32_t head)
{
    return kv_keys(kv, block, layer, head) + kv_padded(kv->dim) / KV_VECTOR * BACKEND_BLOCK_TOKENS;
}

#endif
