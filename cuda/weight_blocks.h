/* SPDX-License-Identifier: MIT */
#ifndef CUDA_WEIGHT_BLOCKS_H
#define CUDA_WEIGHT_BLOCKS_H

/* A lane's share of a quantized row: one block of 32 columns, from the planes (layout.h) to a product.
 *
 * fetch_block only loads, 16 bytes of quants at a time, so that many loads are in flight; open_block makes
 * eight words of four int8 out of them, word c the columns 4 c … 4 c + 3; add_block multiplies them by a
 * block of activations. The products of a block are summed exactly, in integers; the order of floating-point
 * operations is written out (fmaf), and so the same wherever these are compiled into. */

#include "cuda/activations.h"

struct alignas(16) word_four {
    uint32_t w[4];
};

struct alignas(8) word_two {
    uint32_t w[2];
};

/* As loaded; a format leaves what it has not. */
struct raw_block {
    struct simt_16 quants, more; /* more: Q8_0's second half, the header of Q4_K and Q5_K */
    uint32_t tops[2];
    half_t scale;
    uint16_t scales; /* Q6_K's two */
};

/* Opened: value = scale · factors[h] · (w − offset) − min_scale · min, h the half of the block. */
struct open_block {
    uint32_t w[8];
    float scale, min_scale;
    int32_t factors[2], min;
};

/* A block of activations. */
struct x_block {
    uint32_t w[8];
    int32_t totals[2]; /* Σ quants of each half; only for formats with an offset */
    float scale, sum;
};

template <enum format F> static __device__ inline constexpr bool has_minimum(void)
{
    return F == FORMAT_Q4_K || F == FORMAT_Q5_K;
}

template <enum format F> static __device__ inline constexpr int32_t offset_of(void)
{
    return F == FORMAT_Q4_0 ? 8 : F == FORMAT_Q5_0 ? 16 : F == FORMAT_Q6_K ? 32 : 0;
}

/* Block `block` of row `row`. */
template <enum format F>
static __device__ inline void fetch_block(const struct device_matrix &matrix, uint32_t row, uint32_t block,
                                          struct raw_block *raw)
{
    const size_t at = (size_t)row * (matrix.padded_columns / 32) + block;
    const uint8_t *quants = (const uint8_t *)matrix.planes[0];
    if (F == FORMAT_Q8_0) {
        quants += (at - block) * 32 + layout_quant_place(block * 32);
        raw->quants = simt_load16(quants);
        raw->more = simt_load16(quants + 128);
    } else {
        raw->quants = simt_load16(quants + at * 16);
    }
    if (F == FORMAT_Q4_K || F == FORMAT_Q5_K)
        raw->more = simt_load16((const uint8_t *)matrix.planes[1] + at / 8 * 16);
    if (F == FORMAT_Q8_0 || F == FORMAT_Q4_0 || F == FORMAT_Q5_0)
        raw->scale = ((const half_t *)matrix.planes[1])[at];
    if (F == FORMAT_Q5_0 || F == FORMAT_Q5_K)
        raw->tops[0] = ((const uint32_t *)matrix.planes[2])[at];
    if (F == FORMAT_Q6_K) {
        const struct word_two tops = ((const struct word_two *)matrix.planes[2])[at];
        raw->tops[0] = tops.w[0];
        raw->tops[1] = tops.w[1];
        raw->scales = ((const uint16_t *)matrix.planes[1])[at];
        raw->scale = ((const half_t *)matrix.planes[3])[at / 8];
    }
}

/* By a constant, either way. */
static __device__ inline uint32_t shifted_left(uint32_t bits, int n)
{
    return n >= 0 ? bits << n : bits >> -n;
}

template <enum format F>
static __device__ inline void open_block(const struct raw_block &raw, uint32_t block, struct open_block *open)
{
    SIMT_UNROLL
    for (int c = 0; c < 8; c++) {
        if (F == FORMAT_Q8_0) {
            open->w[c] = c < 4 ? raw.quants.words[c] : raw.more.words[c - 4];
            continue;
        }
        open->w[c] = raw.quants.words[c % 4] >> (c < 4 ? 0 : 4) & 0x0f0f0f0f;
        if (F == FORMAT_Q5_0 || F == FORMAT_Q5_K)
            open->w[c] |= shifted_left(raw.tops[0], 4 - c) & 0x10101010;
        if (F == FORMAT_Q6_K)
            open->w[c] |= shifted_left(raw.tops[c / 4], 4 - 2 * (c % 4)) & 0x30303030;
    }
    open->factors[0] = open->factors[1] = 1;
    if (has_minimum<F>()) {
        const uint32_t j = block % 8;
        uint32_t low = (j < 4 ? raw.more.words[1] : raw.more.words[2]) >> 8 * (j % 4),
                 top = raw.more.words[3] >> 4 * j;
        open->scale = simt_float(half_t{(uint16_t)raw.more.words[0]});
        open->min_scale = simt_float(half_t{(uint16_t)(raw.more.words[0] >> 16)});
        open->factors[0] = (int32_t)((low & 15) | (top & 3) << 4);
        open->min = (int32_t)((low >> 4 & 15) | (top & 12) << 2);
    } else {
        open->scale = simt_float(raw.scale);
    }
    if (F == FORMAT_Q6_K) {
        open->factors[0] = (int8_t)(raw.scales & 255);
        open->factors[1] = (int8_t)(raw.scales >> 8);
    }
}

/* Block `block` of activation row `row`. Read by every warp of a block, and so from the cache. */
template <enum format F>
static __device__ inline void read_x_block(const struct device_activations &x, uint32_t row, uint32_t block,
                                           struct x_block *ret)
{
    const size_t at = (size_t)row * (x.stride / 32) + block;
    const int8_t *quants = x.quants + (size_t)row * x.stride + layout_quant_place(block * 32);
    const struct word_four low = *(const struct word_four *)quants;
    const struct word_four high = *(const struct word_four *)(quants + 128);
    ret->totals[0] = ret->totals[1] = 0;
    SIMT_UNROLL
    for (int c = 0; c < 4; c++) {
        ret->w[c] = low.w[c];
        ret->w[c + 4] = high.w[c];
        if (offset_of<F>()) {
            ret->totals[0] = simt_dp4a(0x01010101, (int32_t)low.w[c], ret->totals[0]);
            ret->totals[1] = simt_dp4a(0x01010101, (int32_t)high.w[c], ret->totals[1]);
        }
    }
    ret->scale = x.scales[at];
    ret->sum = has_minimum<F>() ? x.sums[at] : 0;
}

/* sum + the block's product. */
template <enum format F>
static __device__ inline float add_block(const struct open_block &open, const struct x_block &x, float sum)
{
    int32_t dots[2] = {0, 0};
    SIMT_UNROLL
    for (int c = 0; c < 4; c++) {
        dots[0] = simt_dp4a((int32_t)open.w[c], (int32_t)x.w[c], dots[0]);
        dots[1] = simt_dp4a((int32_t)open.w[c + 4], (int32_t)x.w[c + 4], dots[1]);
    }
    SIMT_UNROLL
    for (int h = 0; h < 2; h++)
        dots[h] -= offset_of<F>() * x.totals[h];
    int32_t dot = F == FORMAT_Q6_K ? dots[0] * open.factors[0] + dots[1] * open.factors[1]
                                   : (dots[0] + dots[1]) * open.factors[0];
    sum = fmaf((float)dot, open.scale * x.scale, sum);
    if (has_minimum<F>())
        sum = fmaf((float)open.min * x.sum, -open.min_scale, sum);
    return sum;
}

#endif
