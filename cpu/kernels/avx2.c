/* SPDX-License-Identifier: MIT */
/* Products with AVX2 alone, for the formats that most models are made of.
 *
 * Without an instruction that adds four products of bytes to a lane of 32 bits, two are added in 16 bits and
 * several such sums before they are widened: eight of Q4_K's chunks, four where weights have five bits, two
 * where they have six, one of bytes. Sixteen registers do not hold a block's eight chunks, as many sums and
 * what is between. So a chunk is unpacked when its turn comes and meets all rows of the tile before the next
 * one: what stays in registers are the sums, and a row's activations are broadcast as they are met.
 *
 * Integers are exact in any order, and floats are added in the order of blocks.c and
 * superblocks.c, so the bits are theirs. */

#include "cpu/kernels/tile.h"
#include "cpu/kernels/unpack.h"
#include "gguf/blocks.h"

/* Compilers would turn a chain of additions into a tree, which needs registers that there are not. */
#define IN_ORDER(v) __asm__("" : "+x"(v))

/* Where a block's weights are, and how its chunk c is unpacked. */
struct weights {
    const uint8_t *low, *tops;
    int bits; /* by which the tops are pushed */
};
typedef __m256i chunk_of(const struct weights *weights, int c);

LANES_INLINE __m256i load(const uint8_t *p)
{
    return _mm256_loadu_si256((const __m256i *)(const void *)p);
}

LANES_INLINE __m256i bits_of(__m256i v, int mask)
{
    return _mm256_and_si256(v, _mm256_set1_epi8((char)mask));
}

LANES_INLINE __m256i activations_of(const struct tile *tile, int i, uint32_t column, int c)
{
    return four_activations(tile_quants(tile, i, column) + 4 * c);
}

/* totals[i] = factors · Σ w · x over eight chunks of weights up to 15, whose sums fit 16 bits. */
LANES_INLINE void add_eight(chunk_of *chunk, const struct weights *weights, const struct tile *tile,
                            uint32_t column, __m256i factors, __m256i totals[TILE_MAX])
{
    UNROLLED
    for (int c = 0; c < 8; c++) {
        __m256i w = chunk(weights, c);
        UNROLLED
        for (int i = 0; i < tile->n; i++) {
            __m256i two = _mm256_maddubs_epi16(w, activations_of(tile, i, column, c));
            totals[i] = c ? _mm256_add_epi16(totals[i], two) : two;
            IN_ORDER(totals[i]);
        }
    }
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        totals[i] = _mm256_madd_epi16(totals[i], factors);
}

/* totals[i] += factors · Σ w · x over the four chunks from `first` on, of which `run` fit 16 bits. */
LANES_INLINE void add_runs(chunk_of *chunk, const struct weights *weights, const int first, const int run,
                           const struct tile *tile, uint32_t column, __m256i factors,
                           __m256i totals[TILE_MAX])
{
    UNROLLED
    for (int c = first; c < first + 4; c += run) {
        __m256i w[4];
        UNROLLED
        for (int k = 0; k < run; k++)
            w[k] = chunk(weights, c + k);
        UNROLLED
        for (int i = 0; i < tile->n; i++) {
            __m256i sum = _mm256_maddubs_epi16(w[0], activations_of(tile, i, column, c));
            UNROLLED
            for (int k = 1; k < run; k++) {
                sum =
                    _mm256_add_epi16(sum, _mm256_maddubs_epi16(w[k], activations_of(tile, i, column, c + k)));
                IN_ORDER(sum);
            }
            totals[i] = _mm256_add_epi32(totals[i], _mm256_madd_epi16(sum, factors));
            IN_ORDER(totals[i]);
        }
    }
}

