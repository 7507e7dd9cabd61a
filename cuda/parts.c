/* SPDX-License-Identifier: MIT */
/* Counting and allocating are the same code, over a memory with a device or without one. So a model that does
 * not fit is rejected with numbers before a byte is uploaded, and KV blocks get exactly what is left. */

#include "cuda/parts.h"

#include <errno.h>
#include <stdio.h>

#define TILE_ROWS   64  /* of the widest tile of a product */
#define MOST_DRAFTS 128 /* rows with logits at once, where slots do not ask for more */

/* A slot that nobody asked for has KV blocks for so many tokens, or for the context if that is shorter. */
#define SLOT_TOKENS 2048

/* Left to the driver, recorded graphs and whoever else uses the device: a part of its memory, up to this. */
#define RESERVE_SHARE 32
#define RESERVE_BYTES ((size_t)512 << 20)

#define MIB(bytes) ((double)(bytes) / (1 << 20))

static uint32_t rounded_up(uint32_t n, uint32_t to)
{
    return (n + to - 1) / to * to;
}

/* Sets of a step: as many as slots, or the rows of the bucket that they fill in part. */
static uint32_t most_sets(uint32_t n_slots)
{
    const uint32_t sets = n_slots < GRAPHS_MOST ? graphs_bucket(n_slots) : n_slots;
    return rounded_up(sets, TILE_ROWS);
}

static enum backend_kv_type kv_type_of(enum backend_kv_type asked)
{
    switch (asked) {
    case BACKEND_KV_Q8:
    case BACKEND_KV_Q4:
        return asked;
    case BACKEND_KV_DEFAULT:
    case BACKEND_KV_F16:
    case BACKEND_KV_BF16:
    case BACKEND_KV_F32:
        break; /* the others are refused before */
    }
    return BACKEND_KV_F16;
}

static struct pools_shape shape_of_pools(const struct backend *backend, const struct sizes *sizes)
{
    return (struct pools_shape){.n_slots = sizes->n_slots,
                                .n_context = sizes->n_context,
                                .ahead = STEPS_FLIGHTS * sizes->max_rows,
                                .type = kv_type_of(backend->config.kv_type),
                                .n_blocks = sizes->n_blocks,
                                .alike = backend->config.n_blocks > 0};
}

/* Takes or counts everything but the weights. */
static int take_state(struct backend *backend, struct device_memory *memory)
{
    const struct model *model = backend->config.model;
    const struct model_params *params = &model->params;
    const struct sizes *sizes = &backend->sizes;
    /* A recorded decode has the rows of its bucket, whatever the slots. */
    const uint32_t n_sets = most_sets(sizes->n_slots);
    const uint32_t n_rows = rounded_up(sizes->max_rows > n_sets ? sizes->max_rows : n_sets, TILE_ROWS);
    const uint32_t n_outputs = n_sets > MOST_DRAFTS ? n_sets : MOST_DRAFTS;
    const struct pools_shape pools = shape_of_pools(backend, sizes);
    int r = pools_init(&backend->pools, memory, model, &pools);
    if (r < 0)
        return r;
    const struct workspace_shape workspace = {n_rows, n_outputs, sizes->n_context,
                                              device_properties(backend->device)->n_multiprocessors,
                                              sizes->shares};
    workspace_take(&backend->workspace, memory, model, &backend->pools.kv[0], &workspace);
    memory->separate = true; /* it is given back alone */
    if (sizes->library_rows > 0)
        library_products_take(&backend->large, memory, model, sizes->library_rows, n_rows);
    memory->separate = false;
    r = device_states_init(&backend->states, memory, model, sizes->n_slots, sizes->n_snapshots);
    if (r < 0)
        return r;
    copies_init(&backend->copies, memory, &backend->pools, &backend->states);
    const struct slots_shape slots = {sizes->n_slots, sizes->n_context, backend->pools.n_groups,
                                      params->n_vocab};
    r = device_slots_init(&backend->slots, memory, &slots);
    const struct steps_shape steps = {.max_rows = sizes->max_rows,
                                      .n_rows = n_rows,
                                      .n_sets = n_sets,
                                      .max_outputs = n_outputs,
                                      .table_size = backend_blocks_for(sizes->n_context),
                                      .n_groups = backend->pools.n_groups,
                                      .n_vocab = params->n_vocab,
                                      .vocab_stride = backend->workspace.vocab_stride};
    return r < 0 ? r : steps_init(&backend->steps, memory, &steps);
}

