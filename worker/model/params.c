/* SPDX-License-Identifier: MIT */
/* Hyperparameters of the llama architecture.
 *
 * Keys are ARCHITECTURE.NAME. Each has a range outside of which nothing could work, and what has no default
 * must be there: a guess would give a model that talks nonsense instead of an error. What changes the
 * computation in a way that is not implemented (experts, other rope scalings) is refused by name. */

#include "worker/model/params.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* Far above any model; keeps products of two of them inside 64 bits and one of them inside an int. */
#define LIMIT (1u << 24)

struct source {
    const struct gguf *gguf;
    const char *architecture;
    struct error *err;
};

static const char *full_key(const struct source *source, const char *name, char key[96])
{
    snprintf(key, 96, "%s.%s", source->architecture, name);
    return key;
}

static int missing(const struct source *source, const char *name)
{
    return error_set(source->err, -EINVAL, "hyperparameter %s.%s is missing", source->architecture, name);
}

/* An integer in 1 … LIMIT. GGUF_E_MISSING leaves the value as it is. */
static int optional_u32(const struct source *source, const char *name, uint32_t *value)
{
    char key[96];
    uint32_t found;
    int r = gguf_u32(source->gguf, full_key(source, name, key), &found, source->err);
    if (r != 0)
        return r;
    if (found == 0 || found > LIMIT)
        return error_set(source->err, -EINVAL, "hyperparameter %s is %" PRIu32 ", 1 to %u are possible", key,
                         found, LIMIT);
    *value = found;
    return 0;
}

static int required_u32(const struct source *source, const char *name, uint32_t *value)
{
    int r = optional_u32(source, name, value);
    return r == GGUF_E_MISSING ? missing(source, name) : r;
}

/* A finite real above 0. GGUF_E_MISSING leaves the value as it is. */
static int optional_f32(const struct source *source, const char *name, float *value)
{
    char key[96];
    float found;
    int r = gguf_f32(source->gguf, full_key(source, name, key), &found, source->err);
    if (r != 0)
        return r;
    if (!(found > 0) || !isfinite(found))
        return error_set(source->err, -EINVAL, "hyperparameter %s is %g, a number above 0 is needed", key,
                         (double)found);
    *value = found;
    return 0;
}

static int read_architecture(const struct gguf *gguf, char ret_name[32], struct error *err)
{
    struct bytes architecture;
    char text[32];
    int r = gguf_string(gguf, "general.architecture", &architecture, err);
    if (r == GGUF_E_MISSING)
        return error_set(err, -EINVAL, "general.architecture is missing");
    if (r < 0)
        return r;
    gguf_printable(architecture, sizeof text, text);
    if (!bytes_equal(architecture, BYTES_LITERAL("llama")))
        return error_set(err, -EINVAL, "architecture \"%s\" is not supported (llama is)", text);
    strcpy(ret_name, text);
    return 0;
}

static void read_name(const struct gguf *gguf, const char *path, char ret_name[128])
{
    struct bytes name;
    if (gguf_string(gguf, "general.name", &name, NULL) == 0 && name.len > 0) {
        gguf_printable(name, 128, ret_name);
        return;
    }
    const char *slash = strrchr(path, '/');
    gguf_printable(bytes_of_string(slash ? slash + 1 : path), 128, ret_name);
}

