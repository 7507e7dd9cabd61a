/* SPDX-License-Identifier: MIT */
#include "tests/unit/cuda/check/gated.h"

#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct model *model;
enum backend_kv_type kv_type;

const struct backend_config far = {.n_slots = 2, .n_context = 600, .max_rows = 128};

int open_sized(const char *name, const char *value, const struct backend_config *sizes, struct error *err)
{
    struct backend_config config = *sizes;
    config.model = model;
    config.kv_type = kv_type;
    struct backend *backend = NULL;
    setenv(name, value, 1);
    err->text[0] = 0;
    int r = quern_backend.open(&config, &backend, err);
    unsetenv(name);
    if (r == 0)
        quern_backend.close(backend);
    return r;
}

int open_with(const char *name, const char *value, uint32_t n_slots, uint32_t n_context, struct error *err)
{
    const struct backend_config config = {.n_slots = n_slots, .n_context = n_context, .max_rows = 64};
    return open_sized(name, value, &config, err);
}

void check_refused(const char *kernel, const char *named)
{
    struct error err;
    ck_assert_msg(open_with("QUERN_EMU_SKIP", kernel, 8, 96, &err) == -ENODEV, "%s: %s", kernel, err.text);
    ck_assert_msg(strncmp(err.text, "emulated computes wrong results: ", 27) == 0, "%s", err.text);
    ck_assert_msg(strstr(err.text, named) != NULL, "%s: %s", kernel, err.text);
}

struct synth_shape experts_of(const char *architecture, uint32_t n_shared_ff)
{
    struct synth_shape shape = small_shape;
    shape.architecture = architecture;
    shape.window = strcmp(architecture, "gpt-oss") == 0 ? 30 : 0;
    shape.rope_factor = 0;
    shape.biases = false;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    shape.n_shared_ff = n_shared_ff;
    return shape;
}

struct synth_shape hybrid_of(const char *architecture)
{
    struct synth_shape shape = hybrid_shape;
    shape.architecture = architecture;
    shape.n_layers = 3;
    if (strcmp(architecture, "qwen35") == 0)
        return shape;
    shape.n_layers = 2;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    shape.n_shared_ff = 200;
    return shape;
}

struct synth_shape beside_shape(void)
{
    struct synth_shape shape = differing_shape;
    shape.n_experts = 4;
    shape.n_experts_used = 3;
    shape.n_expert_ff = 96;
    return shape;
}
