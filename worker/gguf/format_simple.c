/* SPDX-License-Identifier: MIT */
/* Formats without inner scales: plain floats, and blocks of 32 under one scale.
 *
 * Written for clarity first; the loops over a block have constant bounds and no branches, so that the
 * compiler turns them into vector code. Quantizing searches: the obvious scale (largest magnitude on the last
 * step) is seldom the one of least squared error. */

#include <math.h>
#include <string.h>

#include "worker/gguf/blocks.h"
#include "worker/gguf/format.h"

const int8_t block_iq4_values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                     1,    13,   25,  38,  53,  69,  89,  113};

void f32_to_float(const void *blocks, float *out, size_t n)
{
    memcpy(out, blocks, n * sizeof *out);
}

void f32_from_float(const float *in, void *blocks, size_t n)
{
    memcpy(blocks, in, n * sizeof *in);
}

void f16_to_float(const void *blocks, float *out, size_t n)
{
    const uint16_t *in = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = format_f16_to_f32(in[i]);
}

void f16_from_float(const float *in, void *blocks, size_t n)
{
    uint16_t *out = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = format_f32_to_f16(in[i]);
}

void bf16_to_float(const void *blocks, float *out, size_t n)
{
    const uint16_t *in = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = format_bf16_to_f32(in[i]);
}

void bf16_from_float(const float *in, void *blocks, size_t n)
{
    uint16_t *out = blocks;
    for (size_t i = 0; i < n; i++)
        out[i] = format_f32_to_bf16(in[i]);
}

void q8_0_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q8_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale);
        for (int i = 0; i < BLOCK_SMALL; i++)
            out[i] = scale * (float)block->quants[i];
    }
}

void q4_0_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q4_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale);
        for (int i = 0; i < 16; i++) {
            out[i] = scale * (float)((block->quants[i] & 15) - 8);
            out[i + 16] = scale * (float)((block->quants[i] >> 4) - 8);
        }
    }
}

void q4_1_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q4_1 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
        for (int i = 0; i < 16; i++) {
            out[i] = scale * (float)(block->quants[i] & 15) + min;
            out[i + 16] = scale * (float)(block->quants[i] >> 4) + min;
        }
    }
}

/* The 32 values of a 5-bit block, 0 … 31. */
static void unpack_5(const uint8_t high[4], const uint8_t quants[16], float out[BLOCK_SMALL])
{
    uint32_t bits;
    memcpy(&bits, high, sizeof bits);
    for (int i = 0; i < 16; i++) {
        out[i] = (float)((quants[i] & 15) | (bits >> i & 1) << 4);
        out[i + 16] = (float)(quants[i] >> 4 | (bits >> (i + 16) & 1) << 4);
    }
}

void q5_0_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q5_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale);
        unpack_5(block->high, block->quants, out);
        for (int i = 0; i < BLOCK_SMALL; i++)
            out[i] = scale * (out[i] - 16);
    }
}

void q5_1_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q5_1 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
        unpack_5(block->high, block->quants, out);
        for (int i = 0; i < BLOCK_SMALL; i++)
            out[i] = scale * out[i] + min;
    }
}

void iq4_nl_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_iq4_nl *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, out += BLOCK_SMALL) {
        float scale = format_f16_to_f32(block->scale);
        for (int i = 0; i < 16; i++) {
            out[i] = scale * (float)block_iq4_values[block->quants[i] & 15];
            out[i + 16] = scale * (float)block_iq4_values[block->quants[i] >> 4];
        }
    }
}

/* Copies 32 values, zero in place of what is not finite, and returns the largest magnitude. */
static float take_finite(const float *in, float out[BLOCK_SMALL])
{
    float largest = 0;
    for (int i = 0; i < BLOCK_SMALL; i++) {
        out[i] = isfinite(in[i]) ? in[i] : 0;
        largest = fabsf(out[i]) > largest ? fabsf(out[i]) : largest;
    }
    return largest;
}

/* 8 bits are many: the scale that puts the largest magnitude on ±127 is within a hair of the best. */
void q8_0_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q8_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        float x[BLOCK_SMALL];
        float largest = take_finite(in, x);
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
    float largest = take_finite(in, x);
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

void q5_0_from_float(const float *in, void *blocks, size_t n)
{
    struct block_q5_0 *block = blocks;
    for (size_t b = 0; b < n / BLOCK_SMALL; b++, block++, in += BLOCK_SMALL) {
        uint8_t q[BLOCK_SMALL];
        uint32_t high = 0;
        block->scale = signed_fit(in, 16, q);
        for (int i = 0; i < 16; i++)
            block->quants[i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
        for (int i = 0; i < BLOCK_SMALL; i++)
            high |= (uint32_t)(q[i] >> 4) << i;
        memcpy(block->high, &high, sizeof high);
    }
}
