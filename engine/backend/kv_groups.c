/* SPDX-License-Identifier: MIT */
/* Groups of layers. Windows are compared as what a row sees: no window is the widest of all. */

#include "engine/backend/kv_groups.h"

#include "model/model.h"

/* What a row sees of a window, 0 being everything. */
static uint32_t width_of(uint32_t window)
{
    return window ? window : UINT32_MAX;
}

/* Puts a window where it belongs, if it is not there and there is room before the end. */
static uint32_t add_window(struct backend_group *groups, uint32_t n, uint32_t window)
{
    uint32_t at = 0;
    while (at < n && width_of(groups[at].window) > width_of(window))
        at++;
    if (at == BACKEND_MOST_GROUPS || (at < n && groups[at].window == window))
        return n;
    n += n < BACKEND_MOST_GROUPS;
    for (uint32_t i = n - 1; i > at; i--)
        groups[i] = groups[i - 1];
    groups[at] = (struct backend_group){.window = window};
    return n;
}

/* A model whose layers are not described has no windows: one that only looks like a model. */
static uint32_t window_of(const struct model *model, uint32_t layer, uint32_t n_context)
{
    const uint32_t window = model->layers ? model->layers[layer].traits.window : 0;
    return window < n_context ? window : 0;
}

static bool has_kv(const struct model *model, uint32_t layer)
{
    return !model->layers || layer_has_kv(&model->layers[layer].traits);
}

uint32_t kv_groups_of(const struct model *model, uint32_t n_context,
                      struct backend_group ret_groups[BACKEND_MOST_GROUPS])
{
    const uint32_t n_layers = model->params.n_layers;
    uint32_t n = 0;
    for (uint32_t l = 0; l < n_layers; l++)
        if (has_kv(model, l))
            n = add_window(ret_groups, n, window_of(model, l, n_context));
    for (uint32_t l = 0; l < n_layers; l++)
        if (has_kv(model, l))
            ret_groups[kv_group_of(ret_groups, n, model, l, n_context)].n_layers++;
    return n > 0 ? n : add_window(ret_groups, 0, 0);
}

uint32_t kv_group_of(const struct backend_group *groups, uint32_t n_groups, const struct model *model,
                     uint32_t layer, uint32_t n_context)
{
    const uint32_t width = width_of(window_of(model, layer, n_context));
    uint32_t g = n_groups - 1;
    while (g > 0 && width_of(groups[g].window) < width)
        g--;
    return g;
}

uint64_t kv_group_wants(const struct backend_group *group, uint32_t n_slots, uint32_t n_context,
                        uint32_t max_rows)
{
    uint64_t all = (uint64_t)n_slots * backend_blocks_for(n_context);
    uint64_t held = (uint64_t)n_slots * backend_held_blocks(group, n_context) + backend_blocks_for(max_rows);
    return group->window > 0 && held < all ? held : all;
}
