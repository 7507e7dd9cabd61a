/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_KV_H
#define CUDA_KERNELS_ATTENTION_KV_H

/* The inside of a KV block, for kernels only: where heads.cu writes and attention_piece.h reads.
 *
 * A layer's part of a block is [kv head][keys, values], 32 positions each, in numbers of one type; types of
 * less than a byte are packed as their struct says:
 *
 *   keys    [dim / 8][32 positions][8 dims]
 *   values  [position / 8][dim][8 positions]
 *
 * Each type is a struct that kernels get as a template parameter (kv_f16.h, kv_q8.h, kv_q4.h), with
 *
 *   SIDES           right sides of two products that 16 bytes of it are
 *   WIDE_BLOCKS     blocks of threads that a multiprocessor has at once where an item has MOST_QUERIES: as
 *                   many as can be without registers spilled to memory
 *   SCALED          whether products with keys are still to be multiplied by keys.scales
 *   store           writes one position of one head: all lanes of a warp
 *   struct keys     what a lane has of 32 dims of a block's keys: its part of the right sides of two
 *                   products for each of TOKEN_TILES groups of eight positions
 *   load_keys       those, of dims from 8 · (vector − lane % 4) on
 *   position_of     which position of the block column `column` of side t is
 *   load_values     SIDES right sides: a lane's eight positions, from lane % 4 · 8 on, of one dim each
 *   dim_of          which dim column `column` of side `side` of load `tile` is
 *
 * The summed index of a product may be numbered in any way that both its sides share: of 32, lane % 4 has 8
 * neighbours, of which the first product takes the lower four and the second the upper. So a lane loads
 * exactly what its fragments hold, and lanes exchange nothing.
 *
 * Padded dims of keys are zero. Unwritten positions hold arbitrary bits, perhaps NaN: readers mask values,
 * not only scores. */

#include "cuda/kernels/kernels.h"
#include "cuda/device/simt.h"
#include "engine/backend/backend.h"

#define KV_VECTOR   8                          /* neighbours of 32 that a lane has */
#define TOKEN_TILES (BACKEND_BLOCK_TOKENS / 8) /* right sides of a block's keys */
#define KV_MOST     65504.0f                   /* of f16 */

/* Clamps numbers beyond the range of f16 to its largest number: an infinity would spoil rows that must not
 * see it, because zero times infinity is NaN. */
__device__ static inline float kv_cut(float x)
{
    return x > KV_MOST ? KV_MOST : x < -KV_MOST ? -KV_MOST : x;
}

__device__ static inline uint8_t *kv_keys(const struct device_kv *kv, uint32_t block, uint32_t layer,
                                          uint32_t head)
{
    return kv->pool + block * kv->block_bytes + kv->offset + layer * kv->layer_bytes +
           head * 2 * kv->part_bytes;
}

__device__ static inline uint8_t *kv_values(const struct device_kv *kv, uint32_t block, uint32_t layer,
                                            uint32_t head)
{
    return kv_keys(kv, block, layer, head) + kv->part_bytes;
}

#endif
