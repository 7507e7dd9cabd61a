/* SPDX-License-Identifier: MIT */
/* The CPU backend: the table of functions that the engine drives (worker/engine/backend.h).
 *
 * Opening packs the weights and takes all memory; closing gives it back. In between a step runs to its end
 * inside submit, on the threads of one team, whose first member is the calling thread. What computes is
 * chosen once, in open: kernels.h by the machine, matrix.h by each tensor's format. */

#include "worker/engine/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/cpu/step.h"

_Static_assert(KERNELS_TOKENS == BACKEND_BLOCK_TOKENS, "kernels and engine agree on what a KV block is");

struct backend {
    const struct model *model;
    struct memory memory;
    struct threads *threads;
    struct weights weights;
    struct kv kv;
    struct forward forward;
    struct stepper stepper;
    struct slot *slots; /* [n_slots] */
    uint32_t n_slots, n_context;
};

static int check_config(const struct backend_config *config, struct error *err)
{
    const struct model_params *params = &config->model->params;
    if (config->n_slots == 0 || config->n_context == 0 || config->max_rows == 0)
        return error_set(err, -EINVAL, "slots, context and rows of a step must be at least 1");
    if (params->n_kv_heads == 0 || params->n_heads % params->n_kv_heads != 0)
        return error_set(err, -EINVAL, "%u query heads cannot share %u key heads", params->n_heads,
                         params->n_kv_heads);
    return 0;
}

static int open_parts(struct backend *backend, const struct backend_config *config, struct error *err)
{
    const struct model *model = config->model;
    int r = threads_new(config->n_threads, config->cpus, config->n_cpus, &backend->threads, err);
    if (r == 0)
        r = weights_init(&backend->weights, model, &backend->memory, backend->threads, err);
    if (r == 0)
        r = kv_init(&backend->kv, &model->params, config->n_blocks,
                    (uint64_t)config->n_slots * backend_blocks_for(config->n_context), &backend->memory, err);
    if (r < 0)
        return r;

    /* The variable is for comparing tables on one machine without another build. */
    const char *wanted = config->portable ? "portable" : getenv("QUERN_KERNELS");
    const struct kernels *kernels = kernels_by_name(wanted);
    if (!kernels)
        return error_set(err, -EINVAL, "QUERN_KERNELS: this machine has no kernels \"%s\"", wanted);
    backend->forward = (struct forward){.model = model,
                                        .kernels = kernels,
                                        .threads = backend->threads,
                                        .kv = &backend->kv,
                                        .weights = &backend->weights,
                                        .max_rows = config->max_rows};
    r = forward_init(&backend->forward, &backend->memory, config->float_activations, err);
    if (r < 0)
        return r;

    backend->slots = calloc(config->n_slots, sizeof *backend->slots);
    backend->stepper = (struct stepper){.model = model,
                                        .forward = &backend->forward,
                                        .slots = backend->slots,
                                        .n_slots = config->n_slots,
                                        .n_blocks = backend->kv.n_blocks,
                                        .max_rows = config->max_rows,
                                        .progress = config->progress,
                                        .progress_arg = config->progress_arg};
    r = backend->slots ? stepper_init(&backend->stepper) : -ENOMEM;
    return r < 0 ? error_set(err, r, "no memory for %u slots", config->n_slots) : 0;
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
        return error_set(err, -ENOMEM, "no memory for the backend");
    backend->model = config->model;
    backend->n_slots = config->n_slots;
    backend->n_context = config->n_context;
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
        .n_blocks = backend->kv.n_blocks,
        .block_bytes = backend->kv.block_size * sizeof *backend->kv.pool,
        .weight_bytes = backend->weights.bytes + matrix_row_bytes(backend->model->token_embd),
        .memory_bytes = backend->memory.total,
        .max_rows = backend->forward.max_rows,
        .synchronous = true,
    };
    snprintf(ret_info->device, sizeof ret_info->device, "cpu %s, %u thread%s", backend->forward.kernels->name,
             n_threads, n_threads == 1 ? "" : "s");
}

static int cpu_slot_open(struct backend *backend, uint32_t slot, const struct backend_slot *params)
{
    if (slot >= backend->n_slots || backend->slots[slot].open)
        return -EINVAL;
    return slot_init(&backend->slots[slot], params, backend_blocks_for(backend->n_context),
                     backend->model->params.n_vocab);
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
    const struct step_results *results = stepper_results(&backend->stepper, ticket);
    if (!results)
        return error_set(err, -EINVAL, "the results of step %llu are gone", (unsigned long long)ticket);
    if (results->status < 0)
        return results->status;
    *ret_results = results->results;
    return 0;
}

static void cpu_trim(struct backend *backend, uint32_t slot, uint32_t position)
{
    if (slot < backend->n_slots && backend_blocks_for(position) < backend->slots[slot].n_blocks)
        backend->slots[slot].n_blocks = backend_blocks_for(position);
}

static int cpu_blocks_read(struct backend *backend, const uint32_t *blocks, uint32_t n, void *out)
{
    const struct kv *kv = &backend->kv;
    size_t bytes = kv->block_size * sizeof *kv->pool;
    for (uint32_t i = 0; i < n; i++) {
        if (blocks[i] >= kv->n_blocks)
            return -EINVAL;
        memcpy((uint8_t *)out + i * bytes, kv->pool + blocks[i] * kv->block_size, bytes);
    }
    return 0;
}

static int cpu_blocks_write(struct backend *backend, const uint32_t *blocks, uint32_t n, const void *in)
{
    const struct kv *kv = &backend->kv;
    size_t bytes = kv->block_size * sizeof *kv->pool;
    for (uint32_t i = 0; i < n; i++) {
        if (blocks[i] >= kv->n_blocks)
            return -EINVAL;
        memcpy(kv->pool + blocks[i] * kv->block_size, (const uint8_t *)in + i * bytes, bytes);
    }
    return 0;
}

const struct backend_ops backend_cpu = {
    .name = "cpu",
    .open = cpu_open,
    .close = cpu_close,
    .info = cpu_info,
    .slot_open = cpu_slot_open,
    .slot_close = cpu_slot_close,
    .submit = cpu_submit,
    .poll = cpu_poll,
    .trim = cpu_trim,
    .blocks_read = cpu_blocks_read,
    .blocks_write = cpu_blocks_write,
};
