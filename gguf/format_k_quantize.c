/* SPDX-License-Identifier: MIT */
/* Float to K-quants: a search for the scales of least squared error.
 *
 * Two levels must be found at once: real scales per group, and the binary16 scales of the block under which
 * the groups' scales become small integers. First each group is fitted alone: from several starting steps,
 * quantize, then solve the least squares problem for scale and minimum with the quants held. Then the block's
 * scales follow from the largest group; every group picks the best integers near its own real ones, its
 * quants recomputed under the scales that a reader will really see; and the block's scales are solved for
 * once more with everything else held. A round that makes the block worse is dropped. Pure functions. */

#include <math.h>
#include <string.h>

#include "gguf/blocks.h"

#define MOST_GROUPS 16

/* ---- Q2_K, Q4_K and Q5_K: y = scale · q − min, q in 0 … levels, scale and min ≥ 0 ---- */

struct affine {
    int group; /* elements of one */
    float levels;
    float most; /* of a group's scale or minimum */
};

static const struct affine q2_k = {16, 3, 15}, q4_k = {32, 15, 63}, q5_k = {32, 31, 63};

struct affine_block {
    uint16_t scale, min;
    uint8_t scales[MOST_GROUPS], mins[MOST_GROUPS];
    uint8_t quants[BLOCK_K];
    float error;
};

/* Squared error of a group, summed in eight lanes so that it becomes vector code. */
static float affine_error(const struct affine *kind, const float *x, float scale, float min)
{
    float inverse = block_inverse(scale), sums[8] = {0}, error = 0;
    for (int i = 0; i < kind->group; i += 8) {
        for (int lane = 0; lane < 8; lane++) {
            float q = block_nearest((x[i + lane] + min) * inverse, 0, kind->levels);
            float d = x[i + lane] - (scale * q - min);
            sums[lane] += d * d;
        }
    }
    for (int lane = 0; lane < 8; lane++)
        error += sums[lane];
    return error;
}

/* Scale and minimum of least squared error for the quants that `scale` and `min` give. */
static void affine_solve(const struct affine *kind, const float *x, float *scale, float *min)
{
    float n = (float)kind->group, inverse = block_inverse(*scale), sum_x = 0, sum_q = 0, sum_qq = 0,
          sum_xq = 0;
    for (int i = 0; i < kind->group; i++) {
        float q = block_nearest((x[i] + *min) * inverse, 0, kind->levels);
        sum_x += x[i];
        sum_q += q;
        sum_qq += q * q;
        sum_xq += x[i] * q;
    }
    float determinant = n * sum_qq - sum_q * sum_q;
    if (!(determinant > 0))
        return;
    float solved = (n * sum_xq - sum_x * sum_q) / determinant;
    float offset = (sum_x - solved * sum_q) / n;
    if (offset > 0) { /* a minimum above zero cannot be stored */
        offset = 0;
        solved = sum_xq / sum_qq;
    }
    if (solved > 0 && isfinite(solved)) {
        *scale = solved;
        *min = -offset;
    }
}

