/* SPDX-License-Identifier: MIT */
/* The pools' geometry, their sizes, and what is written to them and read. */

#include "cpu/memory/kv.h"

#include <errno.h>
#include <string.h>

#include "common/amount.h"
#include "common/hash.h"
#include "cpu/memory/kv_quants.h"
#include "engine/backend/kv_groups.h"
#include "gguf/format.h"

#define KV_LAYOUT_VERSION 4 /* raised with any change of the order or the type of what a block holds */

/* What the KV blocks may take: of all there is the part of one of those who share it, or, where a number was
 * asked for, not its part of what is left: one that starts again finds the others' blocks taken. */
static uint64_t most_bytes(const struct memory *memory, const struct available *available, bool asked)
{
    if (!asked)
        return memory_share(memory, available);
    const uint64_t own = memory_divided(memory, available) / (memory->n_sharers ? memory->n_sharers : 1);
    const uint64_t left = own > memory->total ? own - memory->total : 0;
    return available->now < left ? available->now : left;
}

static uint64_t total_bytes(const struct kv *kv, const uint64_t n[BACKEND_MOST_GROUPS])
{
    uint64_t bytes = 0;
    for (uint32_t g = 0; g < kv->n_groups; g++)
        bytes += n[g] * kv->groups[g].block_bytes;
    return bytes;
}

/* Cuts what is wanted to what fits: all groups alike, but those behind the first to no less than one sequence
 * holds of them. */
static void cut_to(const struct kv *kv, uint64_t fit, uint32_t n_context, uint64_t n[BACKEND_MOST_GROUPS])
{
    const double part = (double)fit / (double)total_bytes(kv, n);
    uint64_t others = 0;
    if (part >= 1)
        return;
    for (uint32_t g = 1; g < kv->n_groups; g++) {
        const uint64_t least = backend_held_blocks(&kv->groups[g], n_context);
        const uint64_t cut = (uint64_t)((double)n[g] * part);
        n[g] = cut > least ? cut : least;
        others += n[g] * kv->groups[g].block_bytes;
    }
    n[0] = fit > others ? (fit - others) / kv->groups[0].block_bytes : 0;
}

/* How many blocks of each group: as many as were asked for, or what fits of those wanted. */
static int count_blocks(struct kv *kv, const struct kv_config *config, const struct memory *memory,
                        struct error *err)
{
    uint64_t n[BACKEND_MOST_GROUPS] = {0};
    struct available available;
    if (available_read("", &available) < 0) /* a machine that does not say: the kernel will */
        available = (struct available){.now = UINT64_MAX / 2, .total = UINT64_MAX / 2, .by = "the machine"};
    const uint64_t fit = most_bytes(memory, &available, config->n_blocks > 0);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        n[g] = config->n_blocks
                   ? config->n_blocks
                   : kv_group_wants(&kv->groups[g], config->n_slots, config->n_context, config->max_rows);
    if (config->n_blocks == 0)
        cut_to(kv, fit, config->n_context, n);
    size_t set_bytes = 0; /* a block of each group */
    for (uint32_t g = 0; g < kv->n_groups; g++)
        set_bytes += kv->groups[g].block_bytes;
    if (config->n_blocks > 0 && total_bytes(kv, n) > available.total) /* however often it is tried */
        return error_set(err, -E2BIG, "%s of %s do not fit: %s has %s in all",
                         amount_of(n[0], "KV block").text, amount_of_bytes(set_bytes).text, available.by,
                         amount_of_bytes(available.total).text);
    if (n[0] == 0 || total_bytes(kv, n) > fit)
        return error_set(
            err, -ENOMEM,
            "%s of %s for each of %s do not fit (%llu would): %s has %s, %s free, %s committed to others, %s "
            "used by this worker, %s by the prefix store and other workers' "
            "weights",
            amount_of(n[0] ? n[0] : 1, "KV block").text, amount_of_bytes(set_bytes).text,
            amount_of(memory->n_sharers ? memory->n_sharers : 1, "worker").text,
            (unsigned long long)(fit / set_bytes), available.by, amount_of_bytes(available.total).text,
            amount_of_bytes(available.now).text, amount_of_bytes(available.promised).text,
            amount_of_bytes(memory->total + memory->shared).text, amount_of_bytes(memory->reserved).text);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        kv->groups[g].n_blocks = n[g] > UINT32_MAX ? UINT32_MAX : (uint32_t)n[g];
    return 0;
}

