/* SPDX-License-Identifier: MIT */
/* Models: the tensors of the llama architecture, found by name and checked by shape.
 *
 * A model owns its gguf, whose mapping every tensor points into, and its tokenizer. One pass asks for each
 * tensor by name and ticks it off; what is left over afterwards is refused, because a tensor that no one
 * asked for means a computation that no one does. Nothing is read from the weights but the few rope factors.
 *
 * Matrices may have the formats of matrix_formats, the one place to add another when backends can compute
 * with it. Norms, biases and rope factors are F32. */

#include "worker/model/model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/model/params.h"

static const enum format matrix_formats[] = {FORMAT_F32,  FORMAT_F16,  FORMAT_BF16, FORMAT_Q8_0, FORMAT_Q4_0,
                                             FORMAT_Q5_0, FORMAT_Q4_K, FORMAT_Q5_K, FORMAT_Q6_K};

/* attn_norm, q, k, v, output, ffn_norm, gate, up, down */
#define LEAST_LAYER_TENSORS 9

struct finder {
    const struct gguf *gguf;
    bool *used; /* [tensors of the file] */
    struct error *err;
};

static bool is_matrix_format(enum format format)
{
    for (size_t i = 0; i < sizeof matrix_formats / sizeof matrix_formats[0]; i++)
        if (matrix_formats[i] == format)
            return true;
    return false;
}

/* Looks a tensor up and ticks it off. Leaves NULL when there is none. */
static void find(struct finder *finder, const char *name, const struct gguf_tensor **ret_tensor)
{
    const struct gguf_tensor *tensor = gguf_find_tensor(finder->gguf, name);
    if (tensor)
        finder->used[tensor - gguf_tensor_at(finder->gguf, 0)] = true;
    *ret_tensor = tensor;
}

static int check_vector(const struct finder *finder, const char *name, const struct gguf_tensor *tensor,
                        uint64_t n)
{
    if (tensor->n_dims != 1 || tensor->dims[0] != n)
        return error_set(finder->err, -EINVAL,
                         "tensor %s has %" PRIu32 " dimensions, the first of %" PRIu64 ", one of %" PRIu64
                         " is needed",
                         name, tensor->n_dims, tensor->dims[0], n);
    if (tensor->format != FORMAT_F32)
        return error_set(finder->err, -EINVAL, "tensor %s has format %s, F32 is needed", name,
                         format_traits(tensor->format)->name);
    return 0;
}

static int find_vector(struct finder *finder, const char *name, uint64_t n,
                       const struct gguf_tensor **ret_tensor)
{
    find(finder, name, ret_tensor);
    if (!*ret_tensor)
        return error_set(finder->err, -EINVAL, "tensor %s is missing", name);
    return check_vector(finder, name, *ret_tensor, n);
}

static int find_optional_vector(struct finder *finder, const char *name, uint64_t n,
                                const struct gguf_tensor **ret_tensor)
{
    find(finder, name, ret_tensor);
    return *ret_tensor ? check_vector(finder, name, *ret_tensor, n) : 0;
}

static int find_matrix(struct finder *finder, const char *name, uint64_t rows, uint64_t columns,
                       const struct gguf_tensor **ret_tensor)
{
    find(finder, name, ret_tensor);
    const struct gguf_tensor *tensor = *ret_tensor;
    if (!tensor)
        return error_set(finder->err, -EINVAL, "tensor %s is missing", name);
    if (tensor->dims[0] != columns || tensor->dims[1] != rows || tensor->dims[2] != 1 || tensor->dims[3] != 1)
        return error_set(finder->err, -EINVAL,
                         "tensor %s has %" PRIu64 " rows of %" PRIu64 ", %" PRIu64 " of %" PRIu64
                         " are needed",
                         name, tensor->dims[1], tensor->dims[0], rows, columns);
    if (!is_matrix_format(tensor->format))
        return error_set(finder->err, -EINVAL, "tensor %s has format %s, which is not supported", name,
                         format_traits(tensor->format)->name);
    return 0;
}

