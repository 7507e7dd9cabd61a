/* SPDX-License-Identifier: MIT */
/* Rounding to few bits, and reading them.
 *
 * In 8 bits the largest magnitude is 127. In 4 bits it is −8, so that of 16 steps none is lost, and the scale
 * has the other sign than that number: the rule by which Q4_0 began. Rows of a step are written by several
 * threads, and neighbouring positions at the same time. So a byte has two dims of one position, never two
 * positions of one dim. */

#include "cpu/memory/kv_quants.h"

#include <math.h>
#include <string.h>

#include "gguf/format.h"

#define SCALED   32     /* dimensions that share a scale */
#define HALF_NAN 0x7e00 /* in half precision */
#define ZERO_4   8      /* what is stored of 0 in 4 bits */

static uint32_t n_scales(uint32_t dim)
{
    return (dim + SCALED - 1) / SCALED;
}

/* Bytes of the keys' quants; of values, whose dims are a multiple of 8, the same. */
static size_t q8_quants(uint32_t dim)
{
    return (size_t)dim * KERNELS_TOKENS;
}

static size_t q4_quants(uint32_t dim)
{
    return (size_t)(dim + 1) / 2 * KERNELS_TOKENS;
}

static size_t scale_bytes(uint32_t dim)
{
    return (size_t)n_scales(dim) * KERNELS_TOKENS * sizeof(uint16_t);
}

size_t kv_q8_bytes(uint32_t dim)
{
    return q8_quants(dim) + scale_bytes(dim);
}

size_t kv_q4_bytes(uint32_t dim)
{
    return q4_quants(dim) + scale_bytes(dim);
}

/* Scales stand behind the quants of a head's keys, or of its values. */
static uint16_t *scales_of(uint8_t *head, size_t quant_bytes)
{
    return (uint16_t *)(head + quant_bytes);
}

static const uint16_t *scales_in(const uint8_t *head, size_t quant_bytes)
{
    return (const uint16_t *)(head + quant_bytes);
}

/* Of the dims from d on, those that share a scale. */
static uint32_t scaled_from(uint32_t d, uint32_t dim)
{
    return dim - d < SCALED ? dim - d : SCALED;
}

/* ---- rounding ---- */

/* Rounds n ≤ SCALED numbers with a scale that is returned, to lowest … highest; the rest become 0. */
static uint16_t round_with(float ideal, const float *numbers, uint32_t n, long lowest, long highest,
                           int8_t ret_quants[SCALED])
{
    const uint16_t half = format_f32_to_f16(ideal);
    const float scale = format_f16_to_f32(half);
    memset(ret_quants, 0, SCALED);
    if (!isfinite(scale))
        return HALF_NAN;
    for (uint32_t i = 0; i < n && scale != 0; i++) {
        const long quant = lrintf(numbers[i] / scale); /* the scale was rounded too */
        const long raised = quant < lowest ? lowest : quant;
        ret_quants[i] = (int8_t)(raised > highest ? highest : raised);
    }
    return half;
}

/* The largest and the smallest of n numbers and zero; NaN both, if one is not finite. */
static void measure(const float *numbers, uint32_t n, float *ret_top, float *ret_bottom)
{
    *ret_top = *ret_bottom = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (!isfinite(numbers[i])) {
            *ret_top = *ret_bottom = NAN;
            return;
        }
        *ret_top = fmaxf(*ret_top, numbers[i]);
        *ret_bottom = fminf(*ret_bottom, numbers[i]);
    }
}

static uint16_t round_to_8_bits(const float *numbers, uint32_t n, int8_t ret_quants[SCALED])
{
    float top, bottom;
    measure(numbers, n, &top, &bottom);
    return round_with((top >= -bottom ? top : -bottom) / 127, numbers, n, -127, 127, ret_quants);
}

/* Of two that are as far from zero the positive number is exact. */
static uint16_t round_to_4_bits(const float *numbers, uint32_t n, int8_t ret_quants[SCALED])
{
    float top, bottom;
    measure(numbers, n, &top, &bottom);
    return round_with((top >= -bottom ? top : bottom) / -8, numbers, n, -8, 7, ret_quants);
}

/* ---- 8 bits ---- */

void kv_q8_store(const struct kv_layer *kv, const float *key, const float *value, uint32_t offset,
                 uint8_t *keys, uint8_t *values)
{
    uint16_t *key_scales = scales_of(keys, q8_quants(kv->dim)) + offset;
    uint16_t *value_scales = scales_of(values, q8_quants(kv->value_dim)) + offset * n_scales(kv->value_dim);
    for (uint32_t d = 0, s = 0; d < kv->dim; d += SCALED, s++) {
        const uint32_t n = scaled_from(d, kv->dim);
        int8_t quants[SCALED];
        key_scales[s * KERNELS_TOKENS] = round_to_8_bits(key + d, n, quants);
        for (uint32_t i = 0; i < n; i++)
            keys[(size_t)(d + i) * KERNELS_TOKENS + offset] = (uint8_t)quants[i];
        value_scales[s] = round_to_8_bits(value + d, n, quants);
        memcpy(values + (size_t)offset * kv->value_dim + d, quants, scaled_from(d, kv->value_dim));
    }
}