static size_t head_bytes(const struct kv *kv, uint32_t dim) /* in one block */
{
    const size_t numbers = (size_t)dim * KERNELS_TOKENS;
    switch (kv->type) {
    case BACKEND_KV_F32:
        return numbers * sizeof(float);
    case BACKEND_KV_F16:
    case BACKEND_KV_BF16:
        return numbers * sizeof(uint16_t);
    case BACKEND_KV_Q4:
        return kv_q4_bytes(dim);
    case BACKEND_KV_Q8:
    case BACKEND_KV_DEFAULT:
        break;
    }
    return kv_q8_bytes(dim);
}

static void shape_layer(const struct kv *kv, const struct head_shape *heads, struct kv_layer *layer)
{
    layer->n_heads = heads->n_kv;
    layer->dim = heads->dim;
    layer->value_dim = (heads->dim + 7) / 8 * 8;
    layer->head_keys = (size_t)layer->dim * KERNELS_TOKENS;
    layer->head_values = (size_t)layer->value_dim * KERNELS_TOKENS;
    layer->key_bytes = head_bytes(kv, layer->dim);
    layer->value_bytes = head_bytes(kv, layer->value_dim);
    layer->bytes = layer->n_heads * (layer->key_bytes + layer->value_bytes);
}

/* A model whose layers are not described has heads as its hyperparameters say: one that only looks like a
 * model. */
static struct head_shape heads_of(const struct model *model, uint32_t layer)
{
    const struct model_params *params = &model->params;
    const struct layer_traits *traits = model->layers ? &model->layers[layer].traits : NULL;
    if (traits)
        return layer_has_kv(traits) ? traits->heads : (struct head_shape){0};
    return (struct head_shape){params->n_heads, params->n_kv_heads, params->head_dim};
}

/* What a layer has, and where: `used` are the bytes of each group's blocks that those before it have. */
static struct kv_layer next_layer(const struct kv *kv, const struct kv_config *config, uint32_t l,
                                  size_t used[BACKEND_MOST_GROUPS])
{
    const struct head_shape heads = heads_of(config->model, l);
    const uint32_t g = kv_group_of(kv->groups, kv->n_groups, config->model, l, config->n_context);
    struct kv_layer layer = {.group = g, .offset = used[g]};
    shape_layer(kv, &heads, &layer);
    used[g] += layer.bytes;
    return layer;
}

static int place_layers(struct kv *kv, const struct kv_config *config, struct memory *memory)
{
    size_t used[BACKEND_MOST_GROUPS] = {0};
    void *layers;
    int r = memory_take(memory, kv->n_layers * sizeof *kv->layers, &layers);
    if (r < 0)
        return r;
    kv->layers = layers;
    for (uint32_t l = 0; l < kv->n_layers; l++)
        kv->layers[l] = next_layer(kv, config, l, used);
    return 0;
}

/* Scores of a model that ranks hang on differences that half precision rounds away. */
static enum backend_kv_type type_of(const struct kv_config *config)
{
    if (config->type != BACKEND_KV_DEFAULT)
        return config->type;
    return config->model->params.pooling == POOLING_RANK ? BACKEND_KV_F32 : BACKEND_KV_F16;
}