/* NAME.weight and, if there is one, NAME.bias. */
static int find_linear(struct finder *finder, uint32_t layer, const char *name, uint64_t rows,
                       uint64_t columns, const struct gguf_tensor **ret_weight,
                       const struct gguf_tensor **ret_bias)
{
    char full[64];
    snprintf(full, sizeof full, "blk.%" PRIu32 ".%s.weight", layer, name);
    int r = find_matrix(finder, full, rows, columns, ret_weight);
    if (r < 0)
        return r;
    snprintf(full, sizeof full, "blk.%" PRIu32 ".%s.bias", layer, name);
    return find_optional_vector(finder, full, rows, ret_bias);
}

static int find_layer(struct finder *finder, const struct model_params *params, uint32_t i,
                      struct model_layer *layer)
{
    uint64_t d = params->n_embd, ff = params->n_ff;
    uint64_t q = (uint64_t)params->n_heads * params->head_dim;
    uint64_t kv = (uint64_t)params->n_kv_heads * params->head_dim;
    const struct {
        const char *name;
        uint64_t rows, columns;
        const struct gguf_tensor **weight, **bias;
    } linears[] = {{"attn_q", q, d, &layer->attn_q, &layer->attn_q_bias},
                   {"attn_k", kv, d, &layer->attn_k, &layer->attn_k_bias},
                   {"attn_v", kv, d, &layer->attn_v, &layer->attn_v_bias},
                   {"attn_output", d, q, &layer->attn_output, &layer->attn_output_bias},
                   {"ffn_gate", ff, d, &layer->ffn_gate, &layer->ffn_gate_bias},
                   {"ffn_up", ff, d, &layer->ffn_up, &layer->ffn_up_bias},
                   {"ffn_down", d, ff, &layer->ffn_down, &layer->ffn_down_bias}};
    char name[64];
    snprintf(name, sizeof name, "blk.%" PRIu32 ".attn_norm.weight", i);
    int r = find_vector(finder, name, d, &layer->attn_norm);
    if (r == 0) {
        snprintf(name, sizeof name, "blk.%" PRIu32 ".ffn_norm.weight", i);
        r = find_vector(finder, name, d, &layer->ffn_norm);
    }
    for (size_t l = 0; l < sizeof linears / sizeof linears[0] && r == 0; l++)
        r = find_linear(finder, i, linears[l].name, linears[l].rows, linears[l].columns, linears[l].weight,
                        linears[l].bias);
    return r;
}

/* A factor of 0 or NaN would make every angle infinite. */
static int check_rope_freqs(const struct model *model, struct error *err)
{
    if (!model->rope_freqs)
        return 0;
    const float *factors = model->rope_freqs->data;
    for (uint32_t i = 0; i < model->params.rope_dims / 2; i++)
        if (!(factors[i] > 0) || !isfinite(factors[i]))
            return error_set(err, -EINVAL, "rope_freqs.weight holds %g at %" PRIu32, (double)factors[i], i);
    return 0;
}

static int find_outer_tensors(struct finder *finder, struct model *model)
{
    struct model_params *params = &model->params;
    find(finder, "token_embd.weight", &model->token_embd);
    if (!model->token_embd)
        return error_set(finder->err, -EINVAL, "tensor token_embd.weight is missing");
    if (model->token_embd->dims[1] > INT32_MAX)
        return error_set(finder->err, -EINVAL, "token_embd.weight has too many rows");
    params->n_vocab = (uint32_t)model->token_embd->dims[1];
    int r = find_matrix(finder, "token_embd.weight", params->n_vocab, params->n_embd, &model->token_embd);
    if (r == 0)
        r = find_vector(finder, "output_norm.weight", params->n_embd, &model->output_norm);
    if (r == 0)
        r = find_optional_vector(finder, "rope_freqs.weight", params->rope_dims / 2, &model->rope_freqs);
    if (r == 0)
        r = check_rope_freqs(model, finder->err);
    model->output = model->token_embd;
    if (r == 0 && gguf_find_tensor(finder->gguf, "output.weight"))
        r = find_matrix(finder, "output.weight", params->n_vocab, params->n_embd, &model->output);
    return r;
}

