/* SPDX-License-Identifier: MIT */
/* The CPU backend: the table of functions that the engine drives (engine/backend/backend.h).
 *
 * Opening packs the weights, or finds them packed, and takes all memory; closing gives it back. In between a
 * step runs to its end inside submit, on the threads of one team, whose first member is the calling thread.
 * What computes is chosen once, in open: kernels.h by the machine, matrix.h by each tensor's format. */

#include "engine/backend/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu/step.h"
#include "engine/backend/give_back.h"

_Static_assert(KERNELS_TOKENS == BACKEND_BLOCK_TOKENS, "kernels and engine agree on what a KV block is");

#define STEP_MS       100
#define ALONE_MS      1000
#define CHUNK_LEAST   8 /* rows of one product: as fast, a row, as any more */
#define CHUNK_MOST    512
#define MAX_ROWS      512
#define MOST_STOP_IDS 1024 /* each is compared with each id sampled */

/* Tickets of copies, which are done when they are given. */
#define COPY_TICKET (1ull << 63)

struct backend {
    const struct model *model;
    struct memory memory;
    struct threads *threads;
    struct weights weights;
    struct kv kv;
    struct states states;
    struct forward forward;
    struct stepper stepper;
    struct slot *slots;      /* [n_slots] */
    struct profile *profile; /* NULL: nobody has asked so far */
    bool profiles;           /* as configured, always */
    uint32_t n_slots, n_context;
    uint64_t copies;                        /* so far */
    size_t weight_memory, workspace_memory; /* bytes taken for them */
};

/* What this backend cannot do is refused, not ignored. */
static int check_abilities(const struct backend_config *config, struct error *err)
{
    if (config->n_devices > 1 || (config->n_devices == 1 && config->devices[0] != 0))
        return error_set(err, -ENODEV, "the only cpu device is number 0; requested: %u, from number %u on",
                         config->n_devices, config->devices[0]);
    return 0;
}

static int cpu_check(const struct model *model, struct error *err)
{
    return forward_check(model, 0, err);
}

static int check_config(const struct backend_config *config, struct error *err)
{
    int r = check_abilities(config, err);
    if (r < 0)
        return r;
    if (config->n_slots == 0 || config->n_context == 0)
        return error_set(err, -EINVAL, "slots and context must be at least 1");
    return forward_check(config->model, config->n_context, err);
}

static int open_parts(struct backend *backend, const struct backend_config *config, struct error *err)
{
    const struct model *model = config->model;
    const struct kv_config kv = {.model = model,
                                 .type = config->kv_type,
                                 .n_blocks = config->n_blocks,
                                 .n_slots = config->n_slots,
                                 .n_context = config->n_context,
                                 .max_rows = backend_rows_for(config, MAX_ROWS)};
    int r = threads_new(config->cpu.n_threads, config->cpu.cpus, config->cpu.n_cpus, &backend->threads, err);
    if (r == 0)
        r = weights_init(&backend->weights, model, &backend->memory, backend->threads, config, err);
    backend->weight_memory = backend->memory.total + backend->memory.shared;
    if (r == 0)
        r = states_init(&backend->states, config, &backend->memory, err);
    if (r == 0)
        r = kv_init(&backend->kv, &kv, &backend->memory, err);
    if (r < 0)
        return r;

    /* The variable is for comparing tables on one machine without another build. */
    const char *wanted = config->cpu.portable ? "portable" : getenv("QUERN_KERNELS");
    backend->profiles = config->profile;
    backend->profile = config->profile ? calloc(1, sizeof *backend->profile) : NULL;
    if (config->profile && !backend->profile)
        return error_set(err, -ENOMEM, "not enough memory for a profile");
    const struct kernels *kernels = kernels_by_name(wanted);
    if (!kernels)
        return error_set(err, -EINVAL, "QUERN_KERNELS: no kernels \"%s\" on this machine", wanted);
    backend->forward = (struct forward){.model = model,
                                        .kernels = kernels,
                                        .threads = backend->threads,
                                        .kv = &backend->kv,
                                        .states = &backend->states,
                                        .weights = &backend->weights,
                                        .max_rows = backend_rows_for(config, MAX_ROWS),
                                        .n_context = config->n_context,
                                        .profile = backend->profile};
    const size_t before = backend->memory.total;
    r = forward_init(&backend->forward, &backend->memory, config->cpu.float_activations, err);
    backend->workspace_memory = backend->memory.total - before;
    if (r < 0)
        return r;

    backend->slots = calloc(config->n_slots, sizeof *backend->slots);
    backend->stepper = (struct stepper){.model = model,
                                        .forward = &backend->forward,
                                        .slots = backend->slots,
                                        .n_slots = config->n_slots,
                                        .max_rows = backend->forward.max_rows,
                                        .progress = config->progress,
                                        .progress_arg = config->progress_arg};
    r = backend->slots ? stepper_init(&backend->stepper) : -ENOMEM;
    return r < 0 ? error_set(err, r, "not enough memory for %u slots", config->n_slots) : 0;
}

