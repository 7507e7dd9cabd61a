/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_WORKER_CPU_SMALL_MODEL_H
#define TESTS_UNIT_WORKER_CPU_SMALL_MODEL_H

/* Small models with random weights. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "worker/model/model.h"
#include "worker/convert/synth.h"

/* Wide enough for superblocks of 256; four query heads share two key heads. */
static const struct synth_shape small_shape = {.name = "small",
                                               .n_vocab = 405,
                                               .n_context = 1024,
                                               .n_embd = 256,
                                               .n_layers = 2,
                                               .n_heads = 4,
                                               .n_kv_heads = 2,
                                               .head_dim = 64,
                                               .n_ff = 512,
                                               .norm_epsilon = 1e-5f,
                                               .rope_base = 10000,
                                               .rope_factor = 4,
                                               .biases = true};

/* Nothing is a multiple of eight: for F32, F16 and BF16. */
static const struct synth_shape odd_shape = {.name = "odd",
                                             .n_vocab = 363,
                                             .n_context = 1024,
                                             .n_embd = 33,
                                             .n_layers = 2,
                                             .n_heads = 3,
                                             .n_kv_heads = 1,
                                             .head_dim = 10,
                                             .n_ff = 51,
                                             .norm_epsilon = 1e-5f,
                                             .rope_base = 10000,
                                             .tied = true};

static inline struct model *make_model(const struct synth_shape *shape, const char *type)
{
    char path[] = "/tmp/quern-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    struct error err = {0};
    struct model *model = NULL;
    ck_assert_msg(synth_write(shape, mixture_by_name(type), 7, path, &err) == 0, "%s", err.text);
    ck_assert_msg(model_open(path, false, &model, &err) == 0, "%s", err.text);
    unlink(path);
    return model;
}

#endif
