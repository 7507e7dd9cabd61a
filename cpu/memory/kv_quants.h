/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_KV_QUANTS_H
#define CPU_MEMORY_KV_QUANTS_H

/* Keys and values of one head in 8 or in 4 bits: its part of a block, as kv.h describes it.
 *
 * `keys` and `values` point to the numbers of the head; `offset` is a position in the block. */

#include "cpu/kernels/kernels.h"
#include "cpu/memory/kv.h"

/* Bytes for `dim` dims of a block's positions, including scales: for keys, or for values, whose dims are
 * rounded up to 8. */
size_t kv_q8_bytes(uint32_t dim);
size_t kv_q4_bytes(uint32_t dim);

/* Rounds one position, [dim] numbers each, and writes it. If one of the numbers that share a scale is not
 * finite, or the scale exceeds half precision, the scale becomes NaN. */
void kv_q8_store(const struct kv_layer *kv, const float *key, const float *value, uint32_t offset,
                 uint8_t *keys, uint8_t *values);
void kv_q4_store(const struct kv_layer *kv, const float *key, const float *value, uint32_t offset,
                 uint8_t *keys, uint8_t *values);

/* Reads all positions as floats: keys [dim][32 tokens], values [32 tokens][value_dim]. */
void kv_q8_load(const struct kv_layer *kv, const struct kernels *kernels, const uint8_t *keys,
                const uint8_t *values, float *ret_keys, float *ret_values);
void kv_q4_load(const struct kv_layer *kv, const struct kernels *kernels, const uint8_t *keys,
                const uint8_t *values, float *ret_keys, float *ret_values);

#endif
