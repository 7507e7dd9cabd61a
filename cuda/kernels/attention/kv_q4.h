/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_KV_Q4_H
#define CUDA_KERNELS_ATTENTION_KV_Q4_H

/* Keys and values in 4 bits (kv_scaled.h): number = scale · (quant − 8), 0 ≤ quant ≤ 15. The number farthest
 * from zero has quant 0, so the scale has the opposite sign. Dims are padded to 32.
 *
 * A byte has dims d and d + 4 of one position, d % 8 < 4, the first in its low half. So it belongs to one
 * warp: other warps may write other positions at the same time.
 *
 *   keys    [dim / 8][32 positions][4 bytes]
 *   values  [position / 8][dim / 8 · 4 + d % 4][8 positions]
 *
 * 16 bytes are 8 neighbours of four: for keys of four neighbouring positions, for values of the dims of two
 * neighbouring bytes. So column n of four right sides is 4 n … 4 n + 3 of 32. */

#include "cuda/kernels/attention/kv_scaled.h"

#define KV_ZERO_4    8
#define KV_NIBBLES   0x0f0f0f0fu
#define KV_LESS_1032 0xe408e408u /* −(1024 + 8), twice */

struct alignas(16) kv_eight_scales {
    half_t x[8];
};

struct kv_q4 {
    static const uint32_t SIDES = 4;
    static const uint32_t WIDE_BLOCKS = 3;
    static const bool SCALED = true;

    struct keys {
        uint32_t sides[TOKEN_TILES][4];
        float scales[TOKEN_TILES][2]; /* of column lane % 4 · 2 and the next */
    };

    __device__ static inline half_t *scales_of(const struct device_kv *kv, const uint8_t *part)
    {
        return (half_t *)(part + kv->padded / 2 * BACKEND_BLOCK_TOKENS);
    }

    /* Rounds a lane's number together with those of the other lanes of a warp. All lanes get the scale; a NaN
     * makes it NaN, too. */
    __device__ static inline uint32_t round(float x, half_t *ret_scale)
    {
        const bool spoilt = simt_ballot(x != x) != 0;
        const float cut = kv_cut(x), top = simt_warp_max(cut), bottom = simt_warp_max(-cut);
        const half_t half = simt_half((top >= bottom ? top : -bottom) / -8);
        const float scale = simt_float(half);
        *ret_scale = spoilt ? half_t{KV_SCALE_NAN} : half;
        if (spoilt || scale == 0)
            return KV_ZERO_4;
        const int32_t quant = simt_nearest(cut / scale); /* the scale was rounded too */
        const int32_t raised = quant < -8 ? -8 : quant;
        return (uint32_t)((raised > 7 ? 7 : raised) + KV_ZERO_4);
    }

    /* Packs a lane's quant and that of the lane four further on. */
    __device__ static inline uint8_t pack(uint32_t quant)
    {
        return (uint8_t)(quant | simt_shuffle_xor(quant, 4) << 4);
    }

    __device__ static inline void store(const struct device_kv *kv, uint8_t *keys, uint8_t *values,
                                        uint32_t offset, const float *key, const float *value)
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        half_t *key_scales = scales_of(kv, keys) + offset, *value_scales = scales_of(kv, values) + offset;
        uint8_t *to_keys = keys + offset * 4;
        uint8_t *to_values = values + offset / KV_VECTOR * kv->padded / 2 * KV_VECTOR + offset % KV_VECTOR;
        for (uint32_t first = 0; first < kv->dim; first += KV_SCALED) {
            const uint32_t d = first + lane, group = first / KV_SCALED;
            half_t key_scale, value_scale;
            const uint8_t key_pair = pack(round(d < kv->dim ? key[d] : 0, &key_scale));
            const uint8_t value_pair = pack(round(d < kv->dim ? value[d] : 0, &value_scale));
            if (d % KV_VECTOR < 4) {
                to_keys[d / KV_VECTOR * BACKEND_BLOCK_TOKENS * 4 + d % KV_VECTOR] = key_pair;
                to_values[(d / KV_VECTOR * 4 + d % KV_VECTOR) * KV_VECTOR] = value_pair;
            }
            if (lane == 0) {
                key_scales[group * BACKEND_BLOCK_TOKENS] = key_scale;
                value_scales[group * BACKEND_BLOCK_TOKENS] = value_scale;
            }
        }
    }

    /* Widens the low four bits of four bytes, and the high ones, to halves. */
    __device__ static inline void widen(uint32_t bytes, uint32_t ret_low[2], uint32_t ret_high[2])
    {
        kv_widen(bytes & KV_NIBBLES, KV_LESS_1032, ret_low);
        kv_widen(bytes >> 4 & KV_NIBBLES, KV_LESS_1032, ret_high);
    }

    __device__ static inline struct keys load_keys(const struct device_kv *kv, const uint8_t *keys,
                                                   uint32_t vector)
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        const struct simt_16 raw = simt_fresh16(keys + (vector * BACKEND_BLOCK_TOKENS + lane / 4 * 4) * 4);
        const struct kv_eight_scales scales =
            *(const struct kv_eight_scales *)(scales_of(kv, keys) +
                                              vector * KV_VECTOR / KV_SCALED * BACKEND_BLOCK_TOKENS +
                                              lane % 4 * 8);
        struct keys loaded;
        SIMT_UNROLL
        for (uint32_t t = 0; t < TOKEN_TILES; t++) {
            widen(raw.words[t], loaded.sides[t], loaded.sides[t] + 2);
            loaded.scales[t][0] = simt_float(scales.x[t]);
            loaded.scales[t][1] = simt_float(scales.x[4 + t]);
        }
        return loaded;
    }

    __device__ static inline uint32_t position_of(uint32_t t, uint32_t column)
    {
        return column * SIDES + t;
    }

    __device__ static inline void load_values(const struct device_kv *kv, const uint8_t *values,
                                              uint32_t tile, uint32_t ret_sides[SIDES][4])
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        const struct simt_16 raw =
            simt_fresh16(values + (lane % 4 * kv->padded / 2 + tile * 16 + lane / 4 * 2) * KV_VECTOR);
        const struct simt_16 scales =
            *(const struct simt_16 *)(scales_of(kv, values) + tile * BACKEND_BLOCK_TOKENS +
                                      lane % 4 * KV_VECTOR);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++) /* two words of a byte's dims: positions 0 … 3 and 4 … 7 */
            widen(raw.words[i], ret_sides[i / 2 * 2] + i % 2 * 2, ret_sides[i / 2 * 2 + 1] + i % 2 * 2);
        SIMT_UNROLL
        for (uint32_t i = 0; i < SIDES * 4; i++)
            ret_sides[i / 4][i % 4] = simt_multiply_halves(ret_sides[i / 4][i % 4], scales.words[i % 4]);
    }

    __device__ static inline uint32_t dim_of(uint32_t tile, uint32_t side, uint32_t column)
    {
        const uint32_t byte = tile * 16 + column * 2 + side / 2;
        return byte / 4 * KV_VECTOR + byte % 4 + side % 2 * 4;
    }
};

static_assert(TOKEN_TILES == kv_q4::SIDES, "a load has all positions of a block's keys");

#endif