/* first · halves[0] + last · halves[1] of every row; `both` has the factors as words beside each other. */
LANES_INLINE void begin_with_halves(const struct tile *tile, uint32_t column, __m256i both,
                                    __m256i totals[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        totals[i] = _mm256_madd_epi16(both, four_activations((const int8_t *)tile_halves(tile, i, column)));
}

/* sums[i] += totals[i] · the scale of row i's activations. */
LANES_INLINE void add_totals(const __m256i totals[TILE_MAX], const struct tile *tile, uint32_t column,
                             rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(rows_f32_from_i32((i32x8)totals[i]), tile_scale(tile, i, column), sums[i]);
}

LANES_INLINE void add_scaled(const rows_f32 inner[TILE_MAX], rows_f32 scale, const struct tile *tile,
                             rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(inner[i], scale, sums[i]);
}

/* ---- 256 columns to a scale ---- */

LANES_INLINE __m256i even_nibbles(const struct weights *weights, int c)
{
    return bits_of(load(weights->low + 32 * c), 15);
}

LANES_INLINE __m256i odd_nibbles(const struct weights *weights, int c)
{
    return bits_of(_mm256_srli_epi16(load(weights->low + 32 * c), 4), 15);
}

/* The minimums of a superblock, after its products. */
LANES_INLINE void add_minimums(const struct packed_q4_k *block, const struct tile *tile,
                               rows_f32 sums[TILE_MAX])
{
    rows_f32 mins[TILE_MAX];
    clear_sums(mins, tile->n);
    for (int j = 0; j < 8; j++) {
        rows_f32 min = rows_f32_from_i32(rows_i32_from_u8(block->block_mins[j], tile->apart));
        UNROLLED
        for (int i = 0; i < tile->n; i++)
            mins[i] = rows_f32_fma(min, tile_sum(tile, i, (uint32_t)j * 32), mins[i]);
    }
    add_scaled(mins, -rows_f32_from_f16(block->min_scales, tile->apart), tile, sums);
}

/* Block j of a superblock, its weights up to 15. */
LANES_INLINE void add_small(chunk_of *chunk, const struct weights *weights, const uint8_t scales[8], int j,
                            const struct tile *tile, rows_f32 inner[TILE_MAX])
{
    __m256i totals[TILE_MAX];
    add_eight(chunk, weights, tile, (uint32_t)j * 32, words_twice(rows_i32_from_u8(scales, 0)), totals);
    add_totals(totals, tile, (uint32_t)j * 32, inner);
}

LANES_INLINE void add_q4_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_k *block = packed;
    rows_f32 inner[TILE_MAX];
    clear_sums(inner, tile->n);
    for (int p = 0; p < 4; p++) {
        const struct weights weights = {.low = block->nibbles[p]};
        add_small(even_nibbles, &weights, block->block_scales[2 * p], 2 * p, tile, inner);
        add_small(odd_nibbles, &weights, block->block_scales[2 * p + 1], 2 * p + 1, tile, inner);
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
    add_minimums(block, tile, sums);
}

/* What stands above the nibbles, pushed so that the even block's is in place. */
LANES_INLINE __m256i even_fives(const struct weights *weights, int c)
{
    __m256i top = (__m256i)rows_u8_pushed_right((u8x32)load(weights->tops + 32 * c), weights->bits);
    return _mm256_or_si256(even_nibbles(weights, c), bits_of(_mm256_slli_epi16(top, 4), 16));
}

LANES_INLINE __m256i odd_fives(const struct weights *weights, int c)
{
    __m256i top = (__m256i)rows_u8_pushed_right((u8x32)load(weights->tops + 32 * c), weights->bits);
    return _mm256_or_si256(odd_nibbles(weights, c), bits_of(_mm256_slli_epi16(top, 3), 16));
}

/* The same of weights up to 31. */
LANES_INLINE void add_fives(chunk_of *chunk, const struct weights *weights, const uint8_t scales[8], int j,
                            const struct tile *tile, rows_f32 inner[TILE_MAX])
{
    const uint32_t column = (uint32_t)j * 32;
    __m256i totals[TILE_MAX], factors = words_twice(rows_i32_from_u8(scales, 0));
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        totals[i] = _mm256_setzero_si256();
    add_runs(chunk, weights, 0, 4, tile, column, factors, totals);
    add_runs(chunk, weights, 4, 4, tile, column, factors, totals);
    add_totals(totals, tile, column, inner);
}

LANES_INLINE void add_q5_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_k *block = packed;
    rows_f32 inner[TILE_MAX];
    clear_sums(inner, tile->n);
    for (int p = 0; p < 4; p++) {
        const struct weights weights = {block->low.nibbles[p], block->tops, 2 * p};
        add_fives(even_fives, &weights, block->low.block_scales[2 * p], 2 * p, tile, inner);
        add_fives(odd_fives, &weights, block->low.block_scales[2 * p + 1], 2 * p + 1, tile, inner);
    }
    add_scaled(inner, rows_f32_from_f16(block->low.scales, tile->apart), tile, sums);
    add_minimums(&block->low, tile, sums);
}

