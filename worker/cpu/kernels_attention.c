/* SPDX-License-Identifier: MIT */
/* Attention of one query head over one KV block.
 *
 * Lanes are the block's tokens while scores are made, and dimensions while values are summed. The softmax is
 * kept running from block to block (Milakov and Gimelshein 2018, arXiv:1805.02867): a block with a larger
 * score rescales what was summed before it. Only tokens the query may see are touched on the value side: what
 * lies beyond them is another sequence's past, perhaps not even finite, and zero times infinity is no zero.
 */

#include "worker/cpu/kernels_build.h"

#define SCORE_VECTORS (KERNELS_TOKENS / 8)

static void weigh_values(const struct attended_block *block, const float *weights, float rescale, float *acc)
{
    const uint32_t value_dim = block->value_dim;
    uint32_t d = 0;
    for (; value_dim - d >= 32; d += 32) {
        f32x8 sum[4];
        UNROLLED
        for (int i = 0; i < 4; i++)
            sum[i] = f32x8_load(acc + d + 8 * i) * f32x8_splat(rescale);
        for (uint32_t t = block->first; t < block->end; t++) {
            const float *value = block->values + t * value_dim + d;
            UNROLLED
            for (int i = 0; i < 4; i++)
                sum[i] = f32x8_fma(f32x8_splat(weights[t]), f32x8_load(value + 8 * i), sum[i]);
        }
        UNROLLED
        for (int i = 0; i < 4; i++)
            f32x8_store(acc + d + 8 * i, sum[i]);
    }
    for (; d < value_dim; d += 8) {
        f32x8 sum = f32x8_load(acc + d) * f32x8_splat(rescale);
        for (uint32_t t = block->first; t < block->end; t++)
            sum = f32x8_fma(f32x8_splat(weights[t]), f32x8_load(block->values + t * value_dim + d), sum);
        f32x8_store(acc + d, sum);
    }
}

/* What the query does not see gets −∞. */
static void score(const struct attended_block *block, const float *query, f32x8 scores[SCORE_VECTORS])
{
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        scores[i] = f32x8_splat(0);
    for (uint32_t d = 0; d < block->dim; d++) {
        const float *keys = block->keys + d * KERNELS_TOKENS;
        UNROLLED
        for (int i = 0; i < SCORE_VECTORS; i++)
            scores[i] = f32x8_fma(f32x8_splat(query[d]), f32x8_load(keys + 8 * i), scores[i]);
    }
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++) {
        i32x8 token = (i32x8){0, 1, 2, 3, 4, 5, 6, 7} + 8 * i;
        if (block->cap > 0)
            scores[i] = f32x8_soft_cap(scores[i], block->cap);
        i32x8 seen = (token >= (int32_t)block->first) & (token < (int32_t)block->end);
        scores[i] = f32x8_select(seen, scores[i], f32x8_splat(-INFINITY));
    }
}

void LANES_NAMED(attend)(const struct attended_block *block, const float *query,
                         struct running_softmax *softmax)
{
    f32x8 scores[SCORE_VECTORS], largest = f32x8_splat(-INFINITY);
    score(block, query, scores);
    UNROLLED
    for (int i = 0; i < SCORE_VECTORS; i++)
        largest = f32x8_max(scores[i], largest);
    float before = softmax->largest, now = f32x8_largest(largest);
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
    softmax->largest = now;
    softmax->sum = softmax->sum * rescale + f32x8_sum(total);
    weigh_values(block, weights, rescale, softmax->values);
}
