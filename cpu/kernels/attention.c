/* SPDX-License-Identifier: MIT */
/* Attention of a few queries over one KV block, and how its numbers become floats.
 *
 * Lanes are the block's tokens while scores are made, and dimensions while values are summed. The softmax is
 * kept running from block to block (Milakov and Gimelshein 2018, arXiv:1805.02867): a block with a larger
 * score rescales what was summed before it. Only tokens the queries may see are touched on the value side:
 * what lies beyond them is another sequence's past, perhaps not even finite, and zero times infinity is no
 * zero.
 *
 * Several queries share the loads of keys and values. Each is summed in an order of its own, so it has the
 * same bits alone. */

#include "cpu/kernels/build.h"
#include "cpu/lanes/rows.h"

/* Vectors are as wide as the build has them; sums of as many queries at once as registers hold. */
#define WIDTH         LANES_ROWS
#define SCORE_VECTORS (KERNELS_TOKENS / WIDTH)
#define SCORE_EIGHTS  (KERNELS_TOKENS / 8)
#define QUERIES       (WIDTH == 16 ? KERNELS_QUERIES : 2)
#define VALUE_VECTORS (32 / WIDTH)

typedef float token_weights[KERNELS_TOKENS];

/* What queries make of a block: the weights of its tokens, and the factors of what was summed before it. */
struct weighing {
    const token_weights *weights;
    const float *rescale;
};

/* A vector of numbers from the `at`-th on. */
LANES_INLINE rows_f32 numbers_at(const float *floats, const uint16_t *halves, const bool is_half,
                                 const int at)
{
    return is_half ? rows_f32_from_f16_all(halves + at) : rows_f32_load_all(floats + at);
}

/* Asks for n halves, a constant: blocks of a head lie far apart, so that the processor's own prefetching
 * begins anew with each. A line at a time, between what is done with others (docs/PERFORMANCE.md, step 23).
 */
LANES_INLINE void ask_for(const uint16_t *halves, const int n)
{
    for (int i = 0; i < n; i += 32)
        __builtin_prefetch(halves + i, 0, 3);
}

/* n and n_vectors are constants: dimensions d … d + n_vectors · WIDTH − 1. */
LANES_INLINE void weigh_some(const struct attended_block *block, const bool is_half,
                             const struct attending *queries, const int n, const struct weighing weighing,
                             const int n_vectors, uint32_t d)
{
    rows_f32 sum[KERNELS_QUERIES][VALUE_VECTORS];
    UNROLLED
    for (int q = 0; q < n; q++)
        UNROLLED
    for (int i = 0; i < n_vectors; i++)
        sum[q][i] = rows_f32_load_all(queries[q].softmax->values + d + WIDTH * i) *
                    rows_f32_splat(weighing.rescale[q]);
    for (uint32_t t = block->first; t < block->end; t++) {
        const size_t at = t * block->value_dim + d;
        const float *value = is_half ? NULL : block->values + at;
        const uint16_t *half = is_half ? block->half_values + at : NULL;
        if (is_half)
            ask_for(block->next_values + at, n_vectors * WIDTH);
        UNROLLED
        for (int i = 0; i < n_vectors; i++) {
            rows_f32 v = numbers_at(value, half, is_half, WIDTH * i);
            UNROLLED
            for (int q = 0; q < n; q++)
                sum[q][i] = rows_f32_fma(rows_f32_splat(weighing.weights[q][t]), v, sum[q][i]);
        }
    }
    UNROLLED
    for (int q = 0; q < n; q++)
        UNROLLED
    for (int i = 0; i < n_vectors; i++)
        rows_f32_store(queries[q].softmax->values + d + WIDTH * i, sum[q][i]);
}

LANES_INLINE void weigh_values(const struct attended_block *block, const bool is_half,
                               const struct attending *queries, const int n, const struct weighing weighing)
{
    const uint32_t value_dim = block->value_dim;
    uint32_t d = 0;
    for (; value_dim - d >= VALUE_VECTORS * WIDTH; d += VALUE_VECTORS * WIDTH)
        weigh_some(block, is_half, queries, n, weighing, VALUE_VECTORS, d);
    for (; value_dim - d >= WIDTH; d += WIDTH)
        weigh_some(block, is_half, queries, n, weighing, 1, d);
    if (d < value_dim) /* half a vector */
        for (int q = 0; q < n; q++) {
            float *acc = queries[q].softmax->values + d;
            f32x8 sum = f32x8_load(acc) * f32x8_splat(weighing.rescale[q]);
            for (uint32_t t = block->first; t < block->end; t++) {
                const size_t at = (size_t)t * value_dim + d;
                f32x8 v = is_half ? f32x8_from_f16(block->half_values + at) : f32x8_load(block->values + at);
                sum = f32x8_fma(f32x8_splat(weighing.weights[q][t]), v, sum);
            }
            f32x8_store(acc, sum);
        }
}

