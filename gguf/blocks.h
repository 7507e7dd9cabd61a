/* SPDX-License-Identifier: MIT */
#ifndef GGUF_BLOCKS_H
#define GGUF_BLOCKS_H

/* The blocks of the quantized formats as they are in a file, and their plain conversions.
 *
 * All scales but MXFP4's are binary16, all integers are little-endian, and a block needs an alignment of at
 * most 2 bytes in memory. Blocks of 32 hold one scale (and a minimum) for all elements. K-quant blocks of 256
 * hold groups of 16 or 32, each with small integer scales, under one or two binary16 scales. y is the value,
 * q the stored integer. */

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>

#include "gguf/format.h"

#define BLOCK_SMALL 32
#define BLOCK_K     256

/* 4-bit blocks of 32 keep element i in the low half of byte i, element i + 16 in the high half. */
struct block_q4_0 { /* y = scale · (q − 8) */
    uint16_t scale;
    uint8_t quants[16];
};

struct block_q4_1 { /* y = scale · q + min */
    uint16_t scale, min;
    uint8_t quants[16];
};

struct block_q5_0 { /* y = scale · (q − 16) */
    uint16_t scale;
    uint8_t high[4]; /* bit i: bit 4 of element i */
    uint8_t quants[16];
};

struct block_q5_1 { /* y = scale · q + min */
    uint16_t scale, min;
    uint8_t high[4];
    uint8_t quants[16];
};

struct block_q8_0 { /* y = scale · q */
    uint16_t scale;
    int8_t quants[32];
};

struct block_iq4_nl { /* y = scale · block_iq4_values[q] */
    uint16_t scale;
    uint8_t quants[16];
};

/* y = 2^(exponent − 128) · block_mxfp4_values[q], whose entries are twice the values of the OCP's E2M1
 * (Microscaling Formats 1.0); an exponent of 255 means NaN. */
struct block_mxfp4 {
    uint8_t exponent;
    uint8_t quants[16];
};

/* Sixteen groups of 16, 4 bits each for scale (low) and minimum (high).
 * y = scale · (scales & 15) · q − min · (scales >> 4) */
struct block_q2_k {
    uint8_t scales[16];
    uint8_t quants[64]; /* per half of 128: byte i holds elements i, i + 32, i + 64, i + 96, low bits first */
    uint16_t scale, min;
};

/* Sixteen groups of 16 with 6-bit scales. y = scale · (s − 32) · (q − 4), the third bit of q in `high`. */
struct block_q3_k {
    uint8_t high[32];   /* byte i, bit k: element i + 32 k */
    uint8_t quants[64]; /* as in q2_k */
    uint8_t scales[12]; /* low 4 bits of groups g and g + 8 in byte g; then the high 2 bits, four to a byte */
    uint16_t scale;
};

/* Eight groups of 32 with 6-bit scales s and minimums m (block_k_scale_min).
 * y = scale · s · q − min · m */
struct block_q4_k {
    uint16_t scale, min;
    uint8_t scales[12];
    uint8_t quants[128]; /* per 64 elements 32 bytes: the first 32 in the low halves, the next in the high */
};

struct block_q5_k {
    uint16_t scale, min;
    uint8_t scales[12];
    uint8_t high[32]; /* byte i, bit g: bit 4 of element i of group g */
    uint8_t quants[128];
};

/* Sixteen groups of 16 with 8-bit scales. y = scale · s · (q − 32) */
struct block_q6_k {
    uint8_t low[128]; /* per half of 128 elements 64 bytes: elements 0–63 in the low halves, 64–127 high */
    uint8_t high[64]; /* per half 32 bytes: byte i holds bits 4–5 of elements i, i + 32, i + 64, i + 96 */
    int8_t scales[16];
    uint16_t scale;
};

/* Eight groups of 32 with 6-bit scales. y = scale · (s − 32) · block_iq4_values[q] */
struct block_iq4_xs {
    uint16_t scale;
    uint16_t scales_high; /* bits 2g … 2g + 1: bits 4–5 of group g's scale */
    uint8_t scales_low[4];
    uint8_t quants[128]; /* 16 bytes per group, as in the blocks of 32 */
};

