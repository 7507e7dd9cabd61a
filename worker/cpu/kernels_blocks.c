/* SPDX-License-Identifier: MIT */
/* Products of Q8_0, Q4_0 and Q5_0 weights with 8-bit activations: one scale per row and 32 columns.
 *
 * Per block: the 32 products of a row are summed exactly in integers, then scaled by weight scale ·
 * activation scale and added to the row's float sum. Blocks follow one another in the order of columns. */

#include "worker/cpu/kernels_tile.h"

LANES_INLINE void add_q8_0(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    const struct packed_q8_0 *block = packed;
    f32x8 scale = f32x8_from_f16(block->scales);
    u8x32 w[8];
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = u8x32_load(block->quants + 32 * c);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        i32x8 dot = dot_signed(w, 8, tile_quants(tile, i, 0));
        f32x8 factor = scale * f32x8_splat(tile->x->scales[tile_block(tile, i, 0)]);
        sums[i] = f32x8_fma(f32x8_from_i32(dot), factor, sums[i]);
    }
}

/* Weights of `bits` bits (a constant) that stand for value + half their range. */
LANES_INLINE void add_offset(const u8x32 w[8], const int bits, f32x8 scale, const struct tile *tile,
                             f32x8 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        size_t at = tile_block(tile, i, 0);
        const int16_t *halves = tile->x->half_sums + at * 2;
        i32x8 dot = dot_unsigned(w, 8, (1 << bits) - 1, tile_quants(tile, i, 0), i32x8_splat(1));
        dot -= i32x8_splat((1 << (bits - 1)) * (halves[0] + halves[1]));
        f32x8 factor = scale * f32x8_splat(tile->x->scales[at]);
        sums[i] = f32x8_fma(f32x8_from_i32(dot), factor, sums[i]);
    }
}

LANES_INLINE void load_nibbles(const struct packed_q4_0 *block, u8x32 w[8])
{
    UNROLLED
    for (int c = 0; c < 4; c++) {
        u8x32 both = u8x32_load(block->nibbles + 32 * c);
        w[c] = both & 15;
        w[c + 4] = u8x32_right(both, 4);
    }
}

LANES_INLINE void add_q4_0(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    const struct packed_q4_0 *block = packed;
    u8x32 w[8];
    load_nibbles(block, w);
    add_offset(w, 4, f32x8_from_f16(block->scales), tile, sums);
}

LANES_INLINE void add_q5_0(const void *packed, const struct tile *tile, f32x8 sums[TILE_MAX])
{
    const struct packed_q5_0 *block = packed;
    u8x32 w[8], tops = u8x32_load(block->tops);
    load_nibbles(&block->low, w);
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] |= (c <= 4 ? u8x32_left(tops, 4 - c) : u8x32_right(tops, c - 4)) & 16;
    add_offset(w, 5, f32x8_from_f16(block->low.scales), tile, sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q8_0, 32, struct packed_q8_0, add_q8_0)
DEFINE_BLOCK_MULTIPLY(multiply_q4_0, 32, struct packed_q4_0, add_q4_0)
DEFINE_BLOCK_MULTIPLY(multiply_q5_0, 32, struct packed_q5_0, add_q5_0)
