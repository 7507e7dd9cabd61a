/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ACTIVATIONS_H
#define CUDA_KERNELS_ACTIVATIONS_H

/* Shared by kernels that compute activations: a thread has four columns of a row, so rows are read and
 * written 16 bytes at a time, and eight neighbouring lanes hold a block of 32. */

#include "cuda/kernels/kernels.h"
#include "cuda/kernels/trait_kinds.h"
#include "cuda/kernels/layout.h"
#include "cuda/device/simt.h"

struct alignas(16) float_four {
    float v[4];
};

static __device__ inline struct float_four read_four(const float *from)
{
    return *(const struct float_four *)from;
}

/* Four columns of an array that ends at n_columns, zeros beyond. */
static __device__ inline struct float_four read_columns(const float *from, uint32_t column,
                                                        uint32_t n_columns)
{
    struct float_four four;
    if (column + 4 <= n_columns)
        return read_four(from + column);
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        four.v[i] = column + i < n_columns ? from[column + i] : 0;
    return four;
}

/* Rounds blocks of 32 as the CPU backend does: scale = the largest magnitude / 127, quants are the nearest,
 * ties to even; a block with an infinity or NaN gets the scale NaN, so that the fault stays visible in every
 * output of the row. All lanes of a warp take part; `column` is a multiple of 4, and the columns of eight
 * neighbouring lanes are a block. Blocks that are not there are not written; a block is there as a whole or
 * not at all. */
static __device__ inline void quantize_four(const struct float_four &four,
                                            const struct device_activations *out, uint32_t row,
                                            uint32_t column, bool is_there = true)
{
    float largest = 0;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        float magnitude = fabsf(four.v[i]);
        largest = magnitude <= largest ? largest : magnitude <= 3.4028235e38f ? magnitude : INFINITY;
    }
    SIMT_UNROLL
    for (uint32_t mask = 1; mask < 8; mask *= 2)
        largest = fmaxf(largest, simt_shuffle_xor(largest, mask));
    const bool finite = largest < INFINITY;
    /* Below this the reciprocal would overflow; such a block is negligible. */
    const float inverse = largest > 1e-30f ? 127.0f / largest : 0;
    int32_t total = 0;
    uint32_t packed = 0;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        int32_t quant = finite ? simt_nearest(four.v[i] * inverse) : 0;
        total += quant;
        packed |= (uint32_t)(quant & 255) << 8 * i;
    }
    SIMT_UNROLL
    for (uint32_t mask = 1; mask < 8; mask *= 2)
        total += simt_shuffle_xor(total, mask);
    if (!is_there)
        return;
    *(uint32_t *)(out->quants + (size_t)row * out->stride + layout_quant_place(column)) = packed;
    if (column % 32 == 0) {
        size_t block = ((size_t)row * out->stride + column) / 32;
        float scale = finite ? largest / 127.0f : NAN;
        out->scales[block] = scale;
        out->sums[block] = scale * (float)total;
    }
}

/* Four columns of a row, as floats and quantized, as far as `out` has arrays for them. */
static __device__ inline void write_activations(const struct float_four &four,
                                                const struct device_activations *out, uint32_t row,
                                                uint32_t column, bool is_there = true)
{
    if (out->values && is_there)
        *(struct float_four *)(out->values + (size_t)row * out->stride + column) = four;
    if (out->quants)
        quantize_four(four, out, row, column, is_there);
}

#endif
