/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_LARGE_BACKEND_H
#define TESTS_UNIT_CUDA_LARGE_BACKEND_H

/* Backends that use, or should use, a library for large steps: opens them with or without faults, runs them,
 * and collects their messages and launches. */

#include "cuda/backend.h"
#include "cuda/device/device.h"
#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ROWS    65 /* the library is used from this many rows on */
#define CONTEXT 160

static struct model *model;
static char said[4096]; /* the backend's messages */

static inline void hear(void *arg, const char *line)
{
    size_t len = strlen(said);
    snprintf(said + len, sizeof said - len, "%s\n", line);
}

static inline struct backend_config config_of(uint32_t library_rows)
{
    return (struct backend_config){.model = model,
                                   .n_slots = 2,
                                   .n_context = CONTEXT,
                                   .max_rows = 128,
                                   .cuda.library_rows = library_rows,
                                   .say = hear};
}

static inline int open_as(const struct backend_ops *ops, const struct backend_config *config,
                          struct backend **ret_backend, struct error *err)
{
    said[0] = err->text[0] = 0;
    return ops->open(config, ret_backend, err);
}

static struct backend *open_backend(const struct backend_ops *ops, uint32_t library_rows)
{
    struct backend_config config = config_of(library_rows);
    struct backend *backend = NULL;
    struct error err;
    config.cpu.float_activations = ops == &backend_cpu;
    ck_assert_msg(open_as(ops, &config, &backend, &err) == 0, "%s", err.text);
    return backend;
}

static inline int run(const struct backend_ops *ops, struct backend *backend,
                      const struct backend_row_set *sets, uint32_t n_sets, struct error *err)
{
    const struct backend_step step = {sets, n_sets};
    const struct backend_result *results = NULL;
    uint64_t ticket;
    int r = ops->submit(backend, &step, &ticket);
    if (r < 0)
        return ops->verdict(backend, err);
    do
        r = ops->poll(backend, ticket, 1000, &results, err);
    while (r == -EAGAIN);
    return r;
}

/* Logits of every row of a prompt of n ids, in a newly opened slot; the caller frees them. */
static inline float *logits_of(const struct backend_ops *ops, struct backend *backend, uint32_t n)
{
    static const uint32_t blocks[] = {0, 1, 2, 3, 4};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = UINT32_MAX};
    int32_t ids[CONTEXT];
    struct error err = {0};
    float *logits = calloc((size_t)n * model->params.n_vocab, sizeof *logits);
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + i * 17 % 300);
    const struct backend_row_set set = {.ids = ids,
                                        .n_ids = n,
                                        .blocks = {{blocks, backend_blocks_for(n), 0}},
                                        .output = BACKEND_LOGITS_ALL,
                                        .logits = logits};
    ck_assert_int_eq(ops->slot_open(backend, 0, &slot), 0);
    ck_assert_msg(run(ops, backend, &set, 1, &err) == 0, "%s", err.text);
    ops->slot_close(backend, 0);
    return logits;
}

/* The number of launches of that name since the last call. */
static inline uint64_t launches(struct backend *backend, const char *name)
{
    const struct backend_kernel *kernels;
    const uint32_t n = device_kernels(backend_device(backend), &kernels);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(kernels[i].name, name) == 0)
            return kernels[i].n;
    return 0;
}

static inline int open_checked(const char *skipped, struct error *err)
{
    const struct backend_config config = config_of(ROWS);
    struct backend *backend = NULL;
    setenv("QUERN_UNCHECKED", "0", 1);
    setenv("QUERN_EMU_SKIP", skipped, 1);
    int r = open_as(&quern_backend, &config, &backend, err);
    unsetenv("QUERN_EMU_SKIP");
    setenv("QUERN_UNCHECKED", "1", 1);
    if (r == 0)
        quern_backend.close(backend);
    return r;
}

static inline int open_with(const char *fault, struct backend **ret_backend, struct error *err)
{
    const struct backend_config config = config_of(ROWS);
    setenv("QUERN_EMU_CUBLAS", fault, 1);
    int r = open_as(&quern_backend, &config, ret_backend, err);
    unsetenv("QUERN_EMU_CUBLAS");
    return r;
}

/* Checks that the prompt's logits are bit for bit those of Quern's own products. */
static inline void check_own(struct backend *backend)
{
    struct backend *own = open_backend(&quern_backend, 0);
    float *a = logits_of(&quern_backend, own, ROWS), *b = logits_of(&quern_backend, backend, ROWS);
    ck_assert_mem_eq(a, b, ROWS * model->params.n_vocab * sizeof *a);
    free(a);
    free(b);
    quern_backend.close(own);
    quern_backend.close(backend);
}

#endif