static void affine_fit_group(const struct affine *kind, const float *x, float *ret_scale, float *ret_min)
{
    float low = 0, high = x[0], best_error = INFINITY;
    for (int i = 0; i < kind->group; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *ret_scale = 0;
    *ret_min = -low;
    if (!(high > low))
        return;
    for (int start = 0; start < 7; start++) {
        float scale = (high - low) / (kind->levels * (0.88f + 0.06f * (float)start)), min = -low;
        affine_solve(kind, x, &scale, &min);
        affine_solve(kind, x, &scale, &min);
        float error = affine_error(kind, x, scale, min);
        if (start == 0 || error < best_error) {
            best_error = error;
            *ret_scale = scale;
            *ret_min = min;
        }
    }
}

/* Under the block's scales: the best integers of each group around its real ones, then the quants. */
static void affine_assign(const struct affine *kind, const float x[BLOCK_K], const float scales[MOST_GROUPS],
                          const float mins[MOST_GROUPS], struct affine_block *block)
{
    float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
    float inverse_scale = block_inverse(scale), inverse_min = block_inverse(min);
    block->error = 0;
    for (int g = 0; g < BLOCK_K / kind->group; g++) {
        const float *group = x + g * kind->group;
        float s = block_nearest(scales[g] * inverse_scale, 0, kind->most);
        float m = block_nearest(mins[g] * inverse_min, 0, kind->most);
        float best_error = INFINITY, best_s = s, best_m = m;
        for (int ds = -1; ds <= 1; ds++) {
            for (int dm = -1; dm <= 1; dm++) {
                float try_s = s + (float)ds, try_m = m + (float)dm;
                if (try_s < 0 || try_s > kind->most || try_m < 0 || try_m > kind->most)
                    continue;
                float error = affine_error(kind, group, scale * try_s, min * try_m);
                if (error < best_error) {
                    best_error = error;
                    best_s = try_s;
                    best_m = try_m;
                }
            }
        }
        block->scales[g] = (uint8_t)best_s;
        block->mins[g] = (uint8_t)best_m;
        block->error += best_error;
        float group_min = min * best_m, inverse = block_inverse(scale * best_s);
        for (int i = 0; i < kind->group; i++)
            block->quants[g * kind->group + i] =
                (uint8_t)block_nearest((group[i] + group_min) * inverse, 0, kind->levels);
    }
}

/* The block's two scales of least squared error with all integers held. */
static void affine_solve_block(const struct affine *kind, const float x[BLOCK_K], struct affine_block *block)
{
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;
    for (int i = 0; i < BLOCK_K; i++) {
        float a = (float)block->scales[i / kind->group] * (float)block->quants[i];
        float b = -(float)block->mins[i / kind->group];
        aa += a * a;
        ab += a * b;
        bb += b * b;
        xa += x[i] * a;
        xb += x[i] * b;
    }
    float determinant = aa * bb - ab * ab;
    if (determinant > 0) {
        float scale = (xa * bb - xb * ab) / determinant, min = (xb * aa - xa * ab) / determinant;
        if (scale > 0 && min >= 0) {
            block->scale = block_half_scale(scale);
            block->min = block_half_scale(min);
        }
    } else if (aa > 0 && xa > 0) {
        block->scale = block_half_scale(xa / aa);
    }
}

static void affine_quantize(const struct affine *kind, const float *in, struct affine_block *ret_block)
{
    float x[BLOCK_K], scales[MOST_GROUPS], mins[MOST_GROUPS], largest_scale = 0, largest_min = 0;
    block_take_finite(in, BLOCK_K, x);
    for (int g = 0; g < BLOCK_K / kind->group; g++) {
        affine_fit_group(kind, x + g * kind->group, &scales[g], &mins[g]);
        largest_scale = fmaxf(largest_scale, scales[g]);
        largest_min = fmaxf(largest_min, mins[g]);
    }
    struct affine_block block = {.scale = block_half_scale(largest_scale / kind->most),
                                 .min = block_half_scale(largest_min / kind->most)};
    affine_assign(kind, x, scales, mins, &block);
    *ret_block = block;
    for (int round = 0; round < 2; round++) {
        affine_solve_block(kind, x, &block);
        affine_assign(kind, x, scales, mins, &block);
        if (!(block.error < ret_block->error))
            break;
        *ret_block = block;
    }
}

/* The low two bits: per half of 128 elements 32 bytes. */
static void pack_pairs(const uint8_t quants[BLOCK_K], uint8_t out[64])
{
    memset(out, 0, 64);
    for (int i = 0; i < BLOCK_K; i++)
        out[i / 128 * 32 + i % 32] |= (uint8_t)((quants[i] & 3) << (i % 128 / 32 * 2));
}

void q2_k_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q2_k *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        struct affine_block block;
        affine_quantize(&q2_k, in, &block);
        out->scale = block.scale;
        out->min = block.min;
        for (int g = 0; g < 16; g++)
            out->scales[g] = (uint8_t)(block.scales[g] | block.mins[g] << 4);
        pack_pairs(block.quants, out->quants);
    }
}

