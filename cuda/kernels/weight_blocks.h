/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_WEIGHT_BLOCKS_H
#define CUDA_KERNELS_WEIGHT_BLOCKS_H

/* A lane's share of a quantized row: one block of 32 columns, from the planes (layout.h) to a product.
 *
 * fetch_block only loads, 16 bytes of quants at a time, so that many loads are in flight; open_block makes
 * eight words of four int8 from them, word c with the columns 4 c … 4 c + 3; add_block multiplies them by a
 * block of activations. The products of a block are summed exactly, in integers. The order of floating-point
 * operations is explicit (fmaf), so it is the same in every kernel that includes this. */

#include "cuda/kernels/activations.h"

struct alignas(16) word_four {
    uint32_t w[4];
};

struct alignas(8) word_two {
    uint32_t w[2];
};

/* ---- the parts of blocks ---- */

enum block_quants {
    QUANTS_BYTES,
    QUANTS_NIBBLES,
    QUANTS_PAIRS, /* of bits */
    QUANTS_PLACES /* nibbles: places of weights in the format's table */
};

enum block_scales {
    SCALE,           /* of the block, binary16 */
    SCALE_EXPONENT,  /* of the block, a power of two */
    SCALE_AND_MIN,   /* of the block, both binary16 */
    FACTOR,          /* of the block, under a scale of eight */
    FACTOR_AND_MIN,  /* under two scales of eight */
    FACTORS,         /* one for each half, under a scale of eight */
    FACTORS_AND_MINS /* two for each half, under two scales of eight */
};

/* One for each format of the list that has blocks: other formats do not compile. `tops`: bits of a weight
 * beside its quant, in plane 2. */
template <enum format F> struct block_kind;

#define BLOCK_KIND(format, quants_, tops_, offset_, scales_)                                                 \
    template <> struct block_kind<format> {                                                                  \
        static constexpr enum block_quants quants = quants_;                                                 \
        static constexpr int tops = tops_;                                                                   \
        static constexpr int32_t offset = offset_;                                                           \
        static constexpr enum block_scales scales = scales_;                                                 \
    };
BLOCK_KIND(FORMAT_Q4_0, QUANTS_NIBBLES, 0, 8, SCALE)
BLOCK_KIND(FORMAT_Q4_1, QUANTS_NIBBLES, 0, 0, SCALE_AND_MIN)
BLOCK_KIND(FORMAT_Q5_0, QUANTS_NIBBLES, 1, 16, SCALE)
BLOCK_KIND(FORMAT_Q5_1, QUANTS_NIBBLES, 1, 0, SCALE_AND_MIN)
BLOCK_KIND(FORMAT_Q8_0, QUANTS_BYTES, 0, 0, SCALE)
BLOCK_KIND(FORMAT_Q2_K, QUANTS_PAIRS, 0, 0, FACTORS_AND_MINS)
BLOCK_KIND(FORMAT_Q3_K, QUANTS_PAIRS, 1, 4, FACTORS)
BLOCK_KIND(FORMAT_Q4_K, QUANTS_NIBBLES, 0, 0, FACTOR_AND_MIN)
BLOCK_KIND(FORMAT_Q5_K, QUANTS_NIBBLES, 1, 0, FACTOR_AND_MIN)
BLOCK_KIND(FORMAT_Q6_K, QUANTS_NIBBLES, 2, 32, FACTORS)
BLOCK_KIND(FORMAT_IQ4_NL, QUANTS_PLACES, 0, 0, SCALE)
BLOCK_KIND(FORMAT_IQ4_XS, QUANTS_PLACES, 0, 0, FACTOR)
BLOCK_KIND(FORMAT_MXFP4, QUANTS_PLACES, 0, 0, SCALE_EXPONENT)
#undef BLOCK_KIND

/* For the others: whether a weight is a number by itself. */
template <enum format F> static __device__ inline constexpr bool is_float(void)
{
    return F == FORMAT_F32 || F == FORMAT_F16 || F == FORMAT_BF16;
}

template <enum format F> static __device__ inline constexpr int32_t offset_of(void)
{
    return block_kind<F>::offset;
}

/* Whether the block has a minimum. */
template <enum format F> static __device__ inline constexpr bool has_minimum(void)
{
    return block_kind<F>::scales == SCALE_AND_MIN || block_kind<F>::scales == FACTOR_AND_MIN;
}

/* Whether each half has a minimum. */
template <enum format F> static __device__ inline constexpr bool has_minimums(void)
{
    return block_kind<F>::scales == FACTORS_AND_MINS;
}

