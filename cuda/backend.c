/* SPDX-License-Identifier: MIT */
/* The CUDA backend: the table of functions that the engine drives (engine/backend/backend.h), over a GPU or
 * over the emulator.
 *
 * Opening counts first and allocates afterwards (parts.c); serving allocates nothing but what was given back
 * (give_back.c). Between open and close nothing waits for the device but poll, giving back, and what opens
 * slots or copies blocks faster than it follows. */

#include "cuda/backend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/check/gate.h"
#include "cuda/check/invariance.h"
#include "cuda/choose/choose.h"
#include "cuda/device/wait.h"
#include "cuda/give_back.h"
#include "cuda/host/host_sampling.h"
#include "cuda/parts.h"
#include "engine/backend/choices/kept.h"
#include "engine/backend/kv_type.h"

#define STEP_MS     30
#define ALONE_MS    250
#define CHUNK_LEAST 32
#define CHUNK_MOST  512
#define MAX_ROWS    2048

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
    if (config->kv_type == BACKEND_KV_BF16 || config->kv_type == BACKEND_KV_F32)
        return error_set(err, -ENOTSUP,
                         "the CUDA backend stores keys and values as f16, q8_0 or q4_0, not %s",
                         kv_type_name(config->kv_type));
    if (config->n_slots == 0 || config->n_context == 0)
        return error_set(err, -EINVAL, "slots and context must be at least 1");
    if (config->cuda.library_rows > 0 && config->invariant)
        return error_set(err, -EINVAL,
                         "cuBLASLt's results depend on the number of rows in a step: not available on an "
                         "invariant device");
    if (config->cuda.library_rows > 0 && config->cuda.library_rows != BACKEND_LIBRARY_MEASURED &&
        config->cuda.library_rows < BACKEND_LEAST_LIBRARY_ROWS)
        return error_set(err, -EINVAL, "cuBLASLt needs steps of at least %u rows; %u were requested",
                         BACKEND_LEAST_LIBRARY_ROWS, config->cuda.library_rows);
    int r = pass_check(config->model, config->n_context, err);
    return r < 0 ? r : device_weights_check(config->model, err);
}

/* ---- life ---- */

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

