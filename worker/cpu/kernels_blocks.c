/* SPDX-License-Identifier: MIT */
/* Products of Q8_0, Q4_0 and Q5_0 weights with 8-bit activations: one scale per row and 32 columns.
 *
 * Per block: the 32 products of a row are summed exactly in integers, then scaled by weight scale ·
 * activation scale and added to the row's float sum. Blocks follow one another in the order of columns. */

#include "worker/cpu/kernels_tile.h"
#include "worker/cpu/kernels_unpack.h"

LANES_INLINE void add_q8_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q8_0 *block = packed;
    rows_f32 scale = rows_f32_from_f16(block->scales, tile->apart);
    rows_u8 w[8];
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = rows_u8_load(block->quants + 32 * c, tile->apart);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        size_t at = tile_block(tile, i, 0);
        rows_f32 dot = rows_dot_signed(w, tile_quants(tile, i, 0), tile->x->half_sums + at * 2);
        sums[i] = rows_f32_fma(dot, scale * rows_f32_splat(tile->x->scales[at]), sums[i]);
    }
}

/* Weights of `bits` bits (a constant) that stand for value + half their range. */
LANES_INLINE void add_offset(const rows_u8 w[8], const int bits, rows_f32 scale, const struct tile *tile,
                             rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        size_t at = tile_block(tile, i, 0);
        rows_f32 dot = rows_dot_offset(w, (1 << bits) - 1, 1 << (bits - 1), tile_quants(tile, i, 0),
                                       tile->x->half_sums + at * 2);
        sums[i] = rows_f32_fma(dot, scale * rows_f32_splat(tile->x->scales[at]), sums[i]);
    }
}

LANES_INLINE void add_q4_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_0 *block = packed;
    rows_u8 w[8];
    load_nibbles(block, tile->apart, w);
    add_offset(w, 4, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

LANES_INLINE void add_q5_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_0 *block = packed;
    rows_u8 w[8];
    load_fives(block, tile->apart, w);
    add_offset(w, 5, rows_f32_from_f16(block->low.scales, tile->apart), tile, sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q8_0, 32, struct packed_q8_0, add_q8_0)
DEFINE_BLOCK_MULTIPLY(multiply_q4_0, 32, struct packed_q4_0, add_q4_0)
DEFINE_BLOCK_MULTIPLY(multiply_q5_0, 32, struct packed_q5_0, add_q5_0)