static_assert(sizeof(struct block_q4_0) == 18, "file layout");
static_assert(sizeof(struct block_q4_1) == 20, "file layout");
static_assert(sizeof(struct block_q5_0) == 22, "file layout");
static_assert(sizeof(struct block_q5_1) == 24, "file layout");
static_assert(sizeof(struct block_q8_0) == 34, "file layout");
static_assert(sizeof(struct block_iq4_nl) == 18, "file layout");
static_assert(sizeof(struct block_mxfp4) == 17, "file layout");
static_assert(sizeof(struct block_q2_k) == 84, "file layout");
static_assert(sizeof(struct block_q3_k) == 110, "file layout");
static_assert(sizeof(struct block_q4_k) == 144, "file layout");
static_assert(sizeof(struct block_q5_k) == 176, "file layout");
static_assert(sizeof(struct block_q6_k) == 210, "file layout");
static_assert(sizeof(struct block_iq4_xs) == 136, "file layout");

/* The 16 values of the IQ4 formats, ascending, and of MXFP4: eight ascending, then their negatives. */
extern const int8_t block_iq4_values[16], block_mxfp4_values[16];

/* 2^(exponent − 128), which may be subnormal; NaN for 255. */
static inline float block_mxfp4_scale(uint8_t exponent)
{
    uint32_t bits = exponent < 2 ? 0x00200000u << exponent : ((uint32_t)exponent - 1) << 23;
    return format_float_of_bits(exponent == 255 ? 0x7fc00000u : bits);
}

/* Scale and minimum of group g of Q4_K and Q5_K: eight pairs of 6 bits in 12 bytes. Bytes 0–3 hold the first
 * four scales and bytes 4–7 their minimums, whose spare top bits are bits 4–5 of the last four; bytes 8–11
 * hold bits 0–3 of the last four scales (low half) and minimums (high half). */
static inline void block_k_scale_min(const uint8_t scales[12], int g, uint8_t *ret_scale, uint8_t *ret_min)
{
    if (g < 4) {
        *ret_scale = scales[g] & 63;
        *ret_min = scales[g + 4] & 63;
    } else {
        *ret_scale = (uint8_t)((scales[g + 4] & 15) | (scales[g - 4] >> 6) << 4);
        *ret_min = (uint8_t)(scales[g + 4] >> 4 | (scales[g] >> 6) << 4);
    }
}

/* The scale of group g of Q3_K and of IQ4_XS: 6 bits in two places, minus 32. */
static inline int block_q3_k_scale(const uint8_t scales[12], int g)
{
    int low = scales[g % 8] >> (g / 8 * 4) & 15;
    int high = scales[8 + g % 4] >> (g / 4 * 2) & 3;
    return (low | high << 4) - 32;
}

static inline int block_iq4_xs_scale(const struct block_iq4_xs *block, int g)
{
    int low = block->scales_low[g / 2] >> (g % 2 * 4) & 15;
    int high = block->scales_high >> (g * 2) & 3;
    return (low | high << 4) - 32;
}

/* For quantizing: the integer nearest to a value, clamped to [low, high]; NaN gives low. The bounds are below
 * 2^22 in magnitude, so adding 1.5 · 2^23 drops the bits of the fraction: rounding without a library call. */
static inline float block_nearest(float value, float low, float high)
{
    float cut = value > low ? value : low;
    cut = cut < high ? cut : high;
    return (cut + 0x1.8p23f) - 0x1.8p23f;
}

/* The binary16 nearest to a scale; a scale beyond its range is clamped to the largest, not made infinite. */
static inline uint16_t block_half_scale(float scale)
{
    float cut = scale > -65504.0f ? scale : -65504.0f;
    return format_f32_to_f16(cut < 65504.0f ? cut : 65504.0f);
}

/* Copies n values, with zeros for those that are not finite, and returns the largest magnitude. */
static inline float block_take_finite(const float *in, int n, float *out)
{
    float largest = 0;
    for (int i = 0; i < n; i++) {
        out[i] = isfinite(in[i]) ? in[i] : 0;
        largest = fabsf(out[i]) > largest ? fabsf(out[i]) : largest;
    }
    return largest;
}

/* 1 / scale; 0 if the scale is so small that this would overflow. */
static inline float block_inverse(float scale)
{
    return fabsf(scale) > 1e-30f ? 1 / scale : 0;
}

/* The conversions of format_traits; n is a multiple of the block. */
typedef void blocks_to_float(const void *blocks, float *out, size_t n);
typedef void blocks_from_float(const float *in, void *blocks, size_t n);

#define CONVERSIONS(name, id, number, elements, bytes)                                                       \
    blocks_to_float id##_to_float;                                                                           \
    blocks_from_float id##_from_float;
FORMATS(CONVERSIONS)
#undef CONVERSIONS

#endif
