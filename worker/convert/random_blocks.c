/* SPDX-License-Identifier: MIT */
/* Random weights: random bits where a format keeps its quants, chosen scales around them.
 *
 * Quants from plain random bits are uniform over their range; its standard deviation, √((levels² − 1) / 12),
 * is known, so the scale follows from the deviation wanted. Where the range is not symmetric around zero, a
 * random sign of the scale or a fitting minimum makes the mean vanish; otherwise every row would add the same
 * small multiple of Σx to its output. */

#include "worker/convert/random_blocks.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "worker/gguf/blocks.h"

/* SplitMix64 (Steele, Lea, Flood 2014): passes usual tests, a few operations for eight bytes. */
static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
}

static void fill_bits(uint64_t *state, void *out, size_t size)
{
    uint8_t *bytes = out;
    for (; size >= 8; size -= 8, bytes += 8) {
        uint64_t bits = next(state);
        memcpy(bytes, &bits, 8);
    }
    uint64_t bits = next(state);
    memcpy(bytes, &bits, size);
}

static float deviation_of(float levels)
{
    return sqrtf((levels * levels - 1) / 12);
}

/* Uniform in ±√3 · deviation. */
static float next_real(uint64_t *state, float deviation)
{
    float unit = (float)(int32_t)(next(state) >> 32) * 0x1p-31f;
    return unit * 1.7320508f * deviation;
}

static void fill_q8_0(float deviation, uint64_t *state, struct block_q8_0 *block, size_t n)
{
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(256));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale;
    }
}

static void fill_q4_0(float deviation, uint64_t *state, struct block_q4_0 *block, size_t n)
{
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(16));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale ^ (uint16_t)(next(state) & 0x8000);
    }
}

static void fill_q5_0(float deviation, uint64_t *state, struct block_q5_0 *block, size_t n)
{
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(32));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale ^ (uint16_t)(next(state) & 0x8000);
    }
}

/* Scales of 32 … 63 with minimums equal to them; the root of their mean square. */
#define GROUP_SCALE 48.39f

/* Twelve bytes of scales and minimums: equal integers of 32 … 63 per group. */
static void fill_group_scales(uint64_t *state, uint8_t out[12])
{
    uint64_t bits = next(state);
    for (int g = 0; g < 4; g++) {
        uint8_t low = 32 | (bits >> (g * 5) & 31), high = 32 | (bits >> (20 + g * 5) & 31);
        out[g] = out[g + 4] = (uint8_t)(low | (high >> 4) << 6);
        out[g + 8] = (uint8_t)((high & 15) | (high & 15) << 4);
    }
}

static void fill_q4_k(float deviation, uint64_t *state, struct block_q4_k *block, size_t n)
{
    float scale = deviation / (deviation_of(16) * GROUP_SCALE);
    uint16_t half_scale = format_f32_to_f16(scale), half_min = format_f32_to_f16(scale * 7.5f);
    for (size_t b = 0; b < n; b++, block++) {
        block->scale = half_scale;
        block->min = half_min;
        fill_group_scales(state, block->scales);
        fill_bits(state, block->quants, sizeof block->quants);
    }
}

static void fill_q5_k(float deviation, uint64_t *state, struct block_q5_k *block, size_t n)
{
    float scale = deviation / (deviation_of(32) * GROUP_SCALE);
    uint16_t half_scale = format_f32_to_f16(scale), half_min = format_f32_to_f16(scale * 15.5f);
    for (size_t b = 0; b < n; b++, block++) {
        block->scale = half_scale;
        block->min = half_min;
        fill_group_scales(state, block->scales);
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->quants, sizeof block->quants);
    }
}

static void fill_q6_k(float deviation, uint64_t *state, struct block_q6_k *block, size_t n)
{
    uint16_t scale = format_f32_to_f16(deviation / (deviation_of(64) * GROUP_SCALE));
    for (size_t b = 0; b < n; b++, block++) {
        block->scale = scale;
        fill_bits(state, block->low, sizeof block->low);
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->scales, sizeof block->scales);
        for (int g = 0; g < 16; g++) {
            int8_t s = (int8_t)(32 | (block->scales[g] & 31));
            block->scales[g] = block->scales[g] < 0 ? (int8_t)-s : s;
        }
    }
}

int random_blocks(enum format format, float deviation, uint64_t seed, void *out, size_t size)
{
    uint64_t state = seed;
    switch (format) {
    case FORMAT_F32:
        for (size_t i = 0; i < size / 4; i++)
            ((float *)out)[i] = next_real(&state, deviation);
        return 0;
    case FORMAT_F16:
        for (size_t i = 0; i < size / 2; i++)
            ((uint16_t *)out)[i] = format_f32_to_f16(next_real(&state, deviation));
        return 0;
    case FORMAT_BF16:
        for (size_t i = 0; i < size / 2; i++)
            ((uint16_t *)out)[i] = format_f32_to_bf16(next_real(&state, deviation));
        return 0;
    case FORMAT_Q8_0:
        fill_q8_0(deviation, &state, out, size / sizeof(struct block_q8_0));
        return 0;
    case FORMAT_Q4_0:
        fill_q4_0(deviation, &state, out, size / sizeof(struct block_q4_0));
        return 0;
    case FORMAT_Q5_0:
        fill_q5_0(deviation, &state, out, size / sizeof(struct block_q5_0));
        return 0;
    case FORMAT_Q4_K:
        fill_q4_k(deviation, &state, out, size / sizeof(struct block_q4_k));
        return 0;
    case FORMAT_Q5_K:
        fill_q5_k(deviation, &state, out, size / sizeof(struct block_q5_k));
        return 0;
    case FORMAT_Q6_K:
        fill_q6_k(deviation, &state, out, size / sizeof(struct block_q6_k));
        return 0;
    default:
        return -ENOTSUP;
    }
}
