/* SPDX-License-Identifier: MIT */
/* Products of weights with 8-bit activations: formats with 256 columns to a float scale, and integer scales
 * inside.
 *
 * Per block of 32 columns the products and the integer scales are summed exactly in integers; each block is
 * multiplied by its activation scale and added to the superblock's sum, which the float scale then brings
 * into the row's. Minimums (Q2_K, Q4_K, Q5_K) are summed the same way from the activations' own sums; the
 * offsets of Q3_K and Q6_K are taken off in integers. */

#include "cpu/kernels/tile.h"
#include "cpu/kernels/unpack.h"
#include "gguf/blocks.h"

/* What a superblock's blocks have made, times its scales. */
LANES_INLINE void add_scaled(const rows_f32 inner[TILE_MAX], rows_f32 scale, const struct tile *tile,
                             rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(inner[i], rows_f32_of(scale, i), sums[i]);
}

/* Block j, whose halves have scales of their own, its weights of `bits` bits (a constant) with an offset of
 * half their range. */
LANES_INLINE void add_halves(rows_u8 w[8], const int bits, const int8_t scales[2][8], const int j,
                             const struct tile *tile, rows_f32 inner[TILE_MAX])
{
    const rows_i32 factors[2] = {rows_i32_from_i8(scales[0], tile->apart),
                                 rows_i32_from_i8(scales[1], tile->apart)};
    rows_arrange(w);
    UNROLLED
    for (int i = 0; i < tile->n; i++) {
        uint32_t column = (uint32_t)j * 32;
        const rows_i32 own[2] = {rows_i32_of(factors[0], i), rows_i32_of(factors[1], i)};
        rows_f32 dot = rows_dot_halves(rows_weights(w, i), (1 << bits) - 1, 1 << (bits - 1),
                                       tile_quants(tile, i, column), tile_halves(tile, i, column), own);
        inner[i] = rows_f32_fma(dot, tile_scale(tile, i, column), inner[i]);
    }
}

#if !defined(LANES_AVX2) /* which has its own: avx2.c */

/* Takes off the minimums of Q4_K and Q5_K. In a loop of its own: beside the products the sums would not all
 * stay in registers. */
