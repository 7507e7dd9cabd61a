/* SPDX-License-Identifier: MIT */
/* The pool's geometry, its size, and writing a position into it. */

#include "worker/cpu/kv.h"

#include <errno.h>
#include <string.h>

#include "common/hash.h"

#define KV_LAYOUT_VERSION 1 /* raised with any change of the order or the type of what a block holds */

/* How many blocks: as many as were asked for, or what fits. */
static int count_blocks(const struct memory *memory, size_t block_bytes, uint32_t asked, uint64_t wanted,
                        uint32_t *ret_n, struct error *err)
{
    const uint32_t n_sharers = memory->n_sharers ? memory->n_sharers : 1;
    struct available available;
    if (available_read("", &available) < 0) /* a machine that does not say: the kernel will */
        available = (struct available){.now = UINT64_MAX / 2, .total = UINT64_MAX / 2, .by = "the machine"};
    uint64_t fit = memory_share(memory, &available) / block_bytes;
    uint64_t n = wanted < fit ? wanted : fit;
    if (asked > 0) { /* not its part of what is left: one that starts again finds the others' blocks taken */
        const uint64_t shared = memory->shared < available.total ? memory->shared : available.total;
        const uint64_t own = (available.total - shared) / n_sharers;
        n = asked;
        fit = own > memory->total ? (own - memory->total) / block_bytes : 0;
        fit = available.now / block_bytes < fit ? available.now / block_bytes : fit;
    }
    if (n == 0 || n > fit)
        return error_set(
            err, -ENOMEM,
            "%llu KV blocks of %zu bytes for each of %u workers do not fit, %llu do: %s has %llu "
            "bytes, %llu of them free, %llu are promised to others, %zu taken by this worker",
            (unsigned long long)(n ? n : 1), block_bytes, n_sharers, (unsigned long long)fit, available.by,
            (unsigned long long)available.total, (unsigned long long)available.now,
            (unsigned long long)available.promised, memory->total + memory->shared);
    *ret_n = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
    return 0;
}

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
    int r = count_blocks(memory, block_bytes, n_blocks, wanted, &kv->n_blocks, err);
    if (r < 0)
        return r;
    void *pool;
    r = memory_take(memory, kv->n_blocks * block_bytes, &pool);
    if (r < 0)
        return error_set(err, r, "no memory for %u KV blocks of %zu bytes", kv->n_blocks, block_bytes);
    kv->pool = pool;
    return 0;
}

uint64_t kv_layout(const struct kv *kv)
{
    const uint32_t geometry[] = {kv->n_layers, kv->n_heads, kv->dim, kv->value_dim, KERNELS_TOKENS};
    return hash64(geometry, sizeof geometry, KV_LAYOUT_VERSION);
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
