/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_POOL_H
#define TESTS_UNIT_CUDA_POOL_H

/* Where a KV block stores a key and a value, and how they are rounded: a second implementation of the
 * descriptions in cuda/kernels/attention/kv.h, kv_f16.h, kv_q8.h and kv_q4.h. */

#include "cuda/kernels/kernels.h"
#include "gguf/format.h"

#include <math.h>

/* The types of keys and values: loop tests run for each. */
static const enum backend_kv_type pool_types[] = {BACKEND_KV_F16, BACKEND_KV_Q8, BACKEND_KV_Q4};
#define POOL_TYPES 3

/* One head's key or value at one position. */
struct pool_place {
    const struct device_kv *kv;
    uint32_t block, layer, head, offset;
    bool value;
};

static inline bool pool_scaled(const struct device_kv *kv)
{
    return kv->type != BACKEND_KV_F16;
}

static inline uint32_t pool_padded(const struct device_kv *kv)
{
    uint32_t to = 8;
    if (pool_scaled(kv))
        to = kv->type == BACKEND_KV_Q8 ? 16 : 32;
    return (kv->dim + to - 1) / to * to;
}

/* Bytes of a part's numbers, and of its scales. */
static inline size_t pool_numbers(const struct device_kv *kv)
{
    const size_t n = (size_t)pool_padded(kv) * 32;
    if (!pool_scaled(kv))
        return n * 2;
    return kv->type == BACKEND_KV_Q8 ? n : n / 2;
}

static inline size_t pool_scales(const struct device_kv *kv)
{
    return pool_scaled(kv) ? (kv->dim + 31) / 32 * 64 : 0;
}

/* All keys of the head, or all values. */
static inline uint8_t *pool_part(const struct pool_place *at)
{
    const struct device_kv *kv = at->kv;
    return kv->pool + at->block * kv->block_bytes + at->layer * kv->layer_bytes +
           (at->head * 2 + at->value) * (pool_numbers(kv) + pool_scales(kv));
}

static inline size_t pool_index(const struct pool_place *at, uint32_t d)
{
    return at->value ? (size_t)(at->offset / 8 * pool_padded(at->kv) + d) * 8 + at->offset % 8
                     : (size_t)(d / 8 * 32 + at->offset) * 8 + d % 8;
}

/* Of f16. */
static inline uint16_t *pool_half(const struct pool_place *at, uint32_t d)
{
    return (uint16_t *)pool_part(at) + pool_index(at, d);
}

/* Of q4_0: the byte that has dims d and d + 4. */
static inline uint8_t *pool_pair(const struct pool_place *at, uint32_t d)
{
    const uint32_t nth = d / 8 * 4 + d % 4;
    return pool_part(at) + (at->value ? (at->offset / 8 * pool_padded(at->kv) / 2 + nth) * 8 + at->offset % 8
                                      : (d / 8 * 32 + at->offset) * 4 + d % 4);
}

/* Of types with scales: the quant. */
static inline int pool_quant(const struct pool_place *at, uint32_t d)
{
    if (at->kv->type == BACKEND_KV_Q8)
        return ((int8_t *)pool_part(at))[pool_index(at, d)];
    return (*pool_pair(at, d) >> (d % 8 < 4 ? 0 : 4) & 15) - 8;
}

static inline void pool_put_quant(const struct pool_place *at, uint32_t d, int quant)
{
    if (at->kv->type == BACKEND_KV_Q8) {
        ((int8_t *)pool_part(at))[pool_index(at, d)] = (int8_t)quant;
        return;
    }
    const uint32_t shift = d % 8 < 4 ? 0 : 4;
    *pool_pair(at, d) = (uint8_t)((*pool_pair(at, d) & 0xf0 >> shift) | (quant + 8) << shift);
}

static inline uint16_t *pool_scale(const struct pool_place *at, uint32_t d)
{
    return (uint16_t *)(pool_part(at) + pool_numbers(at->kv)) + d / 32 * 32 + at->offset;
}

/* Of any type: the number. */
static inline float pool_number(const struct pool_place *at, uint32_t d)
{
    return pool_scaled(at->kv) ? format_f16_to_f32(*pool_scale(at, d)) * (float)pool_quant(at, d)
                               : format_f16_to_f32(*pool_half(at, d));
}

/* Rounds 32 dims, or the last few: returns the scale, and the quants of existing dims. */
static inline uint16_t pool_round(const struct device_kv *kv, const float *numbers, uint32_t n,
                                  int8_t quants[32])
{
    const bool q8 = kv->type == BACKEND_KV_Q8;
    float farthest = 0;
    for (uint32_t i = 0; i < n; i++) /* of two equally far, the positive one */
        if (fabsf(numbers[i]) > fabsf(farthest) || (numbers[i] > 0 && numbers[i] == -farthest))
            farthest = numbers[i];
    const uint16_t half = format_f32_to_f16(q8 ? fabsf(farthest) / 127 : farthest / -8);
    const float scale = format_f16_to_f32(half), lowest = q8 ? -127 : -8, highest = q8 ? 127 : 7;
    for (uint32_t i = 0; i < n; i++)
        quants[i] = (int8_t)(scale != 0 ? fmaxf(lowest, fminf(highest, rintf(numbers[i] / scale))) : 0);
    return half;
}

/* Rounds [dim] numbers within the range of halves and stores them; padded dims of keys become zeros. */
static inline void pool_put(const struct pool_place *at, const float *numbers)
{
    const struct device_kv *kv = at->kv;
    for (uint32_t d = kv->dim; d < pool_padded(kv) && !at->value; d++)
        if (pool_scaled(kv))
            pool_put_quant(at, d, 0);
        else
            *pool_half(at, d) = 0;
    for (uint32_t d = 0; d < kv->dim; d += 32) {
        const uint32_t n = kv->dim - d < 32 ? kv->dim - d : 32;
        int8_t quants[32];
        if (pool_scaled(kv))
            *pool_scale(at, d) = pool_round(kv, numbers + d, n, quants);
        for (uint32_t i = 0; i < n; i++)
            if (pool_scaled(kv))
                pool_put_quant(at, d + i, quants[i]);
            else
                *pool_half(at, d + i) = format_f32_to_f16(numbers[d + i]);
    }
}

#endif
