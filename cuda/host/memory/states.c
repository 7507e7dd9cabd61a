/* SPDX-License-Identifier: MIT */
/* Where the layers' parts of a state are, and copies of whole states. */

#include "cuda/host/memory/states.h"

#include <errno.h>
#include <stdlib.h>

#include "common/hash.h"

#define STATES_LAYOUT_VERSION 1 /* raised with any change of the order of what a state holds */

static size_t numbers_of(const struct layer_traits *layer)
{
    switch (layer->mixer) {
    case MIXER_ATTENTION:
        return 0;
    case MIXER_DELTA:
        return kernels_delta_numbers(&layer->delta);
    }
    return 0;
}

size_t device_states_numbers(const struct model *model)
{
    size_t n = 0;
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        n += numbers_of(&model->layers[l].traits);
    return n;
}

int device_states_init(struct device_states *states, struct device_memory *memory, const struct model *model,
                       uint32_t n_slots, uint32_t n_snapshots)
{
    struct state_pool *pool = &states->pool;
    const size_t n = device_states_numbers(model);
    *states = (struct device_states){0};
    if (n == 0)
        return 0;
    pool->n = n;
    pool->n_slots = n_slots;
    pool->n_snapshots = n_snapshots;
    pool->slots = device_memory_take_zeroed(memory, n_slots * n * sizeof *pool->slots);
    pool->snapshots = device_memory_take_zeroed(memory, n_snapshots * n * sizeof *pool->snapshots);
    if (!memory->device)
        return 0;
    states->offsets = calloc(model->params.n_layers, sizeof *states->offsets);
    if (!states->offsets)
        return -ENOMEM;
    for (uint32_t l = 1; l < model->params.n_layers; l++)
        states->offsets[l] = states->offsets[l - 1] + numbers_of(&model->layers[l - 1].traits);
    return 0;
}

void device_states_deinit(struct device_states *states)
{
    free(states->offsets);
    states->offsets = NULL;
}

int device_states_clear(const struct device_states *states, struct device_stream *stream, uint32_t slot)
{
    const struct state_pool *pool = &states->pool;
    const size_t bytes = pool->n * sizeof *pool->slots;
    return bytes == 0 ? 0 : device_fill(stream, pool->slots + slot * pool->n, 0, bytes);
}

int device_states_keep(const struct device_states *states, struct device_stream *stream, uint32_t slot,
                       uint32_t snapshot)
{
    const struct state_pool *pool = &states->pool;
    const size_t bytes = pool->n * sizeof *pool->slots;
    return bytes == 0 ? 0
                      : device_copy(stream, pool->snapshots + snapshot * pool->n,
                                    pool->slots + slot * pool->n, bytes);
}

int device_states_restore(const struct device_states *states, struct device_stream *stream, uint32_t slot,
                          uint32_t snapshot)
{
    const struct state_pool *pool = &states->pool;
    const size_t bytes = pool->n * sizeof *pool->slots;
    return bytes == 0 ? 0
                      : device_copy(stream, pool->slots + slot * pool->n,
                                    pool->snapshots + snapshot * pool->n, bytes);
}

uint64_t device_states_layout(const struct device_states *states, const struct model *model, uint64_t kv)
{
    if (states->pool.n == 0)
        return kv;
    uint64_t hash = hash64(&states->pool.n, sizeof states->pool.n, kv ^ STATES_LAYOUT_VERSION);
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        hash = hash64(&states->offsets[l], sizeof states->offsets[l], hash);
    return hash;
}