static void cpu_close(struct backend *backend)
{
    if (!backend)
        return;
    if (backend->stepper.forward)
        stepper_deinit(&backend->stepper);
    for (uint32_t i = 0; backend->slots && i < backend->n_slots; i++)
        slot_deinit(&backend->slots[i]);
    free(backend->slots);
    free(backend->profile);
    weights_deinit(&backend->weights);
    threads_free(backend->threads);
    memory_deinit(&backend->memory);
    free(backend);
}

static int cpu_open(const struct backend_config *config, struct backend **ret_backend, struct error *err)
{
    int r = check_config(config, err);
    if (r < 0)
        return r;
    struct backend *backend = calloc(1, sizeof *backend);
    if (!backend)
        return error_set(err, -ENOMEM, "not enough memory for the backend");
    backend->model = config->model;
    backend->n_slots = config->n_slots;
    backend->n_context = config->n_context;
    backend->memory.n_sharers = config->n_sharers;
    backend->memory.reserved = config->shared_bytes;
    r = open_parts(backend, config, err);
    if (r < 0) {
        cpu_close(backend);
        return r;
    }
    *ret_backend = backend;
    return 0;
}

static void cpu_info(const struct backend *backend, struct backend_info *ret_info)
{
    uint32_t n_threads = threads_count(backend->threads);
    *ret_info = (struct backend_info){
        .n_groups = backend->kv.n_groups,
        .kv_type = backend->kv.type,
        .kv_layout = states_layout(&backend->states, kv_layout(&backend->kv)),
        .state_bytes = backend->states.n * sizeof *backend->states.slots,
        .n_snapshots = backend->states.n_snapshots,
        .weight_bytes =
            backend->weights.bytes + matrix_row_bytes(backend->model->tensors[TENSOR_EMBEDDING].weight),
        .weight_layout = backend->weights.layout,
        .memory_bytes = backend->memory.total + backend->memory.shared,
        .n_slots = backend->n_slots,
        .most_flights = 1,
        .most_stop_ids = MOST_STOP_IDS,
        .max_rows = backend->forward.max_rows,
        .n_embedding = backend->model->params.n_embd,
        .step_ms = STEP_MS,
        .alone_ms = ALONE_MS,
        .chunk_least = CHUNK_LEAST,
        .chunk_most = CHUNK_MOST,
    };
    memcpy(ret_info->groups, backend->kv.groups, sizeof ret_info->groups);
    snprintf(ret_info->device, sizeof ret_info->device, "cpu %s, %u thread%s", backend->forward.kernels->name,
             n_threads, n_threads == 1 ? "" : "s");
}

static void cpu_usage(struct backend *backend, struct backend_usage *ret_usage)
{
    *ret_usage =
        (struct backend_usage){.weights = backend->weight_memory, .workspace = backend->workspace_memory};
}

static int cpu_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    const bool restores = backend->states.n > 0 && params->position > 0;
    if (slot >= backend->n_slots || backend->slots[slot].open || params->n_stop_ids > MOST_STOP_IDS ||
        (restores && params->position % BACKEND_BLOCK_TOKENS != 0) ||
        (restores && params->snapshot >= backend->states.n_snapshots) ||
        (params->embeds && params->position != 0))
        return -EINVAL;
    const struct slot_shape shape = {.n_groups = backend->kv.n_groups,
                                     .table_size = backend_blocks_for(backend->n_context),
                                     .n_vocab = backend->model->params.n_vocab,
                                     .n_embd = backend->model->params.n_embd,
                                     .n_state = backend->states.n};
    return slot_init(&backend->slots[slot], params, &shape, states_of(&backend->states, slot),
                     restores ? states_snapshot(&backend->states, params->snapshot) : NULL);
}

static void cpu_slot_close(struct backend *backend, uint32_t slot)
{
    if (slot < backend->n_slots)
        slot_deinit(&backend->slots[slot]);
}

static int cpu_submit(struct backend *backend, const struct backend_step *step, uint64_t *ret_ticket)
{
    return stepper_run(&backend->stepper, step, ret_ticket);
}

static int cpu_poll(struct backend *backend, uint64_t ticket, int timeout_ms,
                    const struct backend_result **ret_results, struct error *err)
{
    if (ticket - COPY_TICKET - 1 < backend->copies) /* a step's ticket is below, and wraps */
        return 0;
    const struct step_results *results = stepper_take(&backend->stepper, ticket);
    if (!results)
        return error_set(err, -EINVAL, "no ticket %llu is open", (unsigned long long)ticket);
    if (results->status < 0)
        return results->status;
    *ret_results = results->results;
    return 0;
}

/* In the middle of a pass too: one that began without times has none. Only kernels have to wait for the next
 * pass: who profiles asks between two. */
static int cpu_watch(struct backend *backend, enum backend_watch what)
{
    if (what == BACKEND_WATCH_KERNELS && !backend->profile)
        backend->profile = calloc(1, sizeof *backend->profile);
    if (what == BACKEND_WATCH_KERNELS && !backend->profile)
        return -ENOMEM;
    backend->forward.timed = what != BACKEND_WATCH_NOTHING;
    backend->forward.profile = backend->profiles || what == BACKEND_WATCH_KERNELS ? backend->profile : NULL;
    return 0;
}

