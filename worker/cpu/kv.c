/* SPDX-License-Identifier: MIT */
/* The pool's geometry, its size, and writing a position into it. */

#include "worker/cpu/kv.h"

#include <errno.h>
#include <string.h>

int kv_init(struct kv *kv, const struct model_params *params, uint32_t n_blocks, uint64_t wanted,
            struct memory *memory, struct error *err)
{
    *kv = (struct kv){.n_layers = params->n_layers, .n_heads = params->n_kv_heads, .dim = params->head_dim};
    kv->value_dim = (kv->dim + 7) / 8 * 8;
    kv->head_keys = (size_t)kv->dim * KERNELS_TOKENS;
    kv->head_values = (size_t)kv->value_dim * KERNELS_TOKENS;
    kv->layer_size = kv->n_heads * (kv->head_keys + kv->head_values);
    kv->block_size = kv->n_layers * kv->layer_size;
    size_t block_bytes = kv->block_size * sizeof *kv->pool;
    size_t available = memory_available();
    if (n_blocks == 0) {
        uint64_t fit = available ? available / 2 / block_bytes : wanted;
        uint64_t n = wanted < fit ? wanted : fit;
        n_blocks = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
        if (n_blocks == 0)
            return error_set(err, -ENOMEM, "no memory for one KV block of %zu bytes: %zu are available",
                             block_bytes, available);
    } else if (available && n_blocks > available / block_bytes) {
        return error_set(err, -ENOMEM, "%u KV blocks of %zu bytes do not fit the %zu bytes available",
                         n_blocks, block_bytes, available);
    }
    kv->n_blocks = n_blocks;
    void *pool;
    int r = memory_take(memory, n_blocks * block_bytes, &pool);
    if (r < 0)
        return error_set(err, r, "no memory for %u KV blocks of %zu bytes", n_blocks, block_bytes);
    kv->pool = pool;
    return 0;
}

void kv_store(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
              uint32_t offset, const float *keys, const float *values)
{
    for (uint32_t h = 0; h < kv->n_heads; h++) {
        uint16_t *to_keys = kv_keys(kv, block, layer, h) + offset;
        uint16_t *to_values = kv_values(kv, block, layer, h) + (size_t)offset * kv->value_dim;
        for (uint32_t d = 0; d < kv->dim; d += 8) {
            /* The last eight of a head whose size is no multiple of 8 are filled up with zeros. */
            uint32_t n = kv->dim - d < 8 ? kv->dim - d : 8;
            float key[8] = {0}, value[8] = {0};
            uint16_t half[8];
            memcpy(key, keys + (size_t)h * kv->dim + d, n * sizeof *key);
            memcpy(value, values + (size_t)h * kv->dim + d, n * sizeof *value);
            kernels->floats_to_halves(key, 8, half);
            for (uint32_t i = 0; i < n; i++)
                to_keys[(size_t)(d + i) * KERNELS_TOKENS] = half[i];
            kernels->floats_to_halves(value, 8, to_values + d);
        }
    }
}