LANES_INLINE void take_off_minimums(const struct packed_q4_k *block, const struct tile *tile,
                                    rows_f32 sums[TILE_MAX])
{
    rows_f32 mins[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        mins[i] = rows_f32_splat(0);
    for (int j = 0; j < 8; j++) {
        rows_f32 min = rows_f32_from_i32(rows_i32_from_u8(block->block_mins[j], tile->apart));
        UNROLLED
        for (int i = 0; i < tile->n; i++)
            mins[i] = rows_f32_fma(rows_f32_of(min, i), tile_sum(tile, i, (uint32_t)j * 32), mins[i]);
    }
    add_scaled(mins, -rows_f32_from_f16(block->min_scales, tile->apart), tile, sums);
}

/* Q4_K and Q5_K, of `bits` bits. */
LANES_INLINE void add_with_minimums(const struct packed_q4_k *block, const uint8_t *tops, const int bits,
                                    const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    rows_f32 inner[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = rows_f32_splat(0);
    for (int p = 0; p < 4; p++) {
        rows_u8 w[2][8];
        tile_ask(tile, p, 4, sizeof *block, true);
        load_pair(block->nibbles[p], tops, tile->apart, bits, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++) {
            int j = 2 * p + h;
            rows_i32 scale = rows_i32_from_u8(block->block_scales[j], tile->apart);
            rows_arrange(w[h]);
            UNROLLED
            for (int i = 0; i < tile->n; i++) {
                uint32_t column = (uint32_t)j * 32;
                rows_f32 dot = rows_dot_scaled(rows_weights(w[h], i), (1 << bits) - 1,
                                               tile_quants(tile, i, column), rows_i32_of(scale, i));
                inner[i] = rows_f32_fma(dot, tile_scale(tile, i, column), inner[i]);
            }
        }
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
    take_off_minimums(block, tile, sums);
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
        tile_ask(tile, p, 4, sizeof *block, false);
        load_pair(block->nibbles[p], block->tops[p / 2], tile->apart, 6, p, w[0], w[1]);
        UNROLLED
        for (int h = 0; h < 2; h++)
            add_halves(w[h], 6, block->block_scales[2 * p + h], 2 * p + h, tile, inner);
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

DEFINE_ASKING_MULTIPLY(multiply_q4_k, 256, struct packed_q4_k, ASK_IN_PARTS, add_q4_k)
DEFINE_BLOCK_MULTIPLY(multiply_q5_k, 256, struct packed_q5_k, add_q5_k)
DEFINE_ASKING_MULTIPLY(multiply_q6_k, 256, struct packed_q6_k, ASK_IN_PARTS, add_q6_k)

#endif

LANES_INLINE void add_q3_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q3_k *block = packed;
    rows_f32 inner[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = rows_f32_splat(0);
    for (int j = 0; j < 8; j++) {
        rows_u8 w[8];
        load_pairs(block->pairs, tile->apart, j, w);
        UNROLLED
        for (int c = 0; c < 8; c++) {
            rows_u8 top = rows_u8_right(rows_u8_load(block->tops + 32 * c, tile->apart), j);
            w[c] |= rows_u8_left(top, 2) & 4;
        }
        add_halves(w, 3, block->block_scales[j], j, tile, inner);
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

LANES_INLINE void add_q2_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q2_k *block = packed;
    rows_f32 inner[TILE_MAX], mins[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = mins[i] = rows_f32_splat(0);
    for (int j = 0; j < 8; j++) {
        const rows_i32 both[2] = {rows_i32_from_u8(block->block_scales[j][0], tile->apart),
                                  rows_i32_from_u8(block->block_scales[j][1], tile->apart)};
        const rows_i32 factors[2] = {both[0] & 15, both[1] & 15};
        rows_u8 w[8];
        const rows_i32 min_factors[2] = {both[0] >> 4, both[1] >> 4};
        load_pairs(block->pairs, tile->apart, j, w);
        rows_arrange(w);
        UNROLLED
        for (int i = 0; i < tile->n; i++) {
            uint32_t column = (uint32_t)j * 32;
            const rows_i32 own[2] = {rows_i32_of(factors[0], i), rows_i32_of(factors[1], i)};
            rows_f32 scale = tile_scale(tile, i, column);
            rows_f32 dot = rows_dot_halves(rows_weights(w, i), 3, 0, tile_quants(tile, i, column),
                                           tile_halves(tile, i, column), own);
            rows_i32 min = rows_i32_of(min_factors[0], i) * tile_half_sum(tile, i, column, 0) +
                           rows_i32_of(min_factors[1], i) * tile_half_sum(tile, i, column, 1);
            inner[i] = rows_f32_fma(dot, scale, inner[i]);
            mins[i] = rows_f32_fma(rows_f32_from_i32(min), scale, mins[i]);
        }
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
    add_scaled(mins, -rows_f32_from_f16(block->min_scales, tile->apart), tile, sums);
}

LANES_INLINE void add_iq4_xs(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_iq4_xs *block = packed;
    rows_f32 inner[TILE_MAX];
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        inner[i] = rows_f32_splat(0);
    for (int j = 0; j < 8; j++) {
        rows_f32 factor = rows_f32_from_i32(rows_i32_from_i8(block->block_scales[j], tile->apart));
        rows_u8 w[8];
        UNROLLED
        for (int c = 0; c < 4; c++) {
            rows_u8 both = rows_u8_load(block->nibbles[j] + 32 * c, tile->apart);
            w[c] = rows_u8_entries(block_iq4_values, both & 15);
            w[c + 4] = rows_u8_entries(block_iq4_values, rows_u8_right(both, 4));
        }
        rows_arrange(w);
        UNROLLED
        for (int i = 0; i < tile->n; i++) {
            uint32_t column = (uint32_t)j * 32;
            /* 32 · 127 · 127 · 32 is below 2^24: times the factor it is exact still. */
            rows_f32 dot = rows_dot_signed(rows_weights(w, i), tile_quants(tile, i, column),
                                           tile_halves(tile, i, column));
            inner[i] = rows_f32_fma(dot * rows_f32_of(factor, i), tile_scale(tile, i, column), inner[i]);
        }
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q2_k, 256, struct packed_q2_k, add_q2_k)
DEFINE_BLOCK_MULTIPLY(multiply_q3_k, 256, struct packed_q3_k, add_q3_k)
DEFINE_BLOCK_MULTIPLY(multiply_iq4_xs, 256, struct packed_iq4_xs, add_iq4_xs)