int kv_init(struct kv *kv, const struct kv_config *config, struct memory *memory, struct error *err)
{
    *kv = (struct kv){.type = type_of(config), .n_layers = config->model->params.n_layers};
    size_t used[BACKEND_MOST_GROUPS] = {0};
    kv->n_groups = kv_groups_of(config->model, config->n_context, kv->groups);
    for (uint32_t l = 0; l < kv->n_layers; l++)
        next_layer(kv, config, l, used);
    for (uint32_t g = 0; g < kv->n_groups; g++)
        kv->groups[g].block_bytes = used[g];
    int r = count_blocks(kv, config, memory, err);
    if (r == 0 && place_layers(kv, config, memory) < 0)
        r = error_set(err, -ENOMEM, "not enough memory for %u layers", kv->n_layers);
    for (uint32_t g = 0; r == 0 && g < kv->n_groups; g++) {
        const struct backend_group *group = &kv->groups[g];
        void *pool;
        r = memory_take(memory, group->n_blocks * group->block_bytes, &pool);
        if (r < 0)
            return error_set(err, r, "not enough memory for %u KV blocks of %s", group->n_blocks,
                             amount_of_bytes(group->block_bytes).text);
        kv->pools[g] = pool;
    }
    return r;
}

uint64_t kv_forget(const struct kv *kv, uint32_t group, const uint32_t *blocks, uint32_t n)
{
    uint64_t bytes = 0;
    for (uint32_t first = 0, end; first < n; first = end) { /* a page may hold several */
        for (end = first + 1; end < n && blocks[end] == blocks[end - 1] + 1;)
            end++;
        bytes +=
            memory_forget(kv_block(kv, group, blocks[first]), (end - first) * kv->groups[group].block_bytes);
    }
    return bytes;
}

uint64_t kv_layout(const struct kv *kv)
{
    const uint32_t geometry[] = {KERNELS_TOKENS, kv->type, kv->n_groups};
    uint64_t hash = hash64(geometry, sizeof geometry, KV_LAYOUT_VERSION);
    for (uint32_t l = 0; l < kv->n_layers; l++) {
        const struct kv_layer *layer = &kv->layers[l];
        const uint32_t numbers[] = {layer->group, layer->n_heads, layer->dim, layer->value_dim};
        hash = hash64(numbers, sizeof numbers, hash);
    }
    return hash;
}

static uint8_t *keys_of(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head)
{
    const struct kv_layer *at = &kv->layers[layer];
    return kv_block(kv, at->group, block) + at->offset + head * at->key_bytes;
}

static uint8_t *values_of(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head)
{
    const struct kv_layer *at = &kv->layers[layer];
    return keys_of(kv, block, layer, at->n_heads) + head * at->value_bytes;
}

/* ---- writing ---- */

static void store_halves(const struct kv_layer *kv, const struct kernels *kernels, const float *keys,
                         const float *values, uint16_t *to_keys, uint16_t *to_values)
{
    for (uint32_t d = 0; d < kv->dim; d += 8) {
        /* The last eight of a head whose size is not a multiple of 8 are filled up with zeros. */
        uint32_t n = kv->dim - d < 8 ? kv->dim - d : 8;
        float key[8] = {0}, value[8] = {0};
        uint16_t half[8];
        memcpy(key, keys + d, n * sizeof *key);
        memcpy(value, values + d, n * sizeof *value);
        kernels->floats_to_halves(key, 8, half);
        for (uint32_t i = 0; i < n; i++)
            to_keys[(size_t)(d + i) * KERNELS_TOKENS] = half[i];
        kernels->floats_to_halves(value, 8, to_values + d);
    }
}

/* One token of one head; its keys stand apart from one another, and its values are filled up with zeros. */
static void store_bfloats(const struct kv_layer *kv, const float *keys, const float *values,
                          uint16_t *to_keys, uint16_t *to_values)
{
    for (uint32_t d = 0; d < kv->dim; d++)
        to_keys[(size_t)d * KERNELS_TOKENS] = format_f32_to_bf16(keys[d]);
    for (uint32_t d = 0; d < kv->value_dim; d++)
        to_values[d] = d < kv->dim ? format_f32_to_bf16(values[d]) : 0;
}