/* Whether each half has a factor. */
template <enum format F> static __device__ inline constexpr bool has_factors(void)
{
    return block_kind<F>::scales == FACTORS || block_kind<F>::scales == FACTORS_AND_MINS;
}

/* Four weights of a format with a table, int8: block_iq4_values or block_mxfp4_values, four to a word. */
template <enum format F> static __device__ inline constexpr uint32_t table_word(uint32_t i)
{
    constexpr uint32_t iq4[4] = {0xbfad9881, 0xf6eaddcf, 0x26190d01, 0x71594535};
    constexpr uint32_t mxfp4[4] = {0x03020100, 0x0c080604, 0xfdfeff00, 0xf4f8fafc};
    return F == FORMAT_MXFP4 ? mxfp4[i] : iq4[i];
}

/* The weights at four places, given in the low 16 bits. */
template <enum format F> static __device__ inline uint32_t from_table(uint32_t places)
{
    const uint32_t low = simt_permute(table_word<F>(0), table_word<F>(1), places);
    const uint32_t high = simt_permute(table_word<F>(2), table_word<F>(3), places);
    return simt_permute(low, high, 0x3210 | (places & 0x8888) >> 1);
}

/* 2^(exponent − 128), as block_mxfp4_scale. */
static __device__ inline float scale_of_exponent(uint32_t exponent)
{
    const uint32_t bits = exponent < 2 ? 0x00200000u << exponent : (exponent - 1) << 23;
    return simt_of_bits(exponent == 255 ? 0x7fc00000u : bits);
}

/* ---- a block ---- */

/* A block as loaded; members that a format does not have stay unset. */
struct raw_block {
    struct simt_16 quants, more; /* more: the second half of bytes, the header of FACTOR_AND_MIN; in its first
                                  * word a scale and minimum scale, binary16 */
    uint32_t tops[2];
    half_t scale;
    uint16_t scales; /* 8 bits of each half or of the block */
};

/* An opened block: value = scale · factors[h] · (w − offset) − min_scale · mins[h], h the half of the block;
 * factors and mins of the whole block are the first ones. */
struct open_block {
    uint32_t w[8];
    float scale, min_scale;
    int32_t factors[2], mins[2];
};

/* A block of activations. */
struct x_block {
    uint32_t w[8];
    int32_t totals[2]; /* Σ quants of each half; only for formats with an offset or minimums of halves */
    float scale, sum;
};

template <enum format F>
static __device__ inline void fetch_scales(const struct device_matrix &matrix, size_t at,
                                           struct raw_block *raw)
{
    const void *const *planes = matrix.planes;
    switch (block_kind<F>::scales) {
    case SCALE:
        raw->scale = ((const half_t *)planes[1])[at];
        break;
    case SCALE_EXPONENT:
        raw->scales = ((const uint8_t *)planes[1])[at];
        break;
    case SCALE_AND_MIN:
        raw->more.words[0] = ((const uint32_t *)planes[1])[at];
        break;
    case FACTOR:
        raw->scales = ((const uint8_t *)planes[1])[at];
        raw->scale = ((const half_t *)planes[2])[at / 8];
        break;
    case FACTOR_AND_MIN:
        raw->more = simt_load16((const uint8_t *)planes[1] + at / 8 * 16);
        break;
    case FACTORS:
        raw->scales = ((const uint16_t *)planes[1])[at];
        raw->scale = ((const half_t *)planes[3])[at / 8];
        break;
    case FACTORS_AND_MINS:
        raw->scales = ((const uint16_t *)planes[1])[at];
        raw->more.words[0] = ((const uint32_t *)planes[2])[at / 8];
        break;
    }
}

/* Block `block` of row `row`. */
template <enum format F>
static __device__ inline void fetch_block(const struct device_matrix &matrix, uint32_t row, uint32_t block,
                                          struct raw_block *raw)
{
    const size_t at = (size_t)row * (matrix.padded_columns / 32) + block;
    const uint8_t *quants = (const uint8_t *)matrix.planes[0];
    if (block_kind<F>::quants == QUANTS_BYTES) {
        quants += (at - block) * 32 + layout_quant_place(block * 32);
        raw->quants = simt_load16(quants);
        raw->more = simt_load16(quants + 128);
    } else if (block_kind<F>::quants == QUANTS_PAIRS) {
        const struct word_two pairs = ((const struct word_two *)quants)[at];
        raw->quants.words[0] = pairs.w[0];
        raw->quants.words[1] = pairs.w[1];
    } else {
        raw->quants = simt_load16(quants + at * 16);
    }
    if (block_kind<F>::tops == 1) {
        raw->tops[0] = ((const uint32_t *)matrix.planes[2])[at];
    } else if (block_kind<F>::tops == 2) {
        const struct word_two tops = ((const struct word_two *)matrix.planes[2])[at];
        raw->tops[0] = tops.w[0];
        raw->tops[1] = tops.w[1];
    }
    fetch_scales<F>(matrix, at, raw);
}

