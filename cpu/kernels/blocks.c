/* SPDX-License-Identifier: MIT */
/* Products of weights with 8-bit activations: formats with one scale per row and 32 columns.
 *
 * Per block: the 32 products of a row are summed exactly in integers, then scaled by weight scale ·
 * activation scale and added to the row's float sum, and so is the minimum times the activations' own sum,
 * where there is one. Blocks follow one another in the order of columns. */

#include "cpu/kernels/tile.h"
#include "cpu/kernels/unpack.h"
#include "gguf/blocks.h"

/* Weights that are signed bytes. */
LANES_INLINE void add_signed(rows_u8 w[8], rows_f32 scale, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    rows_arrange(w);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        rows_f32 dot = rows_dot_signed(rows_weights(w, i), tile_quants(tile, i, 0), tile_halves(tile, i, 0));
        sums[i] = rows_f32_fma(dot, rows_f32_of(scale, i) * tile_scale(tile, i, 0), sums[i]);
    }
}

#if !defined(LANES_AVX2) /* which has its own: avx2.c */

LANES_INLINE void add_q8_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q8_0 *block = packed;
    rows_u8 w[8];
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = rows_u8_load(block->quants + 32 * c, tile->apart);
    add_signed(w, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

/* Weights of `bits` bits (a constant) that stand for value + half their range. */
LANES_INLINE void add_offset(rows_u8 w[8], const int bits, rows_f32 scale, const struct tile *tile,
                             rows_f32 sums[TILE_MAX])
{
    rows_arrange(w);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        rows_f32 dot = rows_dot_offset(rows_weights(w, i), (1 << bits) - 1, 1 << (bits - 1),
                                       tile_quants(tile, i, 0), tile_halves(tile, i, 0));
        sums[i] = rows_f32_fma(dot, rows_f32_of(scale, i) * tile_scale(tile, i, 0), sums[i]);
    }
}

LANES_INLINE void add_q4_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_0 *block = packed;
    rows_u8 w[8];
    load_nibbles(block->nibbles, tile->apart, w);
    add_offset(w, 4, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

LANES_INLINE void add_q5_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_0 *block = packed;
    rows_u8 w[8];
    load_fives(block, tile->apart, w);
    add_offset(w, 5, rows_f32_from_f16(block->low.scales, tile->apart), tile, sums);
}

DEFINE_ASKING_MULTIPLY(multiply_q8_0, 32, struct packed_q8_0, ASK_NEAREST, add_q8_0)
DEFINE_ASKING_MULTIPLY(multiply_q4_0, 32, struct packed_q4_0, ASK_NEAREST, add_q4_0)
DEFINE_BLOCK_MULTIPLY(multiply_q5_0, 32, struct packed_q5_0, add_q5_0)

#endif

/* Weights of `bits` bits (a constant) with a minimum. */
LANES_INLINE void add_minimum(rows_u8 w[8], const int bits, rows_f32 scale, rows_f32 min,
                              const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    rows_arrange(w);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        rows_f32 dot = rows_dot_offset(rows_weights(w, i), (1 << bits) - 1, 0, tile_quants(tile, i, 0),
                                       tile_halves(tile, i, 0));
        sums[i] = rows_f32_fma(dot, rows_f32_of(scale, i) * tile_scale(tile, i, 0), sums[i]);
        sums[i] = rows_f32_fma(rows_f32_of(min, i), tile_sum(tile, i, 0), sums[i]);
    }
}

LANES_INLINE void add_q5_1(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_1 *block = packed;
    rows_u8 w[8];
    load_fives(&block->low, tile->apart, w);
    add_minimum(w, 5, rows_f32_from_f16(block->low.low.scales, tile->apart),
                rows_f32_from_f16(block->mins, tile->apart), tile, sums);
}

/* Nibbles that are places in a table. */
LANES_INLINE void add_entries(const uint8_t nibbles[4 * 32], const int8_t table[16], rows_f32 scale,
                              const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    rows_u8 w[8];
    load_nibbles(nibbles, tile->apart, w);
    UNROLLED
    for (int c = 0; c < 8; c++)
        w[c] = rows_u8_entries(table, w[c]);
    add_signed(w, scale, tile, sums);
}

LANES_INLINE void add_iq4_nl(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_iq4_nl *block = packed;
    add_entries(block->low.nibbles, block_iq4_values, rows_f32_from_f16(block->low.scales, tile->apart), tile,
                sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q5_1, 32, struct packed_q5_1, add_q5_1)
DEFINE_BLOCK_MULTIPLY(multiply_iq4_nl, 32, struct packed_iq4_nl, add_iq4_nl)

#if !defined(LANES_AVX2)

LANES_INLINE void add_q4_1(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_1 *block = packed;
    rows_u8 w[8];
    load_nibbles(block->low.nibbles, tile->apart, w);
    add_minimum(w, 4, rows_f32_from_f16(block->low.scales, tile->apart),
                rows_f32_from_f16(block->mins, tile->apart), tile, sums);
}

LANES_INLINE void add_mxfp4(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_mxfp4 *block = packed;
    add_entries(block->nibbles, block_mxfp4_values, scales_of_exponents(block->exponents, tile->apart), tile,
                sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q4_1, 32, struct packed_q4_1, add_q4_1)
DEFINE_BLOCK_MULTIPLY(multiply_mxfp4, 32, struct packed_mxfp4, add_mxfp4)

#endif