static void connect_parts(struct backend *backend)
{
    backend->pass =
        (struct pass){.model = backend->config.model,
                      .weights = &backend->weights,
                      .workspace = &backend->workspace,
                      .slots = &backend->slots.on_device,
                      .pools = &backend->pools,
                      .states = &backend->states,
                      .memory = backend->steps.memory,
                      .sample = {.logits = backend->workspace.logits,
                                 .stride = backend->workspace.vocab_stride,
                                 .masks = backend->steps.masks,
                                 .mailboxes = backend->steps.device_mailboxes,
                                 .scratch = backend->workspace.sample_scratch},
                      .step = &backend->steps.queued,
                      .invariant = backend->config.invariant,
                      .large = &backend->large,
                      .large_from = backend->sizes.library_rows ? backend->sizes.library_rows : UINT32_MAX,
                      .large_by_choice = backend->sizes.library_by_choice};
    backend->slots.device = backend->device;
    backend->slots.states = &backend->states;
    backend->copies.device = backend->device;
    backend->copies.pools = &backend->pools;
    backend->copies.states = &backend->states;
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
    int r = device_profile(backend->device, true);
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

/* May choices be measured? An invariant device has fixed ones; $QUERN_UNMEASURED and $QUERN_SHARES are for
 * finding out what they have to do with something. */
static bool may_measure(const struct backend *backend)
{
    return !backend->config.invariant && backend->sizes.shares == STREAM_K_PLANNED &&
           device_properties(backend->device)->has_clock && !is_set("QUERN_UNMEASURED");
}

/* The library of large products, where it is asked for and there is one. */
static void find_library(struct backend *backend)
{
    const bool by_choice = backend->config.cuda.library_rows == BACKEND_LIBRARY_MEASURED;
    const uint32_t rows = by_choice ? BACKEND_LEAST_LIBRARY_ROWS : backend->config.cuda.library_rows;
    struct error reason;
    if (rows == 0)
        return;
    backend->sizes.library_by_choice = by_choice;
    if (!library_products_wants(backend->config.model))
        say(backend, "cuBLASLt is not used for this model: its layers are F32");
    else if (by_choice && !may_measure(backend))
        say(backend, "cuBLASLt is not used: products are not measured here, so it cannot be chosen");
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
    if (!library_products_takes_any(&backend->large))
        backend->pass.large_from = UINT32_MAX;
    else if (!backend->sizes.library_by_choice)
        say(backend, "steps of %u rows or more that read a prompt are multiplied by cuBLASLt %zu.%zu.%zu",
            backend->sizes.library_rows, version / 10000, version / 100 % 100, version % 100);
    return 0;
}

/* The least number of rows with which some product is the library's by choice; UINT32_MAX: with none. */
static uint32_t least_library_rows(const struct choices *choices)
{
    for (uint32_t b = 1; b < CHOICES_BUCKETS; b++)
        for (uint32_t i = 0; i < choices->n_launches; i++)
            if (choices->launches[i].buckets[b].way == PRODUCT_LIBRARY) {
                const uint32_t rows = choices_rows(b - 1) + 1;
                return rows > BACKEND_LEAST_LIBRARY_ROWS ? rows : BACKEND_LEAST_LIBRARY_ROWS;
            }
    return UINT32_MAX;
}

/* Where no product is the library's, its memory is free for others. */
static void settle_library(struct backend *backend)
{
    const size_t version = backend->large.calls.version();
    const uint32_t rows = least_library_rows(&backend->choices);
    backend->pass.large_from = rows;
    if (rows < UINT32_MAX) {
        say(backend, "products by cuBLASLt %zu.%zu.%zu where it was measured to be faster: from %u rows on",
            version / 10000, version / 100 % 100, version % 100, rows);
        return;
    }
    backend->memory_bytes -= library_products_give_back(&backend->large, backend->device);
    backend->sizes.library_rows = 0;
    say(backend, "cuBLASLt is not used: no product was measured to be faster with it");
}

/* *ret_measured: here, and not by another worker. */
static int choose(struct backend *backend, bool *ret_measured)
{
    const bool by_choice = backend->sizes.library_rows > 0 && backend->sizes.library_by_choice;
    const struct choosing choosing = {.pass = &backend->pass,
                                      .device = backend->device,
                                      .weights = &backend->weights,
                                      .config = &backend->config,
                                      .max_rows = backend->sizes.max_rows,
                                      .library = by_choice && library_products_takes_any(&backend->large)
                                                     ? (uint32_t)backend->large.calls.version()
                                                     : 0};
    int r = may_measure(backend) ? choose_ways(&choosing, &backend->choices, ret_measured) : 0;
    if (r == 0 && backend->choices.n_launches > 0)
        backend->pass.choices = &backend->choices;
    if (r == 0 && by_choice)
        settle_library(backend);
    return r;
}

/* Times of a device that computes wrongly are nobody's. */
static int check(struct backend *backend, uint32_t repeats, bool measured, struct error *err)
{
    int r = gate_check(&backend->steps, &backend->pass, repeats, err);
    if (r == -ENODEV && measured)
        kept_forget(&backend->choices.key);
    return r;
}

/* Of decodes that are launched kernel by kernel, because the driver refuses to record them. */
static void tell_refusal(const struct backend *backend)
{
    const struct graphs *graphs = &backend->steps.graphs;
    if (graphs->refused > 0)
        say(backend,
            "the driver does not record steps of %u or more sequences (%s): their kernels are launched "
            "one by one until the model is opened again",
            graphs->refused / 2 + 1, graphs->refusal);
}

static int open_parts(struct backend *backend, uint32_t number, uint32_t repeats, struct error *err)
{
    const struct backend_config *config = &backend->config;
    bool measured = false;
    int r = device_open(number, &backend->device, err);
    if (r < 0)
        return r;
    find_library(backend);
    r = parts_choose_sizes(backend, err);
    if (r == 0)
        r = parts_take(backend, err);
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
        r = choose(backend, &measured); /* before the gate, which judges what serves */
    if (r == -ENOMEM)
        return error_set(err, r, "not enough memory to measure products");
    if (r == 0)
        r = steps_start(&backend->steps, config->profile || is_set("QUERN_EAGER"));
    if (r == 0)
        tell_refusal(backend);
    if (r == 0 && !is_set("QUERN_UNCHECKED"))
        r = check(backend, repeats, measured, err);
    if (r == 0 && config->invariant)
        r = invariance_tell_cost(&backend->steps, &backend->pass);
    backend->steps.padding_rows = 0; /* of steps that are served */
    backend->opened = device_counts(backend->device);
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
    backend->steps.host = host_sampling_free(backend->steps.host);
    device_slots_deinit(&backend->slots);
    device_weights_deinit(&backend->weights);
    pools_deinit(&backend->pools);
    device_states_deinit(&backend->states);
    library_products_close(&backend->large);
    device_close(backend->device);
    free(backend);
}

static int cuda_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    enum stream_k_rule shares = STREAM_K_PLANNED;
    uint32_t repeats = 0;
    int r = check_config(config, err);
    if (r == 0)
        r = read_shares_rule(&shares, err);
    if (r == 0)
        r = forms_read_repeats(&repeats, err);
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
    r = open_parts(backend, config->n_devices ? config->devices[0] : 0, repeats, err);
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
    const struct model *model = backend->config.model;
    *ret_info = (struct backend_info){
        .n_groups = pools->n_groups,
        .kv_type = pools->kv[0].type,
        .kv_layout =
            device_states_layout(&backend->states, model, pools_layout(pools, model->params.n_layers)),
        .state_bytes = backend->states.pool.n * sizeof *backend->states.pool.slots,
        .n_snapshots = backend->states.pool.n_snapshots,
        .weight_bytes = backend->weights.bytes,
        .memory_bytes = backend->memory_bytes,
        .n_slots = backend->sizes.n_slots,
        .most_flights = steps_most_flights(&backend->steps),
        .most_stop_ids = STATE_MOST_STOP_IDS,
        .max_rows = backend->sizes.max_rows,
        .step_ms = STEP_MS,
        .alone_ms = ALONE_MS,
        .chunk_least = CHUNK_LEAST,
        .chunk_most = CHUNK_MOST,
        .choices_arithmetic = choices_arithmetic(&backend->choices),
    };
    if (backend->choices.n_launches > 0)
        choices_summarize(&backend->choices, ret_info->choices);
    memcpy(ret_info->groups, pools->groups, sizeof ret_info->groups);
    snprintf(ret_info->device, sizeof ret_info->device, "%s", device_properties(backend->device)->label);
}