static void store_floats(const struct kv_layer *kv, const float *keys, const float *values, float *to_keys,
                         float *to_values)
{
    for (uint32_t d = 0; d < kv->dim; d++)
        to_keys[(size_t)d * KERNELS_TOKENS] = keys[d];
    for (uint32_t d = 0; d < kv->value_dim; d++)
        to_values[d] = d < kv->dim ? values[d] : 0;
}

void kv_store(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
              uint32_t offset, const float *keys, const float *values)
{
    const struct kv_layer *at = &kv->layers[layer];
    for (uint32_t h = 0; h < at->n_heads; h++) {
        uint8_t *to_keys = keys_of(kv, block, layer, h), *to_values = values_of(kv, block, layer, h);
        const float *key = keys + (size_t)h * at->dim, *value = values + (size_t)h * at->dim;
        const size_t values_at = (size_t)offset * at->value_dim;
        switch (kv->type) {
        case BACKEND_KV_F32:
            store_floats(at, key, value, (float *)(void *)to_keys + offset,
                         (float *)(void *)to_values + values_at);
            break;
        case BACKEND_KV_F16:
            store_halves(at, kernels, key, value, (uint16_t *)to_keys + offset,
                         (uint16_t *)to_values + values_at);
            break;
        case BACKEND_KV_BF16:
            store_bfloats(at, key, value, (uint16_t *)to_keys + offset, (uint16_t *)to_values + values_at);
            break;
        case BACKEND_KV_Q4:
            kv_q4_store(at, key, value, offset, to_keys, to_values);
            break;
        case BACKEND_KV_Q8:
        case BACKEND_KV_DEFAULT:
            kv_q8_store(at, key, value, offset, to_keys, to_values);
        }
    }
}

/* ---- reading ---- */

void kv_load(const struct kv *kv, const struct kernels *kernels, uint32_t block, uint32_t layer,
             uint32_t head, float *ret_keys, float *ret_values)
{
    uint8_t *keys = keys_of(kv, block, layer, head), *values = values_of(kv, block, layer, head);
    const struct kv_layer *at = &kv->layers[layer];
    switch (kv->type) {
    case BACKEND_KV_F32:
        memcpy(ret_keys, keys, at->key_bytes);
        memcpy(ret_values, values, at->value_bytes);
        break;
    case BACKEND_KV_F16:
        kernels->halves_to_floats((uint16_t *)keys, (uint32_t)at->head_keys, ret_keys);
        kernels->halves_to_floats((uint16_t *)values, (uint32_t)at->head_values, ret_values);
        break;
    case BACKEND_KV_BF16:
        format_traits(FORMAT_BF16)->to_float(keys, ret_keys, at->head_keys);
        format_traits(FORMAT_BF16)->to_float(values, ret_values, at->head_values);
        break;
    case BACKEND_KV_Q4:
        kv_q4_load(at, kernels, keys, values, ret_keys, ret_values);
        break;
    case BACKEND_KV_Q8:
    case BACKEND_KV_DEFAULT:
        kv_q8_load(at, kernels, keys, values, ret_keys, ret_values);
    }
}

void kv_halves(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const uint16_t **ret_keys,
               const uint16_t **ret_values)
{
    *ret_keys = (const uint16_t *)keys_of(kv, block, layer, head);
    *ret_values = (const uint16_t *)values_of(kv, block, layer, head);
}

void kv_floats(const struct kv *kv, uint32_t block, uint32_t layer, uint32_t head, const float **ret_keys,
               const float **ret_values)
{
    *ret_keys = (const float *)(const void *)keys_of(kv, block, layer, head);
    *ret_values = (const float *)(const void *)values_of(kv, block, layer, head);
}
