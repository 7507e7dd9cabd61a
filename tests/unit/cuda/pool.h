/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_POOL_H
#define TESTS_UNIT_CUDA_POOL_H

/* Where a KV block has a key and a value, and what they are rounded to, written a second time from what
 * cuda/kernels/attention/kv.h, kv_f16.h and kv_q8.h say. */

#include "cuda/kernels/kernels.h"
#include "gguf/format.h"

#include <math.h>

/* What keys and values are kept in: tests of a loop are run for each. */
static const enum backend_kv_type pool_types[] = {BACKEND_KV_F16, BACKEND_KV_Q8};
#define POOL_TYPES 2

/* One head's key or value at one position. */
struct pool_place {
    const struct device_kv *kv;
    uint32_t block, layer, head, offset;
    bool value;
};

static inline uint32_t pool_padded(const struct device_kv *kv)
{
    const uint32_t to = kv->type == BACKEND_KV_Q8 ? 16 : 8;
    return (kv->dim + to - 1) / to * to;
}

/* All keys of the head, or all values. */
static inline uint8_t *pool_part(const struct pool_place *at)
{
    const struct device_kv *kv = at->kv;
    const size_t numbers = (size_t)pool_padded(kv) * 32;
    const size_t part = kv->type == BACKEND_KV_Q8 ? numbers + (kv->dim + 31) / 32 * 64 : numbers * 2;
    return kv->pool + at->block * kv->block_bytes + at->layer * kv->layer_bytes +
           (at->head * 2 + at->value) * part;
}

static inline size_t pool_index(const struct pool_place *at, uint32_t d)
{
    return at->value ? (size_t)(at->offset / 8 * pool_padded(at->kv) + d) * 8 + at->offset % 8
                     : (size_t)(d / 8 * 32 + at->offset) * 8 + d % 8;
}

/* In f16. */
static inline uint16_t *pool_half(const struct pool_place *at, uint32_t d)
{
    return (uint16_t *)pool_part(at) + pool_index(at, d);
}

/* In q8_0. */
static inline int8_t *pool_quant(const struct pool_place *at, uint32_t d)
{
    return (int8_t *)pool_part(at) + pool_index(at, d);
}

static inline uint16_t *pool_scale(const struct pool_place *at, uint32_t d)
{
    return (uint16_t *)(pool_part(at) + (size_t)pool_padded(at->kv) * 32) + d / 32 * 32 + at->offset;
}

/* In either. */
static inline float pool_number(const struct pool_place *at, uint32_t d)
{
    return at->kv->type == BACKEND_KV_Q8 ? format_f16_to_f32(*pool_scale(at, d)) * *pool_quant(at, d)
                                         : format_f16_to_f32(*pool_half(at, d));
}

/* What 32 dims, or the last few, are rounded to: the scale; quants of those that are there. */
static inline uint16_t pool_round(const float *numbers, uint32_t n, int8_t quants[32])
{
    float largest = 0;
    for (uint32_t i = 0; i < n; i++)
        largest = fmaxf(largest, fabsf(numbers[i]));
    const uint16_t half = format_f32_to_f16(largest / 127);
    const float scale = format_f16_to_f32(half);
    for (uint32_t i = 0; i < n; i++)
        quants[i] = (int8_t)(scale > 0 ? fmaxf(-127, fminf(127, rintf(numbers[i] / scale))) : 0);
    return half;
}

/* Rounds [dim] numbers of a size that halves have, and puts them there; padded dims of keys become zeros. */
static inline void pool_put(const struct pool_place *at, const float *numbers)
{
    const struct device_kv *kv = at->kv;
    for (uint32_t d = kv->dim; d < pool_padded(kv) && !at->value; d++)
        if (kv->type == BACKEND_KV_Q8)
            *pool_quant(at, d) = 0;
        else
            *pool_half(at, d) = 0;
    for (uint32_t d = 0; d < kv->dim; d += 32) {
        const uint32_t n = kv->dim - d < 32 ? kv->dim - d : 32;
        int8_t quants[32];
        if (kv->type == BACKEND_KV_Q8)
            *pool_scale(at, d) = pool_round(numbers + d, n, quants);
        for (uint32_t i = 0; i < n; i++)
            if (kv->type == BACKEND_KV_Q8)
                *pool_quant(at, d + i) = quants[i];
            else
                *pool_half(at, d + i) = format_f32_to_f16(numbers[d + i]);
    }
}

#endif
