/* SPDX-License-Identifier: MIT */
/* Products of Q4_K, Q5_K and Q6_K weights with 8-bit activations: 256 columns to a float scale, with integer
 * scales inside.
 *
 * Per block of 32 columns the products and the integer scales are summed exactly in integers; each block is
 * multiplied by its activation scale and added to the superblock's sum, which the float scale then brings
 * into the row's. Minimums (Q4_K, Q5_K) are summed the same way from the activations' block sums; the offset
 * of Q6_K is taken off in integers. */

#include "worker/cpu/kernels_tile.h"

/* The two blocks of pair p as eight chunks of bytes each, for a format with `bits` bits a weight (constant).
 * The loop over pairs is not unrolled: the code of a tile would outgrow the instruction cache. */
LANES_INLINE void load_pair(const uint8_t *nibbles, const uint8_t *tops, const int bits, const int p,
                            u8x32 even[8], u8x32 odd[8])
{
    UNROLLED
    for (int c = 0; c < 8; c++) {
        u8x32 both = u8x32_load(nibbles + 32 * c);
        even[c] = both & 15;
        odd[c] = u8x32_right(both, 4);
        if (bits == 5) {
            u8x32 top = u8x32_right(u8x32_load(tops + 32 * c), 2 * p);
            even[c] |= u8x32_left(top, 4) & 16;
            odd[c] |= u8x32_left(top, 3) & 16;
        } else if (bits == 6) {
            u8x32 top = u8x32_right(u8x32_load(tops + 32 * c), 4 * (p % 2));
            even[c] |= u8x32_left(top, 4) & 48;
            odd[c] |= u8x32_left(top, 2) & 48;
        }
    }
}

/* Q4_K and Q5_K, of `bits` bits. */
LANES_INLINE void add_with_minimums(const struct packed_q4_k *block, const uint8_t *tops, const int bits,
                                    const struct tile *tile, f32x8 sums[TILE_MAX])
{
    f32x8 inner[TILE_MAX], mins[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = mins[i] = f32x8_splat(0);
    for (int p = 0; p < 4; p++) {
        u8x32 w[2][8];
        load_pair(block->nibbles[p], tops, bits, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++) {
            int j = 2 * p + h;
            i32x8 scale = i32x8_from_u8(block->block_scales[j]);
            f32x8 min = f32x8_from_i32(i32x8_from_u8(block->block_mins[j]));
            UNROLLED
            for (int i = 0; i < tile->n; i++) {
                uint32_t column = (uint32_t)j * 32;
                size_t at = tile_block(tile, i, column);
                i32x8 dot = dot_unsigned(w[h], 8, (1 << bits) - 1, tile_quants(tile, i, column), scale);
                inner[i] = f32x8_fma(f32x8_from_i32(dot), f32x8_splat(tile->x->scales[at]), inner[i]);
                mins[i] = f32x8_fma(min, f32x8_splat(tile->x->sums[at]), mins[i]);
            }
        }
    }
    f32x8 scale = f32x8_from_f16(block->scales), min_scale = f32x8_from_f16(block->min_scales);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        sums[i] = f32x8_fma(inner[i], scale, sums[i]);
        sums[i] = f32x8_fma(mins[i], -min_scale, sums[i]);
    }
}

LANES_INLINE void add_q4_k(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    add_with_minimums(packed, NULL, 4, tile, sums);
}

LANES_INLINE void add_q5_k(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    const struct packed_q5_k *block = packed;
    add_with_minimums(&block->low, block->tops, 5, tile, sums);
}

LANES_INLINE void add_q6_k(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    const struct packed_q6_k *block = packed;
    f32x8 inner[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = f32x8_splat(0);
    for (int p = 0; p < 4; p++) {
        u8x32 w[2][8];
        load_pair(block->nibbles[p], block->tops[p / 2], 6, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++) {
            int j = 2 * p + h;
            i32x8 scale0 = i32x8_from_i8(block->block_scales[j][0]);
            i32x8 scale1 = i32x8_from_i8(block->block_scales[j][1]);
            UNROLLED
            for (int i = 0; i < tile->n; i++) {
                uint32_t column = (uint32_t)j * 32;
                size_t at = tile_block(tile, i, column);
                const int8_t *quants = tile_quants(tile, i, column);
                i32x8 dot = dot_unsigned(w[h], 4, 63, quants, scale0) +
                            dot_unsigned(w[h] + 4, 4, 63, quants + 16, scale1);
                dot -= weighted_pair(scale0, scale1, tile->x->half_sums + 2 * at) << 5;
                inner[i] = f32x8_fma(f32x8_from_i32(dot), f32x8_splat(tile->x->scales[at]), inner[i]);
            }
        }
    }
    f32x8 scale = f32x8_from_f16(block->scales);
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = f32x8_fma(inner[i], scale, sums[i]);
}

DEFINE_BLOCK_MULTIPLY(multiply_q4_k, 256, struct packed_q4_k, add_q4_k)
DEFINE_BLOCK_MULTIPLY(multiply_q5_k, 256, struct packed_q5_k, add_q5_k)
DEFINE_BLOCK_MULTIPLY(multiply_q6_k, 256, struct packed_q6_k, add_q6_k)