void kv_q8_load(const struct kv_layer *kv, const struct kernels *kernels, const uint8_t *keys,
                const uint8_t *values, float *ret_keys, float *ret_values)
{
    const uint16_t *key_scales = scales_in(keys, q8_quants(kv->dim));
    const uint16_t *value_scales = scales_in(values, q8_quants(kv->value_dim));
    float scales[KERNELS_TOKENS];
    for (uint32_t d = 0; d < kv->dim; d++) {
        const size_t at = (size_t)d * KERNELS_TOKENS;
        if (d % SCALED == 0)
            kernels->halves_to_floats(key_scales + at / SCALED, KERNELS_TOKENS, scales);
        kernels->scale_each((const int8_t *)keys + at, scales, KERNELS_TOKENS, ret_keys + at);
    }
    for (uint32_t t = 0; t < KERNELS_TOKENS; t++)
        for (uint32_t d = 0; d < kv->value_dim; d += SCALED) {
            const size_t at = (size_t)t * kv->value_dim + d;
            const float scale = format_f16_to_f32(*value_scales++);
            kernels->scale_all((const int8_t *)values + at, scale, scaled_from(d, kv->value_dim),
                               ret_values + at);
        }
}

/* ---- 4 bits ---- */

static uint8_t pack(int8_t low, int8_t high)
{
    return (uint8_t)((low + ZERO_4) | (high + ZERO_4) << 4);
}

/* n bytes: their low halves, and their high ones. */
static void unpack(const uint8_t *bytes, uint32_t n, int8_t *ret_low, int8_t *ret_high)
{
    for (uint32_t i = 0; i < n; i++) {
        ret_low[i] = (int8_t)((bytes[i] & 15) - ZERO_4);
        ret_high[i] = (int8_t)((bytes[i] >> 4) - ZERO_4);
    }
}

void kv_q4_store(const struct kv_layer *kv, const float *key, const float *value, uint32_t offset,
                 uint8_t *keys, uint8_t *values)
{
    uint16_t *key_scales = scales_of(keys, q4_quants(kv->dim)) + offset;
    uint16_t *value_scales = scales_of(values, q4_quants(kv->value_dim)) + offset * n_scales(kv->value_dim);
    uint8_t *to_value = values + (size_t)offset * kv->value_dim / 2;
    for (uint32_t d = 0, s = 0; d < kv->dim; d += SCALED, s++) {
        const uint32_t n = scaled_from(d, kv->dim), half = scaled_from(d, kv->value_dim) / 2;
        int8_t quants[SCALED];
        key_scales[s * KERNELS_TOKENS] = round_to_4_bits(key + d, n, quants);
        for (uint32_t i = 0; i < n; i += 2) /* of an odd number, the last has a zero beside it */
            keys[(size_t)(d + i) / 2 * KERNELS_TOKENS + offset] = pack(quants[i], quants[i + 1]);
        value_scales[s] = round_to_4_bits(value + d, n, quants);
        for (uint32_t i = 0; i < half; i++)
            to_value[d / 2 + i] = pack(quants[i], quants[half + i]);
    }
}

void kv_q4_load(const struct kv_layer *kv, const struct kernels *kernels, const uint8_t *keys,
                const uint8_t *values, float *ret_keys, float *ret_values)
{
    const uint16_t *key_scales = scales_in(keys, q4_quants(kv->dim));
    const uint16_t *value_scales = scales_in(values, q4_quants(kv->value_dim));
    float scales[KERNELS_TOKENS];
    int8_t quants[2 * KERNELS_TOKENS];
    for (uint32_t d = 0; d < kv->dim; d += 2) {
        const uint32_t n = kv->dim - d < 2 ? 1 : 2;
        if (d % SCALED == 0)
            kernels->halves_to_floats(key_scales + d / SCALED * KERNELS_TOKENS, KERNELS_TOKENS, scales);
        unpack(keys + (size_t)d / 2 * KERNELS_TOKENS, KERNELS_TOKENS, quants, quants + KERNELS_TOKENS);
        for (uint32_t i = 0; i < n; i++)
            kernels->scale_each(quants + (size_t)i * KERNELS_TOKENS, scales, KERNELS_TOKENS,
                                ret_keys + (size_t)(d + i) * KERNELS_TOKENS);
    }
    for (uint32_t t = 0; t < KERNELS_TOKENS; t++)
        for (uint32_t d = 0; d < kv->value_dim; d += SCALED) {
            const uint32_t n = scaled_from(d, kv->value_dim);
            const size_t at = (size_t)t * kv->value_dim + d;
            unpack(values + at / 2, n / 2, quants, quants + n / 2);
            kernels->scale_all(quants, format_f16_to_f32(*value_scales++), n, ret_values + at);
        }
}