/* Of device memory, for these sizes, without the weights. Counting takes no memory of the host and cannot
 * fail. */
static struct device_memory count_state(const struct backend *backend, const struct sizes *sizes)
{
    struct backend counted = {.config = backend->config, .device = backend->device, .sizes = *sizes};
    struct device_memory memory = {0};
    take_state(&counted, &memory);
    return memory;
}

static size_t state_bytes(const struct backend *backend, const struct sizes *sizes)
{
    return count_state(backend, sizes).bytes;
}

static int count_weights(const struct backend *backend, struct device_memory *ret_counted)
{
    struct device_weights weights;
    *ret_counted = (struct device_memory){0};
    int r = device_weights_init(&weights, ret_counted, backend->config.model);
    device_weights_deinit(&weights);
    return r;
}

/* Sizes with so many blocks, or with a context of so many blocks and room for one that fills it. */
static struct sizes with_blocks(struct sizes sizes, uint32_t n)
{
    sizes.n_blocks = n;
    return sizes;
}

static struct sizes with_context(struct sizes sizes, uint32_t n)
{
    sizes.n_blocks = n;
    sizes.n_context = n * BACKEND_BLOCK_TOKENS;
    return sizes;
}

/* The most, up to `most`, that fits into `room`; 0: none. */
static uint32_t most_that_fits(const struct backend *backend,
                               struct sizes (*with)(struct sizes sizes, uint32_t n), uint32_t most,
                               size_t room)
{
    uint32_t fits = 0;
    while (fits < most) {
        const uint32_t middle = fits + (most - fits + 1) / 2;
        const struct sizes sizes = with(backend->sizes, middle);
        if (state_bytes(backend, &sizes) <= room)
            fits = middle;
        else
            most = middle - 1;
    }
    return fits;
}

static uint32_t snapshots_for(const struct backend *backend, uint32_t n_slots, size_t room)
{
    const struct backend_config *config = &backend->config;
    const size_t bytes = device_states_numbers(config->model) * sizeof(float);
    if (bytes == 0)
        return 0;
    const uint32_t spares = config->drafts ? backend_spares_for(n_slots) : 0;
    return spares + (config->n_snapshots ? config->n_snapshots : backend_snapshots_for(bytes, n_slots, room));
}

/* Says what is needed and what would fit; returns -ENOMEM. */
static int refuse(struct backend *backend, size_t needed, size_t weights, size_t room, struct error *err)
{
    char fits[128] = "the weights alone do not fit", of_states[80] = "";
    struct sizes asked = backend->sizes;
    const uint32_t context_blocks = backend_blocks_for(asked.n_context);
    if (weights < room) {
        uint32_t n_slots = asked.n_slots, n_blocks = 0;
        snprintf(fits, sizeof fits, "not even one sequence with a context of %d fits", BACKEND_BLOCK_TOKENS);
        for (; n_slots > 0 && n_blocks == 0; n_slots /= 2) {
            backend->sizes.n_slots = n_slots;
            backend->sizes.n_snapshots = snapshots_for(backend, n_slots, room - weights);
            n_blocks = most_that_fits(backend, with_context, context_blocks, room - weights);
            if (n_blocks > 0)
                snprintf(fits, sizeof fits, "a context of %u, shared by %u sequences, would fit",
                         n_blocks * BACKEND_BLOCK_TOKENS, n_slots);
        }
    }
    backend->sizes = asked;
    const size_t states = (asked.n_slots + asked.n_snapshots) * device_states_numbers(backend->config.model);
    if (states > 0)
        snprintf(of_states, sizeof of_states, ", %.1f states of sequences and their snapshots",
                 MIB(states * sizeof(float)));
    return error_set(
        err, -ENOMEM,
        "%u sequences with a context of %u in %u KV blocks take %.1f MiB of the device's memory, "
        "%.1f of them weights%s; %.1f MiB are free for them: %s",
        asked.n_slots, asked.n_context, asked.n_blocks, MIB(needed), MIB(weights), of_states, MIB(room),
        fits);
}

/* What there is for this process: its part of the device, less a reserve, as far as it is free. */
static size_t room_of(const struct backend *backend, bool share)
{
    const struct device_properties *properties = device_properties(backend->device);
    const uint32_t n_sharers = share && backend->config.n_sharers ? backend->config.n_sharers : 1;
    size_t reserve = properties->total_bytes / RESERVE_SHARE;
    reserve = reserve < RESERVE_BYTES ? reserve : RESERVE_BYTES;
    const size_t free_bytes = device_free_bytes(backend->device);
    const size_t own = (properties->total_bytes - reserve) / n_sharers;
    const size_t room = free_bytes > reserve ? free_bytes - reserve : 0;
    return room < own ? room : own;
}

