/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_KV_Q8_H
#define CUDA_KERNELS_ATTENTION_KV_Q8_H

/* Keys and values in 8 bits (kv_scaled.h): number = scale · quant, −127 ≤ quant ≤ 127. Dims are padded to 16.
 *
 * 16 bytes are 8 neighbours of two: for keys of two neighbouring positions, for values of two neighbouring
 * dims. So column n of two right sides is 2 n and 2 n + 1 of sixteen. */

#include "cuda/kernels/attention/kv_scaled.h"

#define KV_MOST_SCALE 515.5f /* a half whose product with 127 is still a finite half */
#define KV_SIGNS      0x80808080u
#define KV_LESS_1152  0xe480e480u /* −(1024 + 128), twice */

struct alignas(8) kv_four_scales {
    half_t x[4];
};

struct kv_q8 {
    static const uint32_t SIDES = 2;
    static const uint32_t WIDE_BLOCKS = 4;
    static const bool SCALED = true;

    struct keys {
        uint32_t sides[TOKEN_TILES][4];
        float scales[TOKEN_TILES][2]; /* of column lane % 4 · 2 and the next */
    };

    __device__ static inline half_t *scales_of(const struct device_kv *kv, const uint8_t *part)
    {
        return (half_t *)(part + kv->padded * BACKEND_BLOCK_TOKENS);
    }

    /* Four bytes as four halves. */
    __device__ static inline void widen(uint32_t quants, uint32_t ret_halves[2])
    {
        kv_widen(quants ^ KV_SIGNS, KV_LESS_1152, ret_halves); /* raised by 128 */
    }

    /* Rounds a lane's number together with those of the other lanes of a warp. All lanes get the scale; a NaN
     * makes it NaN, too. */
    __device__ static inline int8_t round(float x, half_t *ret_scale)
    {
        const bool spoilt = simt_ballot(x != x) != 0;
        const float cut = kv_cut(x), ideal = simt_warp_max(fabsf(cut)) / 127;
        const half_t half = simt_half(ideal < KV_MOST_SCALE ? ideal : KV_MOST_SCALE);
        const float scale = simt_float(half);
        *ret_scale = spoilt ? half_t{KV_SCALE_NAN} : half;
        if (spoilt || scale == 0)
            return 0;
        const int32_t quant = simt_nearest(cut / scale); /* the scale was rounded too */
        return (int8_t)(quant > 127 ? 127 : quant < -127 ? -127 : quant);
    }

    __device__ static inline void store(const struct device_kv *kv, uint8_t *keys, uint8_t *values,
                                        uint32_t offset, const float *key, const float *value)
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        half_t *key_scales = scales_of(kv, keys) + offset, *value_scales = scales_of(kv, values) + offset;
        uint8_t *to_keys = keys + offset * KV_VECTOR;
        uint8_t *to_values = values + offset / KV_VECTOR * kv->padded * KV_VECTOR + offset % KV_VECTOR;
        for (uint32_t first = 0; first < kv->dim; first += KV_SCALED) {
            const uint32_t d = first + lane, group = first / KV_SCALED;
            half_t key_scale, value_scale;
            const int8_t key_quant = round(d < kv->dim ? key[d] : 0, &key_scale);
            const int8_t value_quant = round(d < kv->dim ? value[d] : 0, &value_scale);
            if (d < kv->padded) {
                to_keys[d / KV_VECTOR * BACKEND_BLOCK_TOKENS * KV_VECTOR + d % KV_VECTOR] =
                    (uint8_t)key_quant;
                to_values[d * KV_VECTOR] = (uint8_t)value_quant;
            }
            if (lane == 0) {
                key_scales[group * BACKEND_BLOCK_TOKENS] = key_scale;
                value_scales[group * BACKEND_BLOCK_TOKENS] = value_scale;
            }
        }
    }

    __device__ static inline struct keys load_keys(const struct device_kv *kv, const uint8_t *keys,
                                                   uint32_t vector)
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        const uint8_t *from = keys + (vector * BACKEND_BLOCK_TOKENS + lane / 4 * 2) * KV_VECTOR;
        const half_t *scales = scales_of(kv, keys) + vector * KV_VECTOR / KV_SCALED * BACKEND_BLOCK_TOKENS;
        struct keys loaded;
        SIMT_UNROLL
        for (uint32_t half = 0; half < TOKEN_TILES / SIDES; half++) {
            const struct simt_16 raw =
                vector < kv->padded / KV_VECTOR ? simt_fresh16(from + half * 16 * KV_VECTOR) : simt_16{};
            const struct kv_four_scales four =
                *(const struct kv_four_scales *)(scales + half * 16 + lane % 4 * 4);
            SIMT_UNROLL
            for (uint32_t side = 0; side < SIDES; side++) {
                const uint32_t t = half * SIDES + side;
                widen(raw.words[2 * side], loaded.sides[t]);
                widen(raw.words[2 * side + 1], loaded.sides[t] + 2);
                loaded.scales[t][0] = simt_float(four.x[side]);
                loaded.scales[t][1] = simt_float(four.x[2 + side]);
            }
        }
        return loaded;
    }

    __device__ static inline uint32_t position_of(uint32_t t, uint32_t column)
    {
        return t / SIDES * 16 + column * SIDES + t % SIDES;
    }

    __device__ static inline void load_values(const struct device_kv *kv, const uint8_t *values,
                                              uint32_t tile, uint32_t ret_sides[SIDES][4])
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        const struct simt_16 raw =
            simt_fresh16(values + (lane % 4 * kv->padded + tile * 16 + lane / 4 * 2) * KV_VECTOR);
        const struct simt_16 scales =
            *(const struct simt_16 *)(scales_of(kv, values) + tile * 16 / KV_SCALED * BACKEND_BLOCK_TOKENS +
                                      lane % 4 * KV_VECTOR);
        SIMT_UNROLL
        for (uint32_t side = 0; side < SIDES; side++) {
            widen(raw.words[2 * side], ret_sides[side]);
            widen(raw.words[2 * side + 1], ret_sides[side] + 2);
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                ret_sides[side][i] = simt_multiply_halves(ret_sides[side][i], scales.words[i]);
        }
    }

    __device__ static inline uint32_t dim_of(uint32_t tile, uint32_t side, uint32_t column)
    {
        return tile * 16 + column * SIDES + side;
    }
};

#endif
