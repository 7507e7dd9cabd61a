/* SPDX-License-Identifier: MIT */
/* K-quants to float: blocks of 256 whose groups have small integer scales of their own.
 *
 * These loops fix the order and the meaning of every bit of a block; kernels unpack differently and are
 * compared with them. blocks.h draws the layouts. */

#include "gguf/blocks.h"

void q2_k_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q2_k *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++, out += BLOCK_K) {
        float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
        for (int i = 0; i < BLOCK_K; i++) {
            uint8_t group = block->scales[i / 16];
            int q = block->quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
            out[i] = scale * (float)(group & 15) * (float)q - min * (float)(group >> 4);
        }
    }
}

void q3_k_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q3_k *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++, out += BLOCK_K) {
        float scale = format_f16_to_f32(block->scale);
        for (int i = 0; i < BLOCK_K; i++) {
            int low = block->quants[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
            int high = block->high[i % 32] >> (i / 32) & 1;
            out[i] = scale * (float)block_q3_k_scale(block->scales, i / 16) * (float)((low | high << 2) - 4);
        }
    }
}

void q4_k_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q4_k *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++) {
        float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
        for (int g = 0; g < 8; g++, out += 32) {
            uint8_t s, m;
            block_k_scale_min(block->scales, g, &s, &m);
            float group_scale = scale * s, group_min = min * m;
            const uint8_t *quants = block->quants + g / 2 * 32;
            for (int i = 0; i < 32; i++)
                out[i] = group_scale * (float)(quants[i] >> (g % 2 * 4) & 15) - group_min;
        }
    }
}

void q5_k_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q5_k *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++) {
        float scale = format_f16_to_f32(block->scale), min = format_f16_to_f32(block->min);
        for (int g = 0; g < 8; g++, out += 32) {
            uint8_t s, m;
            block_k_scale_min(block->scales, g, &s, &m);
            float group_scale = scale * s, group_min = min * m;
            const uint8_t *quants = block->quants + g / 2 * 32;
            for (int i = 0; i < 32; i++) {
                int q = (quants[i] >> (g % 2 * 4) & 15) | (block->high[i] >> g & 1) << 4;
                out[i] = group_scale * (float)q - group_min;
            }
        }
    }
}

void q6_k_to_float(const void *blocks, float *out, size_t n)
{
    const struct block_q6_k *block = blocks;
    for (size_t b = 0; b < n / BLOCK_K; b++, block++, out += BLOCK_K) {
        float scale = format_f16_to_f32(block->scale);
        for (int g = 0; g < 16; g++) {
            float group_scale = scale * block->scales[g];
            int half = g / 8, quarter = g % 8 / 2, start = g % 2 * 16;
            const uint8_t *low = block->low + half * 64 + quarter % 2 * 32 + start;
            const uint8_t *high = block->high + half * 32 + start;
            for (int i = 0; i < 16; i++) {
                int q = (low[i] >> (quarter / 2 * 4) & 15) | (high[i] >> (quarter * 2) & 3) << 4;
                out[g * 16 + i] = group_scale * (float)(q - 32);
            }
        }
    }
}