/* Whether these slots have KV blocks for as many sequences of the context, or of SLOT_TOKENS, in `room`
 * bytes: few requests fill a long context, and one that finds no block waits for it. */
static bool slots_fit(const struct backend *backend, uint32_t n_slots, size_t room)
{
    struct sizes sizes = backend->sizes;
    sizes.n_slots = n_slots;
    sizes.n_snapshots = snapshots_for(backend, n_slots, room);
    struct pools_shape shape = shape_of_pools(backend, &sizes);
    shape.n_context = shape.n_context < SLOT_TOKENS ? shape.n_context : SLOT_TOKENS;
    const uint64_t wanted = pools_wanted(backend->config.model, &shape);
    if (wanted > (sizes.n_blocks ? sizes.n_blocks : UINT32_MAX))
        return false;
    sizes = with_blocks(sizes, sizes.n_blocks ? sizes.n_blocks : (uint32_t)wanted);
    return state_bytes(backend, &sizes) <= room;
}

/* As many slots as may be and fit; those that were asked for in any case. */
static void choose_slots(struct backend *backend, size_t room)
{
    const uint32_t rows = backend->sizes.max_rows, may = backend->config.most_slots;
    for (uint32_t n = may < rows ? may : rows; n > backend->sizes.n_slots; n--)
        if (slots_fit(backend, n, room))
            backend->sizes.n_slots = n;
}

int parts_choose_sizes(struct backend *backend, struct error *err)
{
    struct device_memory counted;
    struct sizes *sizes = &backend->sizes;
    const size_t room = room_of(backend, sizes->n_blocks == 0);
    int r = count_weights(backend, &counted);
    if (r < 0)
        return error_set(err, r, "not enough memory for the layers");
    const size_t left = counted.bytes < room ? room - counted.bytes : 0;
    choose_slots(backend, left);
    sizes->n_snapshots = snapshots_for(backend, sizes->n_slots, left);
    if (sizes->n_blocks == 0) {
        const struct pools_shape shape = shape_of_pools(backend, sizes);
        const uint64_t wanted = pools_wanted(backend->config.model, &shape);
        const uint32_t most = wanted > UINT32_MAX ? UINT32_MAX : (uint32_t)wanted;
        sizes->n_blocks = most_that_fits(backend, with_blocks, most, left);
        if (sizes->n_blocks > 0)
            return 0;
        sizes->n_blocks = backend_blocks_for(sizes->n_context);
    }
    const size_t needed = counted.bytes + state_bytes(backend, sizes);
    return needed > room ? refuse(backend, needed, counted.bytes, room, err) : 0;
}

/* Of memory that is all there, or why not. */
static int check_taken(const struct backend *backend, const struct device_memory *memory,
                       const struct device_memory *counted, const char *what, struct error *err)
{
    if (!memory->lacking)
        return 0;
    const int r = device_verdict(backend->device, err);
    if (r < 0)
        return r;
    if (memory->unpinned)
        return error_set(err, -ENOMEM, "the driver did not pin more than %.1f MiB of the host's memory",
                         MIB(memory->pinned));
    return error_set(err, -ENOMEM,
                     "the driver did not allocate %.1f MiB of the device's memory for %s; %.1f MiB are free",
                     MIB(counted->bytes), what, MIB(device_free_bytes(backend->device)));
}

/* Weights and the rest are an allocation each. */
int parts_take(struct backend *backend, struct error *err)
{
    struct device_memory counted, memory;
    int r = count_weights(backend, &counted);
    memory = device_memory_open(backend->device, &counted);
    if (r == 0)
        r = device_weights_init(&backend->weights, &memory, backend->config.model);
    if (r < 0)
        return error_set(err, r, "not enough memory for the layers");
    r = check_taken(backend, &memory, &counted, "the weights", err);
    if (r < 0)
        return r;
    backend->weight_memory = memory.bytes;
    counted = count_state(backend, &backend->sizes);
    memory = device_memory_open(backend->device, &counted);
    r = take_state(backend, &memory);
    if (r < 0)
        return error_set(err, r, "not enough memory for %u slots", backend->sizes.n_slots);
    backend->memory_bytes = backend->weight_memory + memory.bytes;
    backend->pinned_memory = memory.pinned;
    return check_taken(backend, &memory, &counted, "KV blocks, slots and steps", err);
}
