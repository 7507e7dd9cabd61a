/* SPDX-License-Identifier: MIT */
/* Random weights: random bits where a format keeps its quants, chosen scales around them.
 *
 * Quants from plain random bits are uniform over their range; its standard deviation, √((levels² − 1) / 12),
 * is known, so the scale follows from the deviation wanted. Where the range is not symmetric around zero, a
 * random sign of the scale or a fitting minimum makes the mean vanish; otherwise every row would add the same
 * small multiple of Σx to its output. */

#include "model/convert/random_blocks.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "gguf/blocks.h"

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

static void fill_f32(float deviation, uint64_t *state, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((float *)out)[i] = next_real(state, deviation);
}

static void fill_f16(float deviation, uint64_t *state, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)out)[i] = format_f32_to_f16(next_real(state, deviation));
}

static void fill_bf16(float deviation, uint64_t *state, void *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ((uint16_t *)out)[i] = format_f32_to_bf16(next_real(state, deviation));
}

static void fill_q8_0(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q8_0 *block = out;
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(256));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale;
    }
}

static void fill_q4_0(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q4_0 *block = out;
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(16));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale ^ (uint16_t)(next(state) & 0x8000);
    }
}

static void fill_q5_0(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q5_0 *block = out;
    uint16_t scale = format_f32_to_f16(deviation / deviation_of(32));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale ^ (uint16_t)(next(state) & 0x8000);
    }
}

static void fill_q4_1(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q4_1 *block = out;
    float scale = deviation / deviation_of(16);
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = format_f32_to_f16(scale);
        block->min = format_f32_to_f16(scale * -7.5f);
    }
}

static void fill_q5_1(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q5_1 *block = out;
    float scale = deviation / deviation_of(32);
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = format_f32_to_f16(scale);
        block->min = format_f32_to_f16(scale * -15.5f);
    }
}

/* The root of the mean square of a table's entries. */
static float size_of_entries(const int8_t table[16])
{
    float squares = 0;
    for (int i = 0; i < 16; i++)
        squares += (float)(table[i] * table[i]) / 16;
    return sqrtf(squares);
}

static void fill_iq4_nl(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_iq4_nl *block = out;
    uint16_t scale = format_f32_to_f16(deviation / size_of_entries(block_iq4_values));
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        block->scale = scale ^ (uint16_t)(next(state) & 0x8000);
    }
}

/* Scales are powers of two: some blocks have the one below the scale wanted, others the one above, so many
 * that the mean square is right. */
static void fill_mxfp4(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_mxfp4 *block = out;
    int exponent;
    float scale = 2 * frexpf(deviation / size_of_entries(block_mxfp4_values), &exponent);
    float above = (scale * scale - 1) / 3;
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        bool larger = (float)(next(state) >> 40) * 0x1p-24f < above;
        block->exponent = (uint8_t)(exponent - 1 + 128 + larger);
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

static void fill_q4_k(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q4_k *block = out;
    float scale = deviation / (deviation_of(16) * GROUP_SCALE);
    uint16_t half_scale = format_f32_to_f16(scale), half_min = format_f32_to_f16(scale * 7.5f);
    for (size_t b = 0; b < n; b++, block++) {
        block->scale = half_scale;
        block->min = half_min;
        fill_group_scales(state, block->scales);
        fill_bits(state, block->quants, sizeof block->quants);
    }
}

static void fill_q5_k(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q5_k *block = out;
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

static void fill_q6_k(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q6_k *block = out;
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

static void fill_q2_k(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q2_k *block = out;
    float scale = deviation / (deviation_of(4) * sqrtf(137.5f)); /* of groups' scales of 8 … 15 */
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->scales, sizeof block->scales);
        fill_bits(state, block->quants, sizeof block->quants);
        for (int g = 0; g < 16; g++)
            block->scales[g] = (uint8_t)((8 | (block->scales[g] & 7)) * 0x11);
        block->scale = format_f32_to_f16(scale);
        block->min = format_f32_to_f16(scale * 1.5f);
    }
}

/* Scales of groups: ±(16 … 31), and the root of their mean square. */
#define SIGNED_SCALE 23.948f

static int next_signed_scale(uint64_t *state)
{
    uint64_t bits = next(state);
    int magnitude = 16 | (int)(bits & 15);
    return bits & 16 ? -magnitude : magnitude;
}

static void fill_q3_k(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_q3_k *block = out;
    float size = sqrtf(deviation_of(8) * deviation_of(8) + 0.25f); /* −4 … 3: the mean is −½ */
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->high, sizeof block->high);
        fill_bits(state, block->quants, sizeof block->quants);
        memset(block->scales, 0, sizeof block->scales);
        for (int g = 0; g < 16; g++) {
            int stored = next_signed_scale(state) + 32;
            block->scales[g % 8] |= (uint8_t)((stored & 15) << (g / 8 * 4));
            block->scales[8 + g % 4] |= (uint8_t)((stored >> 4) << (g / 4 * 2));
        }
        block->scale = format_f32_to_f16(deviation / (size * SIGNED_SCALE));
    }
}

static void fill_iq4_xs(float deviation, uint64_t *state, void *out, size_t n)
{
    struct block_iq4_xs *block = out;
    float size = size_of_entries(block_iq4_values);
    for (size_t b = 0; b < n; b++, block++) {
        fill_bits(state, block->quants, sizeof block->quants);
        memset(block->scales_low, 0, sizeof block->scales_low);
        block->scales_high = 0;
        for (int g = 0; g < 8; g++) {
            int stored = next_signed_scale(state) + 32;
            block->scales_low[g / 2] |= (uint8_t)((stored & 15) << (g % 2 * 4));
            block->scales_high |= (uint16_t)((stored >> 4) << (g * 2));
        }
        block->scale = format_f32_to_f16(deviation / (size * SIGNED_SCALE));
    }
}

/* `n` blocks each. */
typedef void fill_blocks(float deviation, uint64_t *state, void *out, size_t n);

#define FILL(name, id, number, elements, bytes) [FORMAT_##name] = fill_##id,
static fill_blocks *const fills[FORMAT_LIMIT] = {FORMATS(FILL)};
#undef FILL

int random_blocks(enum format format, float deviation, uint64_t seed, void *out, size_t size)
{
    uint64_t state = seed;
    if ((unsigned)format >= FORMAT_LIMIT || !fills[format])
        return -ENOTSUP;
    fills[format](deviation, &state, out, size / format_traits(format)->block_bytes);
    return 0;
}