LANES_INLINE void score(const struct attended_block *block, const bool is_half,
                        const struct attending *queries, const int n, token_weights *scores)
{
    rows_f32 sum[KERNELS_QUERIES][SCORE_VECTORS];
    UNROLLED
    for (int q = 0; q < n; q++)
        UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        sum[q][i] = rows_f32_splat(0);
    for (uint32_t d = 0; d < block->dim; d++) {
        const size_t at = d * KERNELS_TOKENS;
        const float *keys = is_half ? NULL : block->keys + at;
        const uint16_t *halves = is_half ? block->half_keys + at : NULL;
        if (is_half)
            ask_for(block->next_keys + at, KERNELS_TOKENS);
        UNROLLED
        for (int i = 0; i < SCORE_VECTORS; i++) {
            rows_f32 key = numbers_at(keys, halves, is_half, WIDTH * i);
            UNROLLED
            for (int q = 0; q < n; q++)
                sum[q][i] = rows_f32_fma(rows_f32_splat(queries[q].query[d]), key, sum[q][i]);
        }
    }
    UNROLLED
    for (int q = 0; q < n; q++)
        UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        rows_f32_store(scores[q] + WIDTH * i, sum[q][i]);
}

/* Makes weights of the scores, for the softmax so far; returns the factor of what was summed before. What the
 * query does not see weighs nothing. */
static float weigh_scores(const struct attended_block *block, token_weights scores,
                          struct running_softmax *softmax)
{
    f32x8 eights[SCORE_EIGHTS], largest = f32x8_splat(-INFINITY), total = f32x8_splat(0);
    UNROLLED
    for (int i = 0; i < SCORE_EIGHTS; i++) {
        i32x8 token = (i32x8){0, 1, 2, 3, 4, 5, 6, 7} + 8 * i;
        i32x8 seen = (token >= (int32_t)block->first) & (token < (int32_t)block->end);
        eights[i] = f32x8_load(scores + 8 * i);
        if (block->cap > 0)
            eights[i] = f32x8_soft_cap(eights[i], block->cap);
        eights[i] = f32x8_select(seen, eights[i], f32x8_splat(-INFINITY));
        largest = f32x8_max(eights[i], largest);
    }
    float before = softmax->largest, now = f32x8_largest(largest);
    if (before > now)
        now = before;
    UNROLLED
    for (int i = 0; i < SCORE_EIGHTS; i++) {
        f32x8 weight = f32x8_exp(eights[i] - f32x8_splat(now));
        f32x8_store(scores + 8 * i, weight);
        total += weight;
    }
    float rescale = f32x8_exp(f32x8_splat(before - now))[0];
    softmax->largest = now;
    softmax->sum = softmax->sum * rescale + f32x8_sum(total);
    return rescale;
}

LANES_INLINE void attend_some(const struct attended_block *block, const bool is_half,
                              const struct attending *queries, const int n)
{
    token_weights weights[KERNELS_QUERIES];
    float rescale[KERNELS_QUERIES];
    score(block, is_half, queries, n, weights);
    for (int q = 0; q < n; q++)
        rescale[q] = weigh_scores(block, weights[q], queries[q].softmax);
    weigh_values(block, is_half, queries, n, (struct weighing){weights, rescale});
}

/* As many at once as share registers, by the powers of two below that. */
LANES_INLINE void attend_all(const struct attended_block *block, const bool is_half,
                             const struct attending *queries, uint32_t n)
{
    for (; n >= QUERIES; n -= QUERIES, queries += QUERIES)
        attend_some(block, is_half, queries, QUERIES);
    if (QUERIES > 4 && n >= 4) {
        attend_some(block, is_half, queries, 4);
        n -= 4, queries += 4;
    }
    if (QUERIES > 2 && n >= 2) {
        attend_some(block, is_half, queries, 2);
        n -= 2, queries += 2;
    }
    if (n == 1)
        attend_some(block, is_half, queries, 1);
}

void LANES_NAMED(attend)(const struct attended_block *block, const struct attending *queries, uint32_t n)
{
    if (block->keys)
        attend_all(block, false, queries, n);
    else
        attend_all(block, true, queries, n);
}

void LANES_NAMED(halves_to_floats)(const uint16_t *in, uint32_t n, float *out)
{
    uint32_t i = 0;
    for (; n - i >= WIDTH; i += WIDTH)
        rows_f32_store(out + i, rows_f32_from_f16_all(in + i));
    if (i < n) /* half a vector */
        f32x8_store(out + i, f32x8_from_f16(in + i));
}
