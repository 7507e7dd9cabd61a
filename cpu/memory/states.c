/* SPDX-License-Identifier: MIT */
/* The geometry of states, and their memory. */

#include "cpu/memory/states.h"

#include <errno.h>

#include "common/amount.h"
#include "common/hash.h"

#define STATES_LAYOUT_VERSION 1 /* raised with any change of the order of what a state holds */

static uint32_t rounded_up(uint32_t n)
{
    return (n + 7) / 8 * 8;
}

struct delta_widths delta_widths_of(const struct delta_net *net)
{
    struct delta_widths w = {.key_dim = rounded_up(net->key_dim),
                             .value_dim = rounded_up(net->value_dim),
                             .queries = rounded_up(net->n_key_heads * net->key_dim),
                             .keys = rounded_up(net->n_key_heads * net->key_dim),
                             .values = rounded_up(net->n_value_heads * net->value_dim)};
    w.row = w.queries + w.keys + w.values;
    w.tail = (size_t)(net->n_taps - 1) * w.row;
    w.head = (size_t)w.value_dim * w.key_dim;
    return w;
}

static size_t numbers_of(const struct layer_traits *layer)
{
    switch (layer->mixer) {
    case MIXER_ATTENTION:
        return 0;
    case MIXER_DELTA: {
        const struct delta_widths w = delta_widths_of(&layer->delta);
        return w.tail + layer->delta.n_value_heads * w.head;
    }
    }
    return 0;
}

size_t states_bytes(const struct model *model)
{
    size_t n = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        n += numbers_of(&model->layers[l].traits);
    return n * sizeof(float);
}

/* Their room is what KV blocks may take. */
static uint32_t suggested(size_t bytes, uint32_t n_slots, const struct memory *memory)
{
    struct available available;
    const bool known = available_read("", &available) == 0;
    return backend_snapshots_for(bytes, n_slots, known ? memory_share(memory, &available) : UINT64_MAX);
}

int states_init(struct states *states, const struct backend_config *config, struct memory *memory,
                struct error *err)
{
    const struct model *model = config->model;
    const uint32_t n_slots = config->n_slots;
    void *offsets, *slots, *snapshots;
    *states = (struct states){0};
    const size_t bytes = states_bytes(model);
    if (bytes == 0)
        return 0;
    states->n_snapshots = config->n_snapshots ? config->n_snapshots : suggested(bytes, n_slots, memory);
    states->n_snapshots += config->drafts ? backend_spares_for(n_slots) : 0;
    int r = memory_take(memory, model->params.n_layers * sizeof *states->offsets, &offsets);
    if (r == 0)
        r = memory_take(memory, n_slots * bytes, &slots);
    if (r == 0)
        r = memory_take(memory, states->n_snapshots * bytes, &snapshots);
    if (r < 0)
        return error_set(err, r, "not enough memory for the states of %u sequences and %u snapshots, %s each",
                         n_slots, states->n_snapshots, amount_of_bytes(bytes).text);
    states->offsets = offsets;
    states->slots = slots;
    states->snapshots = snapshots;
    for (uint32_t l = 0; l < model->params.n_layers; l++) {
        states->offsets[l] = states->n;
        states->n += numbers_of(&model->layers[l].traits);
    }
    return 0;
}

uint64_t states_layout(const struct states *states, uint64_t kv)
{
    const uint64_t numbers[] = {states->n, STATES_LAYOUT_VERSION};
    return states->n > 0 ? hash64(numbers, sizeof numbers, kv) : kv;
}