/* The inverse of block_k_scale_min for all eight groups. */
static void pack_scales(const struct affine_block *block, uint8_t out[12])
{
    for (int g = 0; g < 4; g++) {
        uint8_t s = block->scales[g + 4], m = block->mins[g + 4];
        out[g] = (uint8_t)(block->scales[g] | (s >> 4) << 6);
        out[g + 4] = (uint8_t)(block->mins[g] | (m >> 4) << 6);
        out[g + 8] = (uint8_t)((s & 15) | (m & 15) << 4);
    }
}

/* The low four bits: per 64 elements 32 bytes. */
static void pack_nibbles(const uint8_t quants[BLOCK_K], uint8_t out[128])
{
    for (int i = 0; i < 128; i++) {
        const uint8_t *pair = quants + i / 32 * 64 + i % 32;
        out[i] = (uint8_t)((pair[0] & 15) | (pair[32] & 15) << 4);
    }
}

void q4_k_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q4_k *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        struct affine_block block;
        affine_quantize(&q4_k, in, &block);
        out->scale = block.scale;
        out->min = block.min;
        pack_scales(&block, out->scales);
        pack_nibbles(block.quants, out->quants);
    }
}

void q5_k_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q5_k *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        struct affine_block block;
        affine_quantize(&q5_k, in, &block);
        out->scale = block.scale;
        out->min = block.min;
        pack_scales(&block, out->scales);
        pack_nibbles(block.quants, out->quants);
        memset(out->high, 0, sizeof out->high);
        for (int i = 0; i < BLOCK_K; i++)
            out->high[i % 32] |= (uint8_t)((block.quants[i] >> 4) << (i / 32));
    }
}

/* ---- Q3_K and Q6_K: y = scale · s · q, sixteen groups of 16, both integers signed ---- */

struct sign {
    float half;        /* q in −half … half − 1 */
    float most;        /* s in −most … most − 1 */
    float first, step; /* the largest magnitude is tried on these steps, */
    int n_starts;      /* so many */
};

static const struct sign q3_k = {4, 32, -4.6f, 0.2f, 10}, q6_k = {32, 128, -33.0f, 0.6f, 6};

struct signed_block {
    uint16_t scale;
    int8_t scales[16];
    int8_t quants[BLOCK_K];
    float error;
};

static float signed_error(const struct sign *kind, const float x[16], float scale)
{
    float inverse = block_inverse(scale), sums[8] = {0}, error = 0;
    for (int i = 0; i < 16; i += 8) {
        for (int lane = 0; lane < 8; lane++) {
            float d = x[i + lane] - scale * block_nearest(x[i + lane] * inverse, -kind->half, kind->half - 1);
            sums[lane] += d * d;
        }
    }
    for (int lane = 0; lane < 8; lane++)
        error += sums[lane];
    return error;
}

/* The scale of least squared error for the quants that `scale` gives. */
static float signed_solve(const struct sign *kind, const float x[16], float scale)
{
    float inverse = block_inverse(scale), xq = 0, qq = 0;
    for (int i = 0; i < 16; i++) {
        float q = block_nearest(x[i] * inverse, -kind->half, kind->half - 1);
        xq += x[i] * q;
        qq += q * q;
    }
    return qq > 0 ? xq / qq : scale;
}

/* A negative scale is as good as a positive one, and puts the value of largest magnitude on step −half. */
static float signed_fit_group(const struct sign *kind, const float x[16])
{
    float largest = 0, best = 0, best_error = INFINITY;
    for (int i = 0; i < 16; i++)
        largest = fabsf(x[i]) > fabsf(largest) ? x[i] : largest;
    if (largest == 0)
        return 0;
    for (int start = 0; start < kind->n_starts; start++) {
        float scale = signed_solve(kind, x, largest / (kind->first + kind->step * (float)start));
        float error = signed_error(kind, x, scale);
        if (start == 0 || error < best_error) {
            best_error = error;
            best = scale;
        }
    }
    return best;
}

