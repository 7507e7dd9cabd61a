/* SPDX-License-Identifier: MIT */
/* The first group has as many blocks as there is room for, the others go with it. */

#include "cuda/host/memory/pools.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/hash.h"
#include "engine/backend/kv_groups.h"
#include "model/model.h"

#define KV_LAYOUT_VERSION 4 /* raised with any change of the order or the type of what a block holds */

static uint64_t wants(const struct backend_group *group, const struct pools_shape *shape)
{
    return kv_group_wants(group, shape->n_slots, shape->n_context, shape->ahead);
}

uint64_t pools_wanted(const struct model *model, const struct pools_shape *shape)
{
    struct backend_group groups[BACKEND_MOST_GROUPS];
    kv_groups_of(model, shape->n_context, groups);
    return wants(&groups[0], shape);
}

/* Blocks of a group beside the first: no fewer than one sequence holds, or all want. */
static uint32_t blocks_beside(const struct backend_group *groups, uint32_t g, const struct pools_shape *shape)
{
    if (g == 0 || shape->alike)
        return shape->n_blocks;
    const uint64_t all = wants(&groups[g], shape), least = backend_held_blocks(&groups[g], shape->n_context);
    const double part = (double)shape->n_blocks / (double)wants(&groups[0], shape);
    uint64_t n = part < 1 ? (uint64_t)((double)all * part) : all;
    n = n > least ? n : least;
    return (uint32_t)(n < all ? n : all);
}

/* A layer's part of its group's blocks, behind the `*used` bytes of those before. */
static struct device_kv lay_out_layer(const struct device_kv *group, const struct head_shape *heads,
                                      size_t *used)
{
    struct device_kv kv = {.type = group->type, .n_layers = 1, .n_heads = heads->n_kv, .dim = heads->dim};
    kernels_kv_lay_out(&kv);
    kv.pool = group->pool;
    kv.n_blocks = group->n_blocks;
    kv.block_bytes = group->block_bytes;
    kv.offset = *used;
    *used += kv.layer_bytes;
    return kv;
}

/* Layers of groups whose pools are known, into `layers` or nowhere; the bytes of each group's blocks. */
static void lay_out_layers(const struct pools *pools, const struct model *model, uint32_t n_context,
                           struct pools_layer *layers, size_t ret_bytes[BACKEND_MOST_GROUPS])
{
    memset(ret_bytes, 0, BACKEND_MOST_GROUPS * sizeof *ret_bytes);
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        const struct layer_traits *traits = &model->layers[l].traits;
        if (layers && traits->borrows_kv) /* from a layer before it */
            layers[l] = layers[traits->kv_layer];
        if (!layer_has_kv(traits))
            continue;
        const uint32_t g = kv_group_of(pools->groups, pools->n_groups, model, l, n_context);
        const struct device_kv kv = lay_out_layer(&pools->kv[g], &traits->heads, &ret_bytes[g]);
        if (layers)
            layers[l] = (struct pools_layer){g, kv};
    }
}

int pools_init(struct pools *pools, struct device_memory *memory, const struct model *model,
               const struct pools_shape *shape)
{
    size_t bytes[BACKEND_MOST_GROUPS];
    *pools = (struct pools){0};
    pools->n_groups = kv_groups_of(model, shape->n_context, pools->groups);
    for (uint32_t g = 0; g < pools->n_groups; g++)
        pools->kv[g] = (struct device_kv){.type = shape->type,
                                          .n_layers = pools->groups[g].n_layers,
                                          .n_blocks = blocks_beside(pools->groups, g, shape)};
    lay_out_layers(pools, model, shape->n_context, NULL, bytes);
    for (uint32_t g = 0; g < pools->n_groups; g++) {
        struct device_kv *kv = &pools->kv[g];
        kv->block_bytes = bytes[g];
        pools->groups[g].n_blocks = kv->n_blocks;
        pools->groups[g].block_bytes = kv->block_bytes;
        kv->pool = device_memory_take(memory, kv->n_blocks * kv->block_bytes);
    }
    if (!memory->device)
        return 0;
    pools->layers = calloc(model->params.n_layers, sizeof *pools->layers);
    if (!pools->layers)
        return -ENOMEM;
    lay_out_layers(pools, model, shape->n_context, pools->layers, bytes);
    return 0;
}

void pools_deinit(struct pools *pools)
{
    free(pools->layers);
    pools->layers = NULL;
}

struct slots pools_slots(const struct slots *slots, uint32_t group)
{
    struct slots those = *slots;
    those.tables += (size_t)group * slots->n_slots * slots->table_size;
    return those;
}

uint64_t pools_layout(const struct pools *pools, uint32_t n_layers)
{
    const uint64_t geometry[] = {n_layers, BACKEND_BLOCK_TOKENS, pools->kv[0].type};
    uint64_t hash = hash64(geometry, sizeof geometry, KV_LAYOUT_VERSION << 8 | 'G');
    for (uint32_t l = 0; l < n_layers; l++) {
        const struct pools_layer *layer = &pools->layers[l];
        const uint64_t place[] = {layer->group, layer->kv.n_heads, layer->kv.dim, layer->kv.layer_bytes,
                                  layer->kv.offset};
        hash = hash64(place, sizeof place, hash);
    }
    return hash;
}