/* Shifts by a constant, in either direction. */
static __device__ inline uint32_t shifted_left(uint32_t bits, int n)
{
    return n >= 0 ? bits << n : bits >> -n;
}

template <enum format F> static __device__ inline uint32_t open_word(const struct raw_block &raw, int c)
{
    constexpr enum block_quants quants = block_kind<F>::quants;
    constexpr int bits = quants == QUANTS_PAIRS ? 2 : 4; /* of a quant; tops go above them */
    uint32_t word;
    if (quants == QUANTS_BYTES)
        return (c < 4 ? raw.quants : raw.more).words[c % 4];
    if (quants == QUANTS_PLACES)
        return from_table<F>(raw.quants.words[c % 4] >> (c < 4 ? 0 : 16));
    if (quants == QUANTS_PAIRS)
        word = raw.quants.words[c / 4] >> 2 * (c % 4) & 0x03030303;
    else
        word = raw.quants.words[c % 4] >> (c < 4 ? 0 : 4) & 0x0f0f0f0f;
    if (block_kind<F>::tops == 1)
        word |= shifted_left(raw.tops[0], bits - c) & 0x01010101u << bits;
    else if (block_kind<F>::tops == 2)
        word |= shifted_left(raw.tops[c / 4], bits - 2 * (c % 4)) & 0x03030303u << bits;
    return word;
}

template <enum format F>
static __device__ inline void open_block(const struct raw_block &raw, uint32_t block, struct open_block *open)
{
    constexpr enum block_scales scales = block_kind<F>::scales;
    SIMT_UNROLL
    for (int c = 0; c < 8; c++)
        open->w[c] = open_word<F>(raw, c);
    open->factors[0] = open->factors[1] = 1;
    if (scales == SCALE || scales == FACTOR || scales == FACTORS)
        open->scale = simt_float(raw.scale);
    if (scales == SCALE_EXPONENT)
        open->scale = scale_of_exponent(raw.scales);
    if (has_minimum<F>() || has_minimums<F>()) {
        open->scale = simt_float(half_t{(uint16_t)raw.more.words[0]});
        open->min_scale = simt_float(half_t{(uint16_t)(raw.more.words[0] >> 16)});
    }
    if (scales == SCALE_AND_MIN) /* which is added */
        open->mins[0] = -1;
    if (scales == FACTOR)
        open->factors[0] = (int8_t)raw.scales;
    if (scales == FACTOR_AND_MIN) {
        const uint32_t j = block % 8;
        uint32_t low = (j < 4 ? raw.more.words[1] : raw.more.words[2]) >> 8 * (j % 4),
                 top = raw.more.words[3] >> 4 * j;
        open->factors[0] = (int32_t)((low & 15) | (top & 3) << 4);
        open->mins[0] = (int32_t)((low >> 4 & 15) | (top & 12) << 2);
    }
    SIMT_UNROLL
    for (int h = 0; h < 2 && has_factors<F>(); h++) {
        const int32_t bits = raw.scales >> 8 * h & 255;
        open->factors[h] = has_minimums<F>() ? bits & 15 : (int8_t)bits;
        open->mins[h] = bits >> 4;
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
        if (offset_of<F>() || has_minimums<F>()) {
            ret->totals[0] = simt_dp4a(0x01010101, (int32_t)low.w[c], ret->totals[0]);
            ret->totals[1] = simt_dp4a(0x01010101, (int32_t)high.w[c], ret->totals[1]);
        }
    }
    ret->scale = x.scales[at];
    ret->sum = has_minimum<F>() ? x.sums[at] : 0;
}

/* Adds the block's product to the sum. */
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
    int32_t dot = has_factors<F>() ? dots[0] * open.factors[0] + dots[1] * open.factors[1]
                                   : (dots[0] + dots[1]) * open.factors[0];
    sum = fmaf((float)dot, open.scale * x.scale, sum);
    if (has_minimum<F>())
        sum = fmaf((float)open.mins[0] * x.sum, -open.min_scale, sum);
    if (has_minimums<F>())
        sum = fmaf((float)(open.mins[0] * x.totals[0] + open.mins[1] * x.totals[1]),
                   -open.min_scale * x.scale, sum);
    return sum;
}

#endif