static int read_heads(const struct source *source, struct model_params *params)
{
    int r = required_u32(source, "attention.head_count", &params->n_heads);
    if (r < 0)
        return r;
    params->n_kv_heads = params->n_heads;
    r = optional_u32(source, "attention.head_count_kv", &params->n_kv_heads);
    if (r < 0)
        return r;
    if (params->n_heads % params->n_kv_heads != 0)
        return error_set(source->err, -EINVAL,
                         "%" PRIu32 " heads cannot share %" PRIu32 " key/value heads evenly", params->n_heads,
                         params->n_kv_heads);
    r = optional_u32(source, "attention.key_length", &params->head_dim);
    if (r < 0)
        return r;
    if (r == GGUF_E_MISSING) {
        if (params->n_embd % params->n_heads != 0)
            return error_set(source->err, -EINVAL,
                             "embedding length %" PRIu32 " is no multiple of %" PRIu32 " heads",
                             params->n_embd, params->n_heads);
        params->head_dim = params->n_embd / params->n_heads;
    }
    uint32_t value_length = params->head_dim;
    r = optional_u32(source, "attention.value_length", &value_length);
    if (r < 0)
        return r;
    if (value_length != params->head_dim)
        return error_set(source->err, -EINVAL,
                         "keys of length %" PRIu32 " with values of length %" PRIu32 " are not supported",
                         params->head_dim, value_length);
    return 0;
}

/* Linear scaling only, under its present and its older key. A factor without a type means linear. */
static int read_rope_scaling(const struct source *source, struct model_params *params)
{
    char key[96], text[32] = "linear";
    struct bytes type = BYTES_LITERAL("linear");
    int r = gguf_string(source->gguf, full_key(source, "rope.scaling.type", key), &type, source->err);
    if (r < 0)
        return r;
    gguf_printable(type, sizeof text, text);
    params->rope_scale = 1;
    if (strcmp(text, "none") == 0)
        return 0;
    if (strcmp(text, "linear") != 0)
        return error_set(source->err, -EINVAL, "rope scaling \"%s\" is not supported (none and linear are)",
                         text);
    r = optional_f32(source, "rope.scaling.factor", &params->rope_scale);
    if (r == GGUF_E_MISSING)
        r = optional_f32(source, "rope.scale_linear", &params->rope_scale);
    return r < 0 ? r : 0;
}

static int read_rope(const struct source *source, struct model_params *params)
{
    params->rope_base = 10000;
    int r = optional_f32(source, "rope.freq_base", &params->rope_base);
    if (r < 0)
        return r;
    params->rope_dims = params->head_dim;
    r = optional_u32(source, "rope.dimension_count", &params->rope_dims);
    if (r < 0)
        return r;
    if (params->rope_dims % 2 != 0 || params->rope_dims > params->head_dim)
        return error_set(source->err, -EINVAL,
                         "%" PRIu32 " rotary dimensions in heads of %" PRIu32
                         ": an even number up to that is needed",
                         params->rope_dims, params->head_dim);
    return read_rope_scaling(source, params);
}

static int refuse_experts(const struct source *source)
{
    char key[96];
    uint32_t n = 0;
    int r = gguf_u32(source->gguf, full_key(source, "expert_count", key), &n, source->err);
    if (r < 0)
        return r;
    if (n > 0)
        return error_set(source->err, -EINVAL, "%s is %" PRIu32 ": mixtures of experts are not supported",
                         key, n);
    return 0;
}

int params_read(const struct gguf *gguf, const char *path, struct model_params *ret_params, struct error *err)
{
    struct model_params params = {0};
    int r = read_architecture(gguf, params.architecture, err);
    if (r < 0)
        return r;
    struct source source = {gguf, params.architecture, err};
    const struct {
        const char *name;
        uint32_t *value;
    } counts[] = {{"context_length", &params.n_context},
                  {"embedding_length", &params.n_embd},
                  {"block_count", &params.n_layers},
                  {"feed_forward_length", &params.n_ff}};
    r = refuse_experts(&source);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && r >= 0; i++)
        r = required_u32(&source, counts[i].name, counts[i].value);
    if (r >= 0)
        r = read_heads(&source, &params);
    if (r >= 0)
        r = optional_f32(&source, "attention.layer_norm_rms_epsilon", &params.rms_epsilon);
    if (r == GGUF_E_MISSING)
        r = missing(&source, "attention.layer_norm_rms_epsilon");
    if (r >= 0)
        r = read_rope(&source, &params);
    if (r < 0)
        return r;
    read_name(gguf, path, params.name);
    *ret_params = params;
    return 0;
}
