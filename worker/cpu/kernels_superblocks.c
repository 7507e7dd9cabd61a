/* SPDX-License-Identifier: MIT */
/* Products of Q4_K, Q5_K and Q6_K weights with 8-bit activations: 256 columns to a float scale, with integer
 * scales inside.
 *
 * Per block of 32 columns the products and the integer scales are summed exactly in integers; each block is
 * multiplied by its activation scale and added to the superblock's sum, which the float scale then brings
 * into the row's. Minimums (Q4_K, Q5_K) are summed the same way from the activations' block sums; the offset
 * of Q6_K is taken off in integers. */

#include "worker/cpu/kernels_tile.h"
#include "worker/cpu/kernels_unpack.h"

/* Q4_K and Q5_K, of `bits` bits. */
LANES_INLINE void add_with_minimums(const struct packed_q4_k *block, const uint8_t *tops, const int bits,
                                    const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    rows_f32 inner[TILE_MAX], mins[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = mins[i] = rows_f32_splat(0);
    for (int p = 0; p < 4; p++) {
        rows_u8 w[2][8];
        load_pair(block->nibbles[p], tops, tile->apart, bits, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++) {
            int j = 2 * p + h;
            rows_i32 scale = rows_i32_from_u8(block->block_scales[j], tile->apart);
            rows_f32 min = rows_f32_from_i32(rows_i32_from_u8(block->block_mins[j], tile->apart));
            UNROLLED
            for (int i = 0; i < tile->n; i++) {
                uint32_t column = (uint32_t)j * 32;
                size_t at = tile_block(tile, i, column);
                rows_f32 dot = rows_dot_scaled(w[h], (1 << bits) - 1, tile_quants(tile, i, column), scale);
                inner[i] = rows_f32_fma(dot, rows_f32_splat(tile->x->scales[at]), inner[i]);
                mins[i] = rows_f32_fma(min, rows_f32_splat(tile->x->sums[at]), mins[i]);
            }
        }
    }
    rows_f32 scale = rows_f32_from_f16(block->scales, tile->apart),
             min_scale = rows_f32_from_f16(block->min_scales, tile->apart);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        sums[i] = rows_f32_fma(inner[i], scale, sums[i]);
        sums[i] = rows_f32_fma(mins[i], -min_scale, sums[i]);
    }
}

LANES_INLINE void add_q4_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    add_with_minimums(packed, NULL, 4, tile, sums);
}

LANES_INLINE void add_q5_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_k *block = packed;
    add_with_minimums(&block->low, block->tops, 5, tile, sums);
}

LANES_INLINE void add_q6_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q6_k *block = packed;
    rows_f32 inner[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = rows_f32_splat(0);
    for (int p = 0; p < 4; p++) {
        rows_u8 w[2][8];
        load_pair(block->nibbles[p], block->tops[p / 2], tile->apart, 6, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++) {
            int j = 2 * p + h;
            const rows_i32 factors[2] = {rows_i32_from_i8(block->block_scales[j][0], tile->apart),
                                         rows_i32_from_i8(block->block_scales[j][1], tile->apart)};
            UNROLLED
            for (int i = 0; i < tile->n; i++) {
                uint32_t column = (uint32_t)j * 32;
                size_t at = tile_block(tile, i, column);
                rows_f32 dot =
                    rows_dot_halves(w[h], tile_quants(tile, i, column), tile->x->half_sums + 2 * at, factors);
                inner[i] = rows_f32_fma(dot, rows_f32_splat(tile->x->scales[at]), inner[i]);
            }
        }
    }
    rows_f32 scale = rows_f32_from_f16(block->scales, tile->apart);
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(inner[i], scale, sums[i]);
}

DEFINE_BLOCK_MULTIPLY(multiply_q4_k, 256, struct packed_q4_k, add_q4_k)
DEFINE_BLOCK_MULTIPLY(multiply_q5_k, 256, struct packed_q5_k, add_q5_k)
DEFINE_BLOCK_MULTIPLY(multiply_q6_k, 256, struct packed_q6_k, add_q6_k)