static void signed_assign(const struct sign *kind, const float x[BLOCK_K], const float scales[16],
                          struct signed_block *block)
{
    float scale = format_f16_to_f32(block->scale), inverse_scale = block_inverse(scale);
    block->error = 0;
    for (int g = 0; g < 16; g++) {
        const float *group = x + g * 16;
        float s = block_nearest(scales[g] * inverse_scale, -kind->most, kind->most - 1);
        float best_error = INFINITY, best = s;
        for (int ds = -1; ds <= 1; ds++) {
            float try_s = s + (float)ds;
            if (try_s < -kind->most || try_s > kind->most - 1)
                continue;
            float error = signed_error(kind, group, scale * try_s);
            if (error < best_error) {
                best_error = error;
                best = try_s;
            }
        }
        block->scales[g] = (int8_t)best;
        block->error += best_error;
        float inverse = block_inverse(scale * best);
        for (int i = 0; i < 16; i++)
            block->quants[g * 16 + i] =
                (int8_t)block_nearest(group[i] * inverse, -kind->half, kind->half - 1);
    }
}

static void signed_quantize(const struct sign *kind, const float *in, struct signed_block *ret_block)
{
    float x[BLOCK_K], scales[16], largest = 0;
    block_take_finite(in, BLOCK_K, x);
    for (int g = 0; g < 16; g++) {
        scales[g] = signed_fit_group(kind, x + g * 16);
        largest = fabsf(scales[g]) > fabsf(largest) ? scales[g] : largest;
    }
    struct signed_block block = {.scale = block_half_scale(largest / -kind->most)};
    signed_assign(kind, x, scales, &block);
    *ret_block = block;
    float xa = 0, aa = 0;
    for (int i = 0; i < BLOCK_K; i++) {
        float a = (float)block.scales[i / 16] * (float)block.quants[i];
        xa += x[i] * a;
        aa += a * a;
    }
    if (!(aa > 0))
        return;
    block.scale = block_half_scale(xa / aa);
    signed_assign(kind, x, scales, &block);
    if (block.error < ret_block->error)
        *ret_block = block;
}

void q6_k_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q6_k *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        struct signed_block block;
        signed_quantize(&q6_k, in, &block);
        memset(out, 0, sizeof *out);
        out->scale = block.scale;
        memcpy(out->scales, block.scales, sizeof out->scales);
        for (int i = 0; i < BLOCK_K; i++) {
            int q = block.quants[i] + 32, half = i / 128, quarter = i % 128 / 32;
            out->low[half * 64 + quarter % 2 * 32 + i % 32] |= (uint8_t)((q & 15) << (quarter / 2 * 4));
            out->high[half * 32 + i % 32] |= (uint8_t)((q >> 4) << (quarter * 2));
        }
    }
}

void q3_k_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q3_k *out = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, out++, in += BLOCK_K) {
        struct signed_block block;
        uint8_t quants[BLOCK_K];
        signed_quantize(&q3_k, in, &block);
        memset(out, 0, sizeof *out);
        out->scale = block.scale;
        for (int g = 0; g < 16; g++) {
            int stored = block.scales[g] + 32;
            out->scales[g % 8] |= (uint8_t)((stored & 15) << (g / 8 * 4));
            out->scales[8 + g % 4] |= (uint8_t)((stored >> 4) << (g / 4 * 2));
        }
        for (int i = 0; i < BLOCK_K; i++) {
            quants[i] = (uint8_t)(block.quants[i] + 4);
            out->high[i % 32] |= (uint8_t)((quants[i] >> 2) << (i / 32));
        }
        pack_pairs(quants, out->quants);
    }
}
