/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CPU_SMALL_MODEL_H
#define TESTS_UNIT_CPU_SMALL_MODEL_H

/* Small models with random weights. */

#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/cpu/small_shapes.h"
#include "model/model.h"

static inline struct model *make_model_of(const struct synth_shape *shape, const char *type, uint64_t seed,
                                          bool with_tokenizer)
{
    char path[] = "/tmp/quern-test-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    close(fd);
    struct error err = {0};
    struct model *model = NULL;
    ck_assert_msg(synth_write(shape, mixture_by_name(type), seed, path, &err) == 0, "%s", err.text);
    ck_assert_msg(model_open(path, with_tokenizer, &model, &err) == 0, "%s", err.text);
    unlink(path);
    return model;
}

/* For backends: without a tokenizer. */
static inline struct model *make_model(const struct synth_shape *shape, const char *type)
{
    return make_model_of(shape, type, 7, false);
}

#endif
