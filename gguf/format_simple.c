/* SPDX-License-Identifier: MIT */
/* Formats without inner scales: plain floats, and blocks of 32 under one scale.
 *
 * Written for clarity first; the loops over a block have constant bounds and no branches, so that the
 * compiler turns them into vector code. */

#include <string.h>

#include "gguf/blocks.h"
#include "gguf/format.h"

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
