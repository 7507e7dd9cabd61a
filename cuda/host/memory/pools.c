/* SPDX-License-Identifier: MIT */
/* The first group has as many blocks as there is room for, the others go with it. */

#include "cuda/host/memory/pools.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash.h"
#include "engine/backend/kv_groups.h"
#include "model/model.h"

#define KV_LAYOUT_VERSION 3 /* raised with any change of the order or the type of what a block holds */

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

/* Which group each layer is of, and where in its blocks. */
static int place_layers(struct pools *pools, const struct model *model, uint32_t n_context)
{
    uint32_t n[BACKEND_MOST_GROUPS] = {0};
    pools->layers = calloc(model->params.n_layers, sizeof *pools->layers);
    if (!pools->layers)
        return -ENOMEM;
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        if (!layer_has_kv(&model->layers[l].traits))
            continue;
        const uint32_t g = kv_group_of(pools->groups, pools->n_groups, model, l, n_context);
        pools->layers[l] = (struct pools_layer){g, n[g]++};
    }
    return 0;
}

int pools_init(struct pools *pools, struct device_memory *memory, const struct model *model,
               const struct pools_shape *shape)
{
    const struct model_params *params = &model->params;
    *pools = (struct pools){0};
    pools->n_groups = kv_groups_of(model, shape->n_context, pools->groups);
    for (uint32_t g = 0; g < pools->n_groups; g++) {
        struct backend_group *group = &pools->groups[g];
        struct device_kv *kv = &pools->kv[g];
        *kv = (struct device_kv){.type = shape->type,
                                 .n_blocks = blocks_beside(pools->groups, g, shape),
                                 .n_layers = group->n_layers,
                                 .n_heads = params->n_kv_heads,
                                 .dim = params->head_dim};
        kernels_kv_lay_out(kv);
        group->n_blocks = kv->n_blocks;
        group->block_bytes = kv->block_bytes;
        kv->pool = device_memory_take(memory, kv->n_blocks * kv->block_bytes);
    }
    return memory->device ? place_layers(pools, model, shape->n_context) : 0;
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
    const struct device_kv *kv = &pools->kv[0];
    const uint64_t geometry[] = {n_layers,        kv->n_heads,          kv->dim,
                                 kv->layer_bytes, BACKEND_BLOCK_TOKENS, kv->type};
    uint64_t hash = hash64(geometry, sizeof geometry, KV_LAYOUT_VERSION << 8 | 'G');
    for (uint32_t l = 0; l < n_layers; l++)
        hash = hash64(&pools->layers[l].group, sizeof pools->layers[l].group, hash);
    return hash;
}
