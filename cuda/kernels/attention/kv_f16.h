/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_KV_F16_H
#define CUDA_KERNELS_ATTENTION_KV_F16_H

/* Keys and values as halves (kv.h). 16 bytes are 8 neighbours: of keys, 32 lanes read 512 consecutive bytes,
 * position after position; of values the same, dim after dim. */

#include "cuda/kernels/attention/kv.h"

struct alignas(16) kv_halves {
    half_t x[KV_VECTOR];
};

struct kv_f16 {
    static const uint32_t SIDES = 1;
    static const uint32_t WIDE_BLOCKS = 4;
    static const bool SCALED = false;

    struct keys {
        uint32_t sides[TOKEN_TILES][4];
    };

    __device__ static inline void store(const struct device_kv *kv, uint8_t *keys, uint8_t *values,
                                        uint32_t offset, const float *key, const float *value)
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        struct kv_halves *to_keys = (struct kv_halves *)keys + offset;
        struct kv_halves *to_values = (struct kv_halves *)values + offset / KV_VECTOR * kv->padded;
        for (uint32_t i = lane; i < kv->padded / KV_VECTOR; i += SIMT_LANES) {
            struct kv_halves vector;
            for (uint32_t j = 0; j < KV_VECTOR; j++)
                vector.x[j] = simt_half(i * KV_VECTOR + j < kv->dim ? kv_cut(key[i * KV_VECTOR + j]) : 0);
            to_keys[i * BACKEND_BLOCK_TOKENS] = vector;
        }
        for (uint32_t d = lane; d < kv->dim; d += SIMT_LANES)
            to_values[d].x[offset % KV_VECTOR] = simt_half(kv_cut(value[d]));
    }

    __device__ static inline struct keys load_keys(const struct device_kv *kv, const uint8_t *keys,
                                                   uint32_t vector)
    {
        const struct kv_halves *from =
            (const struct kv_halves *)keys + vector * BACKEND_BLOCK_TOKENS + threadIdx.x % SIMT_LANES / 4;
        struct keys loaded;
        SIMT_UNROLL
        for (uint32_t t = 0; t < TOKEN_TILES; t++) {
            const struct simt_16 raw =
                vector < kv->padded / KV_VECTOR ? simt_fresh16(from + t * 8) : simt_16{};
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                loaded.sides[t][i] = raw.words[i];
        }
        return loaded;
    }

    __device__ static inline uint32_t position_of(uint32_t t, uint32_t column)
    {
        return t * 8 + column;
    }

    __device__ static inline void load_values(const struct device_kv *kv, const uint8_t *values,
                                              uint32_t tile, uint32_t ret_sides[SIDES][4])
    {
        const uint32_t lane = threadIdx.x % SIMT_LANES;
        const struct simt_16 raw =
            simt_fresh16((const struct kv_halves *)values + lane % 4 * kv->padded + tile * 8 + lane / 4);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            ret_sides[0][i] = raw.words[i];
    }

    __device__ static inline uint32_t dim_of(uint32_t tile, uint32_t side, uint32_t column)
    {
        return tile * 8 + column;
    }
};

#endif
