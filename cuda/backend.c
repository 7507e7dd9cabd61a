/* SPDX-License-Identifier: MIT */
/* The CUDA backend: the table of functions that the engine drives (engine/backend/backend.h), over a GPU or
 * over the emulator.
 *
 * Opening counts first and takes afterwards: the same code says what each part needs, so that a model that
 * does not fit is refused with numbers before a byte is uploaded, and KV blocks get what is left. Everything
 * is taken then; serving allocates nothing. Between open and close nothing waits for the device but poll, and
 * what opens slots or copies blocks faster than it follows. */

#include "cuda/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/host/memory/copies.h"
#include "cuda/check/gate.h"
#include "cuda/check/invariance.h"
#include "cuda/host/memory/pools.h"
#include "cuda/host/step.h"
#include "cuda/device/wait.h"

#define STEP_MS     30
#define ALONE_MS    250
#define CHUNK_LEAST 32
#define CHUNK_MOST  512
#define TILE_ROWS   64 /* of the widest tile of a product */
#define SLOT_TOKENS                                                                                          \
    2048 /* for which a slot that nobody asked for has KV blocks, where the context is longer */
#define MAX_ROWS    2048
#define MOST_DRAFTS 128 /* rows whose logits are there at once, where slots do not ask for more */

/* Left to the driver, recorded graphs and whoever else uses the device: a part of its memory, up to this. */
#define RESERVE_SHARE 32
#define RESERVE_BYTES ((size_t)512 << 20)

#define MIB(bytes) ((double)(bytes) / (1 << 20))

/* What is to be served, and so what is needed. */
struct sizes {
    uint32_t n_slots, n_context, max_rows;
    uint32_t n_blocks;     /* of the first group */
    uint32_t library_rows; /* rows from which products are the library's; 0: it makes none */
    enum stream_k_rule shares;
};

struct backend {
    struct backend_config config;
    struct sizes sizes;
    struct device *device;
    struct pools pools;
    struct device_weights weights;
    struct workspace workspace;
    struct device_slots slots;
    struct steps steps;
    struct copies copies;
    struct library_products large;
    struct pass pass;
    size_t memory_bytes;
};

/* ---- what is refused ---- */

static int cuda_check(const struct model *model, struct error *err)
{
    int r = pass_check(model, 0, err);
    return r < 0 ? r : device_weights_check(model, err);
}

static int check_config(const struct backend_config *config, struct error *err)
{
    if (config->n_devices > 1)
        return error_set(err, -ENODEV, "a worker uses one device; %u were requested", config->n_devices);
    if (config->kv_type == BACKEND_KV_BF16)
        return error_set(err, -ENOTSUP, "the CUDA backend stores keys and values as f16 or q8_0, not bf16");
    if (config->n_slots == 0 || config->n_context == 0)
        return error_set(err, -EINVAL, "slots and context must be at least 1");
    if (config->cuda.library_rows > 0 && config->invariant)
        return error_set(err, -EINVAL,
                         "cuBLASLt's results depend on the number of rows in a step: not available on an "
                         "invariant device");
    if (config->cuda.library_rows > 0 && config->cuda.library_rows < BACKEND_LEAST_LIBRARY_ROWS)
        return error_set(err, -EINVAL, "cuBLASLt needs steps of at least %u rows; %u were requested",
                         BACKEND_LEAST_LIBRARY_ROWS, config->cuda.library_rows);
    int r = pass_check(config->model, config->n_context, err);
    return r < 0 ? r : device_weights_check(config->model, err);
}

/* ---- memory ---- */

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

static struct pools_shape shape_of_pools(const struct backend *backend, const struct sizes *sizes)
{
    return (struct pools_shape){.n_slots = sizes->n_slots,
                                .n_context = sizes->n_context,
                                .ahead = STEPS_FLIGHTS * sizes->max_rows,
                                .type =
                                    backend->config.kv_type == BACKEND_KV_Q8 ? BACKEND_KV_Q8 : BACKEND_KV_F16,
                                .n_blocks = sizes->n_blocks,
                                .alike = backend->config.n_blocks > 0};
}