static void cpu_facts(const struct backend *backend, struct backend_facts *ret_facts)
{
    const struct forward *forward = &backend->forward;
    const bool whole = forward->pass_begun > 0 && forward->embed_ns > 0;
    *ret_facts = (struct backend_facts){0};
    if (!whole)
        return;
    ret_facts->embed_ns = forward->embed_ns;
    ret_facts->sample_ns = forward->sample_ns;
    ret_facts->layers_ns = forward->pass_ns - forward->embed_ns - forward->sample_ns;
}

static void cpu_trim(struct backend *backend, uint32_t slot, uint32_t position, uint32_t snapshot)
{
    const struct states *states = &backend->states;
    if (slot < backend->n_slots)
        slot_trim(&backend->slots[slot], position,
                  snapshot < states->n_snapshots ? states_snapshot(states, snapshot) : NULL);
}

static int copy(struct backend *backend, const struct backend_copy *copy, bool out, uint64_t *ret_ticket)
{
    const struct kv *kv = &backend->kv;
    const struct states *states = &backend->states;
    const bool snapshots = copy->group == kv->n_groups && states->n > 0;
    if (copy->group >= kv->n_groups && !snapshots)
        return -EINVAL;
    const size_t bytes = snapshots ? states->n * sizeof(float) : kv->groups[copy->group].block_bytes;
    for (uint32_t i = 0; i < copy->n; i++)
        if (copy->blocks[i] >= (snapshots ? states->n_snapshots : kv->groups[copy->group].n_blocks))
            return -EINVAL;
    for (uint32_t i = 0; i < copy->n; i++) {
        uint8_t *host = (uint8_t *)copy->host + i * bytes;
        uint8_t *block = snapshots ? (uint8_t *)states_snapshot(states, copy->blocks[i])
                                   : kv_block(kv, copy->group, copy->blocks[i]);
        if (out)
            memcpy(host, block, bytes);
        else
            memcpy(block, host, bytes);
    }
    *ret_ticket = COPY_TICKET + ++backend->copies;
    return 0;
}

static int cpu_copy_out(struct backend *backend, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(backend, what, true, ret_ticket);
}

static int cpu_copy_in(struct backend *backend, const struct backend_copy *what, uint64_t *ret_ticket)
{
    return copy(backend, what, false, ret_ticket);
}

static int cpu_copy_block(struct backend *backend, uint32_t group, uint32_t from, uint32_t to)
{
    const struct kv *kv = &backend->kv;
    if (group >= kv->n_groups || from >= kv->groups[group].n_blocks || to >= kv->groups[group].n_blocks)
        return -EINVAL;
    if (from != to)
        memcpy(kv_block(kv, group, to), kv_block(kv, group, from), kv->groups[group].block_bytes);
    return 0;
}

/* States of slots that are closed, and snapshots: each starts anew, or is copied over. */
static uint64_t forget_states(const struct backend *backend, const struct backend_idle *idle)
{
    const struct states *states = &backend->states;
    const size_t bytes = states->n * sizeof(float);
    uint64_t forgotten = 0;
    for (uint32_t i = 0; i < backend->n_slots && bytes > 0; i++)
        if (!backend->slots[i].open)
            forgotten += memory_forget(states_of(states, i), bytes);
    for (uint32_t i = 0; i < idle->n_snapshots && bytes > 0; i++)
        forgotten += memory_forget(states_snapshot(states, idle->snapshots[i]), bytes);
    return forgotten;
}

/* Every step has ended inside submit, so nothing is in use but what is held. */
int backend_cpu_give_back(struct backend *backend, const struct backend_idle *idle,
                          struct backend_given *ret_given)
{
    *ret_given = (struct backend_given){.workspace = memory_forget_scratch(&backend->memory),
                                        .states = forget_states(backend, idle)};
    for (uint32_t g = 0; g < backend->kv.n_groups; g++)
        ret_given->kv += kv_forget(&backend->kv, g, idle->blocks[g], idle->n_blocks[g]);
    return 0;
}

/* A CPU that fails takes the process with it. */
static int cpu_verdict(struct backend *backend, struct error *err)
{
    return 0;
}

static uint32_t cpu_profile(struct backend *backend, const struct backend_kernel **ret_kernels)
{
    return backend->profile ? profile_take(backend->profile, ret_kernels) : 0;
}

static uint64_t cpu_weight_packing(void)
{
    return weights_packing;
}

const struct backend_ops backend_cpu = {
    .name = "cpu",
    .self_contained = true,
    .weight_packing = cpu_weight_packing,
    .check = cpu_check,
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .usage = cpu_usage,
    .slot_open = cpu_slot_open,
    .slot_close = cpu_slot_close,
    .submit = cpu_submit,
    .poll = cpu_poll,
    .watch = cpu_watch,
    .facts = cpu_facts,
    .trim = cpu_trim,
    .copy_out = cpu_copy_out,
    .copy_in = cpu_copy_in,
    .copy_block = cpu_copy_block,
    .verdict = cpu_verdict,
    .profile = cpu_profile,
};