LANES_INLINE __m256i even_sixes(const struct weights *weights, int c)
{
    __m256i top = (__m256i)rows_u8_pushed_left((u8x32)load(weights->tops + 32 * c), weights->bits);
    return _mm256_or_si256(even_nibbles(weights, c), bits_of(top, 48));
}

LANES_INLINE __m256i odd_sixes(const struct weights *weights, int c)
{
    __m256i top = (__m256i)rows_u8_pushed_left((u8x32)load(weights->tops + 32 * c), weights->bits);
    return _mm256_or_si256(odd_nibbles(weights, c), bits_of(_mm256_srli_epi16(top, 2), 48));
}

/* Block j, whose halves have scales of their own, its weights 32 too high. */
LANES_INLINE void add_sixes(chunk_of *chunk, const struct weights *weights, const int8_t scales[2][8], int j,
                            const struct tile *tile, rows_f32 inner[TILE_MAX])
{
    const uint32_t column = (uint32_t)j * 32;
    const __m256i first = words_twice(rows_i32_from_i8(scales[0], 0)),
                  last = words_twice(rows_i32_from_i8(scales[1], 0));
    __m256i totals[TILE_MAX], both = _mm256_blend_epi16(first, last, 0xaa);
    begin_with_halves(tile, column, _mm256_mullo_epi16(both, _mm256_set1_epi16(-32)), totals);
    add_runs(chunk, weights, 0, 2, tile, column, first, totals);
    add_runs(chunk, weights, 4, 2, tile, column, last, totals);
    add_totals(totals, tile, column, inner);
}

