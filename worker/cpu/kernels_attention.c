/* SPDX-License-Identifier: MIT */
/* Attention of one query head over one KV block.
 *
 * Lanes are the block's tokens while scores are made, and dimensions while values are summed. The softmax is
 * kept running from block to block (Milakov and Gimelshein 2018, arXiv:1805.02867): a block with a larger
 * score rescales what was summed before it. Only tokens the query may see are touched on the value side: what
 * lies beyond them is another sequence's past, perhaps not even finite, and zero times infinity is no zero.
 */

#include "worker/cpu/kernels_set.h"

#define SCORE_VECTORS (KERNELS_TOKENS / 8)

static void weigh_values(const float *weights, const float *values, uint32_t value_dim, uint32_t n_tokens,
                         float rescale, float *acc)
{
    uint32_t d = 0;
    for (; value_dim - d >= 32; d += 32) {
        f32x8 sum[4];
        UNROLLED
        for (int i = 0; i < 4; i++)
            sum[i] = f32x8_load(acc + d + 8 * i) * f32x8_splat(rescale);
        for (uint32_t t = 0; t < n_tokens; t++)
            UNROLLED
        for (int i = 0; i < 4; i++)
            sum[i] =
                f32x8_fma(f32x8_splat(weights[t]), f32x8_load(values + t * value_dim + d + 8 * i), sum[i]);
        UNROLLED
        for (int i = 0; i < 4; i++)
            f32x8_store(acc + d + 8 * i, sum[i]);
    }
    for (; d < value_dim; d += 8) {
        f32x8 sum = f32x8_load(acc + d) * f32x8_splat(rescale);
        for (uint32_t t = 0; t < n_tokens; t++)
            sum = f32x8_fma(f32x8_splat(weights[t]), f32x8_load(values + t * value_dim + d), sum);
        f32x8_store(acc + d, sum);
    }
}

void LANES_NAMED(attend)(const float *query, const float *keys, uint32_t dim, const float *values,
                         uint32_t value_dim, uint32_t n_tokens, float largest_and_sum[2], float *acc)
{
    f32x8 scores[SCORE_VECTORS];
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        scores[i] = f32x8_splat(0);
    for (uint32_t d = 0; d < dim; d++)
        UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        scores[i] =
            f32x8_fma(f32x8_splat(query[d]), f32x8_load(keys + d * KERNELS_TOKENS + 8 * i), scores[i]);

    f32x8 largest = f32x8_splat(-INFINITY);
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++) {
        i32x8 token = (i32x8){0, 1, 2, 3, 4, 5, 6, 7} + 8 * i;
        scores[i] = f32x8_select(token < (int32_t)n_tokens, scores[i], f32x8_splat(-INFINITY));
        largest = f32x8_max(scores[i], largest);
    }
    float before = largest_and_sum[0], now = f32x8_largest(largest);
    if (before > now)
        now = before;

    float weights[KERNELS_TOKENS];
    f32x8 total = f32x8_splat(0);
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++) {
        f32x8 weight = f32x8_exp(scores[i] - f32x8_splat(now));
        f32x8_store(weights + 8 * i, weight);
        total += weight;
    }
    float rescale = f32x8_exp(f32x8_splat(before - now))[0];
    largest_and_sum[0] = now;
    largest_and_sum[1] = largest_and_sum[1] * rescale + f32x8_sum(total);
    weigh_values(weights, values, value_dim, n_tokens, rescale, acc);
}