/* ---- serving ---- */

static int cuda_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    if (backend->steps.failed)
        return backend->steps.failed;
    const struct state_pool *states = &backend->states.pool;
    if (params->position > 0 && states->n > 0 && params->snapshot >= states->n_snapshots)
        return -EINVAL;
    int r = device_slots_open(&backend->slots, slot, params);
    if (r == 0 && backend->steps.host) {
        r = host_sampling_open(backend->steps.host, &backend->steps, slot, params);
        if (r == 0)
            return 0;
        device_slots_close(&backend->slots, slot);
        return r;
    }
    return r < 0 && r != -EINVAL ? steps_fail(&backend->steps, r) : r;
}

static void cuda_slot_close(struct backend *backend, uint32_t slot)
{
    device_slots_close(&backend->slots, slot);
    if (backend->steps.host)
        host_sampling_close(backend->steps.host, slot);
}

static int cuda_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    int r = backend->steps.failed ? 0 : give_back_take_again(backend, step);
    return r < 0 ? r : steps_submit(&backend->steps, step, ret_ticket);
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

static void cuda_trim(struct backend *backend, uint32_t slot, uint32_t position, uint32_t snapshot)
{
    int r = backend->steps.failed ? 0 : device_slots_trim(&backend->slots, slot, position, snapshot);
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

static int cuda_copy_block(struct backend *backend, uint32_t group, uint32_t from, uint32_t to)
{
    if (backend->steps.failed)
        return backend->steps.failed;
    int r = copies_block(&backend->copies, group, from, to);
    return r < 0 && r != -EINVAL ? steps_fail(&backend->steps, r) : r;
}

static int cuda_verdict(struct backend *backend, struct error *err)
{
    return steps_verdict(&backend->steps, err);
}

static void cuda_usage(struct backend *backend, struct backend_usage *ret_usage)
{
    const struct device_counts counts = device_counts(backend->device);
    struct backend_info info;
    cuda_info(backend, &info);
    const uint64_t others = backend->weight_memory + backend_kv_bytes(&info) +
                            (uint64_t)info.state_bytes * (info.n_slots + info.n_snapshots);
    *ret_usage = (struct backend_usage){
        .weights = backend->weight_memory,
        .workspace = backend->memory_bytes > others ? backend->memory_bytes - others : 0,
        .staging = backend->pinned_memory - give_back_pinned(backend),
        .device_free = device_free_bytes(backend->device),
        .device_total = device_properties(backend->device)->total_bytes,
        .launches = counts.launches - backend->opened.launches,
        .recorded = counts.graph_launches - backend->opened.graph_launches,
        .refused = backend->steps.graphs.n_refused,
        .library_products = counts.library - backend->opened.library,
        .padding_rows = backend->steps.padding_rows,
    };
}

int quern_give_back(struct backend *backend, const struct backend_idle *idle, struct backend_given *ret_given)
{
    return give_back_idle(backend, ret_given);
}

/* Kernels are launched one by one meanwhile. */
static int cuda_watch(struct backend *backend, enum backend_watch what)
{
    const bool kernels = what == BACKEND_WATCH_KERNELS;
    if (backend->config.profile) /* it does so anyhow */
        return 0;
    int r = device_profile(backend->device, kernels);
    if (r == 0)
        steps_run_eagerly(&backend->steps, kernels);
    return r < 0 ? steps_fail(&backend->steps, r) : 0;
}

static void cuda_facts(const struct backend *backend, struct backend_facts *ret_facts)
{
    steps_facts(&backend->steps, ret_facts);
}

static uint32_t cuda_profile(struct backend *backend, const struct backend_kernel **ret_kernels)
{
    return device_kernels(backend->device, ret_kernels);
}

/* ---- sampling on the host ---- */

/* Behind the gate, which checks what the device samples. */
static int begin_host_sampling(struct backend *backend, struct error *err)
{
    int r = host_sampling_new(&backend->steps, &backend->steps.host);
    if (r < 0)
        return error_set(err, r, "not enough memory to sample on the host");
    backend->pinned_memory += host_sampling_pinned(&backend->steps);
    say(backend, "host sampling: each sampled id is compared with the host's, which counts; this is slow");
    return 0;
}

static uint32_t host_sampling_differences(const struct backend *backend, uint32_t set,
                                          const struct backend_difference **ret_differences)
{
    const struct flight_set *of = &backend->steps.flights[backend->steps.read % MAILBOXES].sets[set];
    *ret_differences = backend->steps.host->differences + of->first_difference;
    return of->n_differences;
}

static void host_sampling_counts(const struct backend *backend, uint64_t *ret_compared,
                                 uint64_t *ret_different)
{
    *ret_compared = backend->steps.host->compared;
    *ret_different = backend->steps.host->different;
}

const struct backend_host_sampling quern_host_sampling = {
    .begin = begin_host_sampling, .differences = host_sampling_differences, .counts = host_sampling_counts};

struct device *backend_device(const struct backend *backend)
{
    return backend->device;
}

uint32_t backend_decode_kernels(const struct backend *backend, uint32_t rows, bool greedy)
{
    const struct device_graph *graph = graphs_of(&backend->steps.graphs, rows, greedy);
    return graph ? device_graph_kernels(graph) : 0;
}

const struct backend_ops quern_backend = {
    .name = "cuda",
    .weight_packing = device_weights_packing,
    .check = cuda_check,
    .open = cuda_open,
    .close = cuda_close,
    .info = cuda_info,
    .usage = cuda_usage,
    .slot_open = cuda_slot_open,
    .slot_close = cuda_slot_close,
    .submit = cuda_submit,
    .poll = cuda_poll,
    .trim = cuda_trim,
    .watch = cuda_watch,
    .facts = cuda_facts,
    .copy_out = cuda_copy_out,
    .copy_in = cuda_copy_in,
    .copy_block = cuda_copy_block,
    .verdict = cuda_verdict,
    .profile = cuda_profile,
};