/* $QUERN_SHARES: never or always, to find out what sharing of tiles has to do with something. */
static int read_shares_rule(enum stream_k_rule *ret_rule, struct error *err)
{
    static const char *const names[] = {
        [STREAM_K_PLANNED] = "planned", [STREAM_K_NEVER] = "never", [STREAM_K_ALWAYS] = "always"};
    const char *value = getenv("QUERN_SHARES");
    if (!value || !*value)
        value = names[STREAM_K_PLANNED];
    for (int rule = STREAM_K_PLANNED; rule <= STREAM_K_ALWAYS; rule++)
        if (strcmp(value, names[rule]) == 0) {
            *ret_rule = (enum stream_k_rule)rule;
            return 0;
        }
    return error_set(err, -EINVAL, "$QUERN_SHARES is \"%s\", expected planned, never or always", value);
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
    if (sizes->library_rows > 0)
        library_products_take(&backend->large, memory, model, sizes->library_rows, n_rows);
    copies_init(&backend->copies, memory, &backend->pools);
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
static size_t state_bytes(const struct backend *backend, const struct sizes *sizes)
{
    struct backend counted = {.config = backend->config, .device = backend->device, .sizes = *sizes};
    struct device_memory memory = {NULL, 0, false};
    take_state(&counted, &memory);
    return memory.bytes;
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

/* Says what is needed and what would fit; returns -ENOMEM. */
static int refuse(struct backend *backend, size_t needed, size_t weights, size_t room, struct error *err)
{
    char fits[128] = "the weights alone do not fit";
    struct sizes asked = backend->sizes;
    const uint32_t context_blocks = backend_blocks_for(asked.n_context);
    if (weights < room) {
        uint32_t n_slots = asked.n_slots, n_blocks = 0;
        snprintf(fits, sizeof fits, "not even one sequence with a context of %d fits", BACKEND_BLOCK_TOKENS);
        for (; n_slots > 0 && n_blocks == 0; n_slots /= 2) {
            backend->sizes.n_slots = n_slots;
            n_blocks = most_that_fits(backend, with_context, context_blocks, room - weights);
            if (n_blocks > 0)
                snprintf(fits, sizeof fits, "a context of %u for %u sequences that share it would fit",
                         n_blocks * BACKEND_BLOCK_TOKENS, n_slots);
        }
    }
    backend->sizes = asked;
    return error_set(
        err, -ENOMEM,
        "%u sequences with a context of %u in %u KV blocks take %.1f MiB of the device's memory, "
        "%.1f of them weights; %.1f MiB are free for them: %s",
        asked.n_slots, asked.n_context, asked.n_blocks, MIB(needed), MIB(weights), MIB(room), fits);
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

/* Decides how many KV blocks there are: as many as were asked for, or what fits. */
static int choose_blocks(struct backend *backend, struct error *err)
{
    struct device_memory counted = {NULL, 0, false};
    struct sizes *sizes = &backend->sizes;
    const size_t room = room_of(backend, sizes->n_blocks == 0);
    int r = device_weights_init(&backend->weights, &counted, backend->config.model);
    device_weights_deinit(&backend->weights);
    if (r < 0)
        return error_set(err, r, "not enough memory for the layers");
    const size_t left = counted.bytes < room ? room - counted.bytes : 0;
    choose_slots(backend, left);
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

static int take_parts(struct backend *backend, struct error *err)
{
    struct device_memory memory = {backend->device, 0, false};
    int r = device_weights_init(&backend->weights, &memory, backend->config.model);
    if (r == 0)
        r = take_state(backend, &memory);
    if (r < 0)
        return error_set(err, r, "not enough memory for %u slots", backend->sizes.n_slots);
    backend->memory_bytes = memory.bytes;
    if (!memory.lacking)
        return 0;
    r = device_verdict(backend->device, err);
    return r < 0 ? r
                 : error_set(err, -ENOMEM, "%.1f MiB were free but could not all be allocated",
                             MIB(device_free_bytes(backend->device)));
}

/* ---- life ---- */

static void connect_parts(struct backend *backend)
{
    backend->pass =
        (struct pass){.model = backend->config.model,
                      .weights = &backend->weights,
                      .workspace = &backend->workspace,
                      .slots = &backend->slots.on_device,
                      .pools = &backend->pools,
                      .memory = backend->steps.memory,
                      .sample = {.logits = backend->workspace.logits,
                                 .stride = backend->workspace.vocab_stride,
                                 .masks = backend->steps.masks,
                                 .mailboxes = backend->steps.device_mailboxes,
                                 .scratch = backend->workspace.sample_scratch},
                      .step = &backend->steps.queued,
                      .invariant = backend->config.invariant,
                      .large = &backend->large,
                      .large_from = backend->sizes.library_rows ? backend->sizes.library_rows : UINT32_MAX};
    backend->slots.device = backend->device;
    backend->copies.device = backend->device;
    backend->copies.pools = &backend->pools;
    backend->steps.device = backend->device;
    backend->steps.slots = &backend->slots;
    backend->steps.pass = &backend->pass;
    backend->steps.config = &backend->config;
}

/* Variables for finding out what a recorded graph, or a device that is refused, has to do with something. */
static bool is_set(const char *variable)
{
    const char *value = getenv(variable);
    return value && strcmp(value, "0") != 0;
}

/* From here on: what the gate did is no part of it. */
static int start_profile(struct backend *backend)
{
    const struct backend_kernel *unused;
    int r = device_profile(backend->device);
    device_kernels(backend->device, &unused);
    return r;
}

/* Of a step: experts make several assignments of a row. */
static uint32_t most_rows(const struct backend_config *config)
{
    const uint32_t n_used = workspace_experts_used(config->model), rows = backend_rows_for(config, MAX_ROWS);
    const uint32_t most = n_used > 0 ? KERNELS_MOST_ASSIGNMENTS / n_used : rows;
    return rows < most ? rows : most > config->n_slots ? most : config->n_slots;
}

static void say(const struct backend *backend, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void say(const struct backend *backend, const char *format, ...)
{
    char line[512];
    va_list arguments;
    if (!backend->config.say)
        return;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    backend->config.say(backend->config.say_arg, line);
}

/* The library of large products, where it is asked for and there is one. */
static void find_library(struct backend *backend)
{
    const uint32_t rows = backend->config.cuda.library_rows;
    struct error reason;
    if (rows == 0)
        return;
    if (!library_products_wants(backend->config.model))
        say(backend, "cuBLASLt is not used for this model: its layers are F32");
    else if (rows > backend->sizes.max_rows)
        say(backend, "cuBLASLt is not used: a step has at most %u rows, fewer than %u",
            backend->sizes.max_rows, rows);
    else if (library_products_open(&backend->large, &reason) < 0)
        say(backend, "cuBLASLt is not available, using our own kernels: %s", reason.text);
    else
        backend->sizes.library_rows = rows;
}

static int plan_library(struct backend *backend, struct error *err)
{
    const size_t version = backend->large.calls.version();
    int r = library_products_plan(&backend->large, backend->device, &backend->weights, backend->config.model,
                                  &backend->workspace, &backend->config);
    if (r < 0)
        return r == -ENOMEM ? error_set(err, r, "not enough memory for the plans of cuBLASLt") : r;
    if (library_products_takes_any(&backend->large))
        say(backend, "steps of %u rows or more that read a prompt are multiplied by cuBLASLt %zu.%zu.%zu",
            backend->sizes.library_rows, version / 10000, version / 100 % 100, version % 100);
    else
        backend->pass.large_from = UINT32_MAX;
    return 0;
}

static int open_parts(struct backend *backend, uint32_t number, struct error *err)
{
    const struct backend_config *config = &backend->config;
    int r = device_open(number, &backend->device, err);
    if (r < 0)
        return r;
    find_library(backend);
    r = choose_blocks(backend, err);
    if (r == 0)
        r = take_parts(backend, err);
    if (r < 0)
        return r;
    connect_parts(backend);
    r = device_weights_load(&backend->weights, backend->device, config, err);
    if (r < 0)
        return r;
    r = device_slots_set_mask(&backend->slots, config->model->sample_mask);
    if (r == 0 && backend->sizes.library_rows > 0)
        r = plan_library(backend, err);
    if (r == -ENOMEM) /* of the host, as err says: the device knows nothing of it */
        return r;
    if (r == 0)
        r = steps_start(&backend->steps, config->profile || is_set("QUERN_EAGER"));
    if (r == 0 && !is_set("QUERN_UNCHECKED"))
        r = gate_check(&backend->steps, &backend->pass, err);
    if (r == 0 && config->invariant)
        r = invariance_tell_cost(&backend->steps, &backend->pass);
    if (r == 0 && config->profile)
        r = start_profile(backend);
    if (r < 0 && device_verdict(backend->device, err) == 0 && r != -ENODEV) { /* the gate says what it is */
        steps_fail(&backend->steps, r);
        r = steps_verdict(&backend->steps, err);
    }
    return r;
}

static void cuda_close(struct backend *backend)
{
    if (!backend)
        return;
    steps_deinit(&backend->steps);
    device_slots_deinit(&backend->slots);
    device_weights_deinit(&backend->weights);
    pools_deinit(&backend->pools);
    library_products_close(&backend->large);
    device_close(backend->device);
    free(backend);
}

static int cuda_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    enum stream_k_rule shares = STREAM_K_PLANNED;
    int r = check_config(config, err);
    if (r == 0)
        r = read_shares_rule(&shares, err);
    if (r < 0)
        return r;
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return error_set(err, -ENOMEM, "not enough memory for the backend");
    backend->config = *config;
    backend->config.devices = NULL; /* the caller's */
    backend->sizes = (struct sizes){.n_slots = config->n_slots,
                                    .n_context = config->n_context,
                                    .n_blocks = config->n_blocks,
                                    .max_rows = most_rows(config),
                                    .shares = shares};
    r = open_parts(backend, config->n_devices ? config->devices[0] : 0, err);
    if (r < 0) {
        cuda_close(backend);
        return r;
    }
    *ret_backend = backend;
    return 0;
}

static void cuda_info(const struct backend *backend, struct backend_info *ret_info)
{
    const struct pools *pools = &backend->pools;
    *ret_info = (struct backend_info){
        .n_groups = pools->n_groups,
        .kv_type = pools->kv[0].type,
        .kv_layout = pools_layout(pools, backend->config.model->params.n_layers),
        .weight_bytes = backend->weights.bytes,
        .memory_bytes = backend->memory_bytes,
        .n_slots = backend->sizes.n_slots,
        .most_flights = STEPS_FLIGHTS,
        .most_stop_ids = STATE_MOST_STOP_IDS,
        .max_rows = backend->sizes.max_rows,
        .step_ms = STEP_MS,
        .alone_ms = ALONE_MS,
        .chunk_least = CHUNK_LEAST,
        .chunk_most = CHUNK_MOST,
    };
    memcpy(ret_info->groups, pools->groups, sizeof ret_info->groups);
    snprintf(ret_info->device, sizeof ret_info->device, "%s", device_properties(backend->device)->label);
}

/* ---- serving ---- */

static int cuda_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    if (backend->steps.failed)
        return backend->steps.failed;
    int r = device_slots_open(&backend->slots, slot, params);
    return r < 0 && r != -EINVAL ? steps_fail(&backend->steps, r) : r;
}

static void cuda_slot_close(struct backend *backend, uint32_t slot)
{
    device_slots_close(&backend->slots, slot);
}

static int cuda_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    return steps_submit(&backend->steps, step, ret_ticket);
}

static int cuda_poll(struct backend *backend, uint64_t ticket, int timeout_ms,
                     const struct backend_result **ret_results, struct error *err)
{
    if (ticket <= COPIES_TICKET || backend->steps.failed)
        return steps_poll(&backend->steps, ticket, timeout_ms, ret_results, err);
    int r = copies_poll(&backend->copies, ticket, timeout_ms, err);
    if (r == 0 || r == -EAGAIN || r == -EINVAL)
        return r;
    steps_fail(&backend->steps, r);
    return steps_verdict(&backend->steps, err);
}

static void cuda_trim(struct backend *backend, uint32_t slot, uint32_t position)
{
    int r = backend->steps.failed ? 0 : device_slots_trim(&backend->slots, slot, position);
    if (r < 0)
        steps_fail(&backend->steps, r);
}

static int copy(struct backend *backend, const struct backend_copy *what, bool out, uint64_t *ret_ticket)
{
    if (backend->steps.failed)
        return backend->steps.failed;
    int r = copies_begin(&backend->copies, what, out, ret_ticket);
    return r < 0 && r != -EINVAL && r != -EAGAIN ? steps_fail(&backend->steps, r) : r;
}

static int cuda_copy_out(struct backend *backend, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(backend, what, true, ret_ticket);
}

static int cuda_copy_in(struct backend *backend, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(backend, what, false, ret_ticket);
}

static int cuda_verdict(struct backend *backend, struct error *err)
{
    return steps_verdict(&backend->steps, err);
}

static uint32_t cuda_profile(struct backend *backend, const struct backend_kernel **ret_kernels)
{
    return device_kernels(backend->device, ret_kernels);
}

struct device *backend_device(const struct backend *backend)
{
    return backend->device;
}

uint32_t backend_decode_kernels(const struct backend *backend, uint32_t rows)
{
    const struct device_graph *graph = graphs_of(&backend->steps.graphs, rows);
    return graph ? device_graph_kernels(graph) : 0;
}

const struct backend_ops quern_backend = {
    .name = "cuda",
    .weight_packing = device_weights_packing,
    .check = cuda_check,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .slot_open = cuda_slot_open,
    .slot_close = cuda_slot_close,
    .submit = cuda_submit,
    .poll = cuda_poll,
    .trim = cuda_trim,
    .copy_out = cuda_copy_out,
    .copy_in = cuda_copy_in,
    .verdict = cuda_verdict,
    .profile = cuda_profile,
};
