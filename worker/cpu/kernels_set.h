/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_KERNELS_SET_H
#define WORKER_CPU_KERNELS_SET_H

/* What the kernel sources of one instruction set share: their names end in the set's own, so that several
 * sets link into one program. kernels_table.c puts them together. */

#include "worker/cpu/kernels.h"
#include "worker/cpu/lanes_math.h"

extern kernel_multiply LANES_NAMED(multiply_f32), LANES_NAMED(multiply_f16), LANES_NAMED(multiply_bf16);
extern kernel_multiply LANES_NAMED(multiply_q8_0), LANES_NAMED(multiply_q4_0), LANES_NAMED(multiply_q5_0);
extern kernel_multiply LANES_NAMED(multiply_q4_k), LANES_NAMED(multiply_q5_k), LANES_NAMED(multiply_q6_k);

void LANES_NAMED(quantize)(const struct activations *x, uint32_t row);
void LANES_NAMED(rms_norm)(const float *x, const float *weight, uint32_t n, float epsilon, float *out);
void LANES_NAMED(silu_multiply)(const float *gate, const float *up, uint32_t n, float *out);
void LANES_NAMED(add)(float *x, const float *y, uint32_t n);
void LANES_NAMED(halves_to_floats)(const uint16_t *in, uint32_t n, float *out);
void LANES_NAMED(floats_to_halves)(const float *in, uint32_t n, uint16_t *out);
void LANES_NAMED(attend)(const float *query, const float *keys, uint32_t dim, const float *values,
                         uint32_t value_dim, uint32_t n_tokens, float largest_and_sum[2], float *acc);

extern const struct kernels LANES_NAMED(kernels);

/* Defines the kernel_multiply `name` from `tile`, an inlined function for a few activation rows that unpacks
 * the weights once for all of them; further arguments are handed to it, and are constants. Where loops are
 * unrolled it is compiled for eight, four, two and one rows, else for any number up to eight. */
#if defined(LANES_UNROLL)
#define DEFINE_MULTIPLY(name, tile, ...)                                                                     \
    void LANES_NAMED(name)(const uint8_t *group, uint32_t n_columns, const struct activations *x,            \
                           uint32_t first, uint32_t n, float *out, size_t out_stride)                        \
    {                                                                                                        \
        uint32_t i = 0;                                                                                      \
        for (; n - i >= 8; i += 8)                                                                           \
            tile(group, n_columns, x, first + i, 8, out + i * out_stride, out_stride, ##__VA_ARGS__);        \
        if (n - i >= 4) {                                                                                    \
            tile(group, n_columns, x, first + i, 4, out + i * out_stride, out_stride, ##__VA_ARGS__);        \
            i += 4;                                                                                          \
        }                                                                                                    \
        if (n - i >= 2) {                                                                                    \
            tile(group, n_columns, x, first + i, 2, out + i * out_stride, out_stride, ##__VA_ARGS__);        \
            i += 2;                                                                                          \
        }                                                                                                    \
        if (n - i == 1)                                                                                      \
            tile(group, n_columns, x, first + i, 1, out + i * out_stride, out_stride, ##__VA_ARGS__);        \
    }
#else
#define DEFINE_MULTIPLY(name, tile, ...)                                                                     \
    void LANES_NAMED(name)(const uint8_t *group, uint32_t n_columns, const struct activations *x,            \
                           uint32_t first, uint32_t n, float *out, size_t out_stride)                        \
    {                                                                                                        \
        for (uint32_t i = 0; i < n; i += TILE_MAX)                                                           \
            tile(group, n_columns, x, first + i, (int)(n - i < TILE_MAX ? n - i : TILE_MAX),                 \
                 out + i * out_stride, out_stride, ##__VA_ARGS__);                                           \
    }
#endif

#define TILE_MAX 8

/* A single activation row waits for memory: ask for the weights that come a few blocks later. A page ahead is
 * far enough for the memory's latency, and near enough that the lines are still there when they are needed
 * (measured: 27.5 → 30.7 ids a second of a 1.2 B model). Addresses beyond the weights are no more than hints.
 */
LANES_INLINE void prefetch_ahead(const uint8_t *group, uint32_t bytes, const int n)
{
    if (n > 1)
        return;
    for (uint32_t i = 0; i < bytes; i += 64)
        __builtin_prefetch(group + 4096 + i);
}

#endif