static int refuse_leftovers(const struct finder *finder)
{
    for (size_t i = 0; i < gguf_n_tensors(finder->gguf); i++) {
        char name[64];
        if (!finder->used[i])
            return error_set(finder->err, -EINVAL, "tensor %s has no place in a llama model",
                             gguf_printable(gguf_tensor_at(finder->gguf, i)->name, sizeof name, name));
    }
    return 0;
}

static int find_tensors(struct model *model, struct error *err)
{
    size_t n_tensors = gguf_n_tensors(model->gguf);
    uint32_t n_layers = model->params.n_layers;
    if (n_layers > n_tensors / LEAST_LAYER_TENSORS)
        return error_set(err, -EINVAL, "llama.block_count is %" PRIu32 ", but there are only %zu tensors",
                         n_layers, n_tensors);
    struct finder finder = {.gguf = model->gguf, .used = calloc(n_tensors, sizeof(bool)), .err = err};
    model->layers = calloc(n_layers, sizeof *model->layers);
    if (!finder.used || !model->layers) {
        free(finder.used);
        return -ENOMEM;
    }
    int r = find_outer_tensors(&finder, model);
    for (uint32_t i = 0; i < n_layers && r == 0; i++)
        r = find_layer(&finder, &model->params, i, &model->layers[i]);
    if (r == 0)
        r = refuse_leftovers(&finder);
    free(finder.used);
    return r;
}

/* Padding rows of the head and unused tokens never come out. Without a tokenizer every row may. */
static int fill_sample_mask(struct model *model, struct error *err)
{
    uint32_t n = model->params.n_vocab;
    uint32_t size = model->tokenizer ? tokenizer_size(model->tokenizer) : n;
    if (size > n)
        return error_set(err, -EINVAL,
                         "the vocabulary has %" PRIu32 " tokens, token_embd.weight only %" PRIu32 " rows",
                         size, n);
    model->sample_mask = calloc((n + 31) / 32, sizeof *model->sample_mask);
    if (!model->sample_mask)
        return -ENOMEM;
    for (uint32_t id = 0; id < size; id++)
        if (!model->tokenizer || tokenizer_type(model->tokenizer, (int32_t)id) != TOKEN_UNUSED)
            model->sample_mask[id / 32] |= 1u << (id % 32);
    return 0;
}

static int load(const char *path, bool with_tokenizer, struct model *model, struct error *err)
{
    int r = params_read(model->gguf, path, &model->params, err);
    if (r == 0)
        r = find_tensors(model, err);
    if (r == 0 && with_tokenizer)
        r = tokenizer_new(model->gguf, &model->tokenizer, err);
    if (r == 0)
        r = fill_sample_mask(model, err);
    if (r == 0)
        r = gguf_string(model->gguf, "tokenizer.chat_template", &model->chat_template, err);
    if (r >= 0)
        gguf_digest(model->gguf, model->digest);
    return r < 0 ? r : 0;
}

int model_take_gguf(struct gguf *gguf, const char *path, bool with_tokenizer, struct model **ret_model,
                    struct error *err)
{
    struct model *model = calloc(1, sizeof *model);
    if (!model) {
        gguf_free(gguf);
        return -ENOMEM;
    }
    model->gguf = gguf;
    int r = load(path, with_tokenizer, model, err);
    if (r < 0) {
        model_free(model);
        return error_prefix(err, r, "%s", path);
    }
    *ret_model = model;
    return 0;
}

int model_open(const char *path, bool with_tokenizer, struct model **ret_model, struct error *err)
{
    struct gguf *gguf;
    int r = gguf_open(path, &gguf, err);
    return r < 0 ? r : model_take_gguf(gguf, path, with_tokenizer, ret_model, err);
}

struct model *model_free(struct model *model)
{
    if (!model)
        return NULL;
    tokenizer_free(model->tokenizer);
    free(model->sample_mask);
    free(model->layers);
    gguf_free(model->gguf);
    free(model);
    return NULL;
}
