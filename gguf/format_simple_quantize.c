/* SPDX-License-Identifier: MIT */
/* Float to blocks of 32 under one scale, with a minimum or without.
 *
 * Quantizing searches: the obvious scale (largest magnitude on the last step) is seldom the one of least
 * squared error. The loops over a block have constant bounds and no branches, as in format_simple.c. Pure
 * functions. */

#include <math.h>
#include <string.h>

#include "gguf/blocks.h"

/* 8 bits are many: the scale that puts the largest magnitude on ±127 is within a hair of the best. */
void q8_0_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q8_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        float x[BLOCK_SMALL];
        float largest = block_take_finite(in, BLOCK_SMALL, x);
        block->scale = block_half_scale(largest / 127);
        float scale = format_f16_to_f32(block->scale);
        float inverse = scale > 0 ? 1 / scale : 0;
        for (int i = 0; i < BLOCK_SMALL; i++)
            block->quants[i] = (int8_t)block_nearest(x[i] * inverse, -127, 127);
    }
}

/* Squared error of a block at `scale` with quants −half … half − 1. */
static float signed_error(const float x[BLOCK_SMALL], float scale, float half)
{
    float inverse = scale != 0 ? 1 / scale : 0, error = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float d = x[i] - scale * block_nearest(x[i] * inverse, -half, half - 1);
        error += d * d;
    }
    return error;
}

/* Tries scales around "the largest magnitude sits on the last step", of either sign, because the steps are
 * not symmetric, and keeps the one of least squared error after rounding to binary16. The quants written go
 * from 0 to 2 · half − 1. */
static uint16_t signed_fit(const float *in, float half, uint8_t ret_quants[BLOCK_SMALL])
{
    float x[BLOCK_SMALL], best_error = INFINITY;
    float largest = block_take_finite(in, BLOCK_SMALL, x);
    uint16_t best = 0;
    for (int step = 0; step < 26 && largest > 0; step++) {
        float magnitude = largest / (half * (0.775f + 0.025f * (float)(step / 2)));
        uint16_t candidate = block_half_scale(step & 1 ? magnitude : -magnitude);
        float error = signed_error(x, format_f16_to_f32(candidate), half);
        if (step == 0 || error < best_error) {
            best_error = error;
            best = candidate;
        }
    }
    float scale = format_f16_to_f32(best);
    float inverse = scale != 0 ? 1 / scale : 0;
    for (int i = 0; i < BLOCK_SMALL; i++)
        ret_quants[i] = (uint8_t)(block_nearest(x[i] * inverse, -half, half - 1) + half);
    return best;
}

void q4_0_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q4_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        uint8_t q[BLOCK_SMALL];
        block->scale = signed_fit(in, 8, q);
        for (int i = 0; i < 16; i++)
            block->quants[i] = (uint8_t)(q[i] | q[i + 16] << 4);
    }
}

/* 32 values of 5 bits. */
static void pack_5(const uint8_t q[BLOCK_SMALL], uint8_t ret_high[4], uint8_t ret_quants[16])
{
    uint32_t high = 0;
    for (int i = 0; i < 16; i++)
        ret_quants[i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
    for (int i = 0; i < BLOCK_SMALL; i++)
        high |= (uint32_t)(q[i] >> 4) << i;
    memcpy(ret_high, &high, sizeof high);
}

void q5_0_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q5_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        uint8_t q[BLOCK_SMALL];
        block->scale = signed_fit(in, 16, q);
        pack_5(q, block->high, block->quants);
    }
}

/* ---- Q4_1 and Q5_1: y = scale · q + min, q in 0 … levels ---- */

/* Squared error of a block at the scale and minimum that a reader will see. */
static float affine_error(const float x[BLOCK_SMALL], float scale, float min, float levels)
{
    float inverse = block_inverse(scale), error = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float d = x[i] - (scale * block_nearest((x[i] - min) * inverse, 0, levels) + min);
        error += d * d;
    }
    return error;
}

/* Scale and minimum of least squared error for the quants that `scale` and `min` give. */
static void affine_solve(const float x[BLOCK_SMALL], float levels, float *scale, float *min)
{
    float inverse = block_inverse(*scale), sum_x = 0, sum_q = 0, sum_qq = 0, sum_xq = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        float q = block_nearest((x[i] - *min) * inverse, 0, levels);
        sum_x += x[i];
        sum_q += q;
        sum_qq += q * q;
        sum_xq += x[i] * q;
    }
    float determinant = BLOCK_SMALL * sum_qq - sum_q * sum_q;
    float solved = (BLOCK_SMALL * sum_xq - sum_x * sum_q) / determinant;
    if (determinant > 0 && solved > 0 && isfinite(solved)) {
        *scale = solved;
        *min = (sum_x - solved * sum_q) / BLOCK_SMALL;
    }
}

/* The best of a few starting steps, each solved twice; quants are what the rounded scales give. */
static void affine_fit(const float *in, float levels, uint16_t *ret_scale, uint16_t *ret_min,
                       uint8_t ret_quants[BLOCK_SMALL])
{
    float x[BLOCK_SMALL], low, high, best_error = INFINITY;
    block_take_finite(in, BLOCK_SMALL, x);
    low = high = x[0];
    for (int i = 0; i < BLOCK_SMALL; i++) {
        low = x[i] < low ? x[i] : low;
        high = x[i] > high ? x[i] : high;
    }
    *ret_scale = 0;
    *ret_min = block_half_scale(low);
    for (int start = 0; start < 7 && high > low; start++) {
        float scale = (high - low) / (levels * (0.88f + 0.06f * (float)start)), min = low;
        affine_solve(x, levels, &scale, &min);
        affine_solve(x, levels, &scale, &min);
        uint16_t half_scale = block_half_scale(scale), half_min = block_half_scale(min);
        float error = affine_error(x, format_f16_to_f32(half_scale), format_f16_to_f32(half_min), levels);
        if (error < best_error) {
            best_error = error;
            *ret_scale = half_scale;
            *ret_min = half_min;
        }
    }
    float inverse = block_inverse(format_f16_to_f32(*ret_scale)), min = format_f16_to_f32(*ret_min);
    for (int i = 0; i < BLOCK_SMALL; i++)
        ret_quants[i] = (uint8_t)block_nearest((x[i] - min) * inverse, 0, levels);
}

void q4_1_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q4_1 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        uint8_t q[BLOCK_SMALL];
        affine_fit(in, 15, &block->scale, &block->min, q);
        for (int i = 0; i < 16; i++)
            block->quants[i] = (uint8_t)(q[i] | q[i + 16] << 4);
    }
}

void q5_1_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q5_1 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        uint8_t q[BLOCK_SMALL];
        affine_fit(in, 31, &block->scale, &block->min, q);
        pack_5(q, block->high, block->quants);
    }
}