LANES_INLINE void add_q6_k(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q6_k *block = packed;
    rows_f32 inner[TILE_MAX];
    clear_sums(inner, tile->n);
    for (int p = 0; p < 4; p++) {
        const struct weights weights = {block->nibbles[p], block->tops[p / 2], 4 - 4 * (p % 2)};
        add_sixes(even_sixes, &weights, block->block_scales[2 * p], 2 * p, tile, inner);
        add_sixes(odd_sixes, &weights, block->block_scales[2 * p + 1], 2 * p + 1, tile, inner);
    }
    add_scaled(inner, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

/* ---- 32 columns to a scale ---- */

/* sums[i] += totals[i] · scale · the scale of row i's activations. */
LANES_INLINE void add_block(const __m256i totals[TILE_MAX], rows_f32 scale, const struct tile *tile,
                            rows_f32 sums[TILE_MAX])
{
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(rows_f32_from_i32((i32x8)totals[i]), scale * tile_scale(tile, i, 0), sums[i]);
}

LANES_INLINE void add_q8_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q8_0 *block = packed;
    __m256i totals[TILE_MAX];
    UNROLLED
    for (int c = 0; c < 8; c++) {
        __m256i w = load(block->quants + 32 * c), magnitude = _mm256_abs_epi8(w);
        UNROLLED
        for (int i = 0; i < tile->n; i++) {
            /* |w| · (x with w's sign): 128 · 127 · 2 fits 16 bits, so −128 is a weight like any other. */
            __m256i two = _mm256_maddubs_epi16(magnitude, _mm256_sign_epi8(activations_of(tile, i, 0, c), w));
            two = _mm256_madd_epi16(two, _mm256_set1_epi16(1));
            totals[i] = c ? _mm256_add_epi32(totals[i], two) : two;
            IN_ORDER(totals[i]);
        }
    }
    add_block(totals, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

/* Low nibbles are chunks 0 … 3, high ones 4 … 7. */
LANES_INLINE __m256i nibbles(const struct weights *weights, int c)
{
    return c < 4 ? even_nibbles(weights, c) : odd_nibbles(weights, c - 4);
}

LANES_INLINE __m256i fives(const struct weights *weights, int c)
{
    u8x32 tops = (u8x32)load(weights->tops);
    u8x32 top = (c <= 4 ? u8x32_left(tops, 4 - c) : u8x32_right(tops, c - 4)) & 16;
    return _mm256_or_si256(nibbles(weights, c), (__m256i)top);
}

LANES_INLINE void add_q4_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_0 *block = packed;
    const struct weights weights = {.low = block->nibbles};
    __m256i totals[TILE_MAX], offsets[TILE_MAX];
    add_eight(nibbles, &weights, tile, 0, _mm256_set1_epi16(1), totals);
    begin_with_halves(tile, 0, _mm256_set1_epi16(-8), offsets);
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        totals[i] = _mm256_add_epi32(totals[i], offsets[i]);
    add_block(totals, rows_f32_from_f16(block->scales, tile->apart), tile, sums);
}

LANES_INLINE void add_q5_0(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q5_0 *block = packed;
    const struct weights weights = {.low = block->low.nibbles, .tops = block->tops};
    __m256i totals[TILE_MAX];
    begin_with_halves(tile, 0, _mm256_set1_epi16(-16), totals);
    UNROLLED
    for (int c = 0; c < 8; c += 4)
        add_runs(fives, &weights, c, 4, tile, 0, _mm256_set1_epi16(1), totals);
    add_block(totals, rows_f32_from_f16(block->low.scales, tile->apart), tile, sums);
}

LANES_INLINE void add_q4_1(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_q4_1 *block = packed;
    const struct weights weights = {.low = block->low.nibbles};
    const rows_f32 min = rows_f32_from_f16(block->mins, tile->apart);
    __m256i totals[TILE_MAX];
    add_eight(nibbles, &weights, tile, 0, _mm256_set1_epi16(1), totals);
    add_block(totals, rows_f32_from_f16(block->low.scales, tile->apart), tile, sums);
    UNROLLED
    for (int i = 0; i < tile->n; i++)
        sums[i] = rows_f32_fma(min, tile_sum(tile, i, 0), sums[i]);
}

#define MXFP4_OFFSET 12 /* makes no value of the table negative, so that four of its products fit 16 bits */

LANES_INLINE __m256i raised_entries(const struct weights *weights, int c)
{
    const __m256i table = _mm256_add_epi8(
        _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)(const void *)block_mxfp4_values)),
        _mm256_set1_epi8(MXFP4_OFFSET));
    return _mm256_shuffle_epi8(table, nibbles(weights, c));
}

LANES_INLINE void add_mxfp4(const void *packed, const struct tile *tile, rows_f32 sums[TILE_MAX])
{
    const struct packed_mxfp4 *block = packed;
    const struct weights weights = {.low = block->nibbles};
    __m256i totals[TILE_MAX];
    begin_with_halves(tile, 0, _mm256_set1_epi16(-MXFP4_OFFSET), totals);
    UNROLLED
    for (int c = 0; c < 8; c += 4)
        add_runs(raised_entries, &weights, c, 4, tile, 0, _mm256_set1_epi16(1), totals);
    add_block(totals, scales_of_exponents(block->exponents, tile->apart), tile, sums);
}

DEFINE_BLOCK_MULTIPLY(multiply_q4_1, 32, struct packed_q4_1, add_q4_1)
DEFINE_BLOCK_MULTIPLY(multiply_mxfp4, 32, struct packed_mxfp4, add_mxfp4)
DEFINE_BLOCK_MULTIPLY(multiply_q8_0, 32, struct packed_q8_0, add_q8_0)
DEFINE_BLOCK_MULTIPLY(multiply_q4_0, 32, struct packed_q4_0, add_q4_0)
DEFINE_BLOCK_MULTIPLY(multiply_q5_0, 32, struct packed_q5_0, add_q5_0)
DEFINE_BLOCK_MULTIPLY(multiply_q4_k, 256, struct packed_q4_k, add_q4_k)
DEFINE_BLOCK_MULTIPLY(multiply_q5_k, 256, struct packed_q5_k, add_q5_k)
DEFINE_BLOCK_MULTIPLY(multiply_q6_k, 256, struct packed_q6_k, add_q6_k)
