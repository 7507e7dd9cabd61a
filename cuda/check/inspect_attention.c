/* SPDX-License-Identifier: MIT */
/* Attention: the products before it, heads in their place and in the pool, and what is made of them. */

#include "cuda/check/inspect_parts.h"

#include <math.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/reference.h"
#include "model/frequencies.h"

int inspect_qkv(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const bool has_values = !traits->values_are_keys;
    int r = inspect_bring_rows(look, w->q, w->q_stride * sizeof(float), look->q);
    if (r == 0)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_Q, &look->normed, look->q, w->q_stride);
    if (r < 0 || traits->borrows_kv)
        return r;
    r = inspect_bring_rows(look, w->k, w->kv_stride * sizeof(float), look->k);
    if (r == 0)
        r = inspect_bring_rows(look, has_values ? w->v : w->k, w->kv_stride * sizeof(float), look->v);
    if (r == 0)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_K, &look->normed, look->k, w->kv_stride);
    if (r == 0 && has_values)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_V, &look->normed, look->v, w->kv_stride);
    return r;
}

/* A row's heads as the products have made them, normed where that is done to all n numbers together, into
 * look->more. */
static void norm_row(struct inspection *look, uint32_t layer, enum tensor_role norm, const float *heads,
                     uint32_t n)
{
    const struct model_layer *from = &look->model->layers[layer];
    for (uint32_t i = 0; i < n; i++)
        look->more[i] = (double)heads[i];
    if (from->traits.qk_norm == QK_NORM_ALL)
        reference_norm(&from->traits.norm, &from->tensors[norm], look->more, n, look->weights, look->more);
}

/* One of those heads, normed where each is by itself, and turned, times `scale`, into look->expected. */
static void turn(struct inspection *look, uint32_t layer, enum tensor_role norm, uint32_t position,
                 uint32_t head, double scale)
{
    const struct model_layer *from = &look->model->layers[layer];
    const uint32_t dim = from->traits.heads.dim;
    for (uint32_t d = 0; d < dim; d++)
        look->expected[d] = look->more[head * dim + d];
    if (from->traits.qk_norm == QK_NORM_HEADS)
        reference_norm(&from->traits.norm, &from->tensors[norm], look->expected, dim, look->weights,
                       look->expected);
    reference_turn(&from->traits.rotary, look->frequencies, position, look->expected);
    for (uint32_t d = 0; d < dim; d++)
        look->expected[d] *= scale;
}

/* A head of values as the products have made it, normed where that is done, into look->expected. */
static void make_values(struct inspection *look, const struct layer_traits *traits, const float *head)
{
    const uint32_t dim = traits->heads.dim;
    double squares = 0;
    for (uint32_t d = 0; d < dim; d++)
        squares += (double)head[d] * (double)head[d];
    const double size = sqrt(squares / dim + (double)traits->norm.epsilon);
    for (uint32_t d = 0; d < dim; d++)
        look->expected[d] = (double)head[d] / (traits->value_norm ? size : 1);
}

/* Row i: its queries in their place, its keys and values in the pool. */
static int check_turned(struct inspection *look, uint32_t layer, uint32_t i)
{
    const struct workspace *w = look->pass->workspace;
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const struct head_shape *heads = &traits->heads;
    const uint32_t dim = heads->dim, position = look->first + look->picked[i];
    const char *kernel = traits->qk_norm == QK_NORM_ALL ? "heads_of_row" : "heads";
    const struct inspect_site site = {kernel, NULL, layer, look->picked[i], OFF_ROW};
    int r = 0;
    norm_row(look, layer, TENSOR_Q_NORM, look->q + (size_t)i * w->q_stride, heads->n * dim);
    for (uint32_t head = 0; head < heads->n && r == 0; head++) {
        const size_t at = (size_t)i * w->q_stride + head * dim;
        turn(look, layer, TENSOR_Q_NORM, position, head, reference_query_scale(traits, position));
        r = inspect_compare(look, &site, look->turned + at, look->expected, dim);
    }
    if (traits->borrows_kv) /* what its lender has stored was looked at there */
        return r;
    norm_row(look, layer, TENSOR_K_NORM, look->k + (size_t)i * w->kv_stride, heads->n_kv * dim);
    for (uint32_t head = 0; head < heads->n_kv && r == 0; head++) {
        const size_t from = (size_t)i * w->kv_stride + head * dim;
        const size_t to = (size_t)position * heads->n_kv * dim + head * dim;
        turn(look, layer, TENSOR_K_NORM, position, head, 1);
        r = inspect_stored(look, &site, look->keys + to);
        make_values(look, traits, look->v + from);
        if (r == 0)
            r = inspect_stored(look, &site, look->values + to);
    }
    return r;
}

int inspect_heads(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const float *factors = rotary_factors(look->model, w->attention[0].scratch.n_context);
    rotary_frequencies(&look->model->layers[layer].traits.rotary, factors, look->frequencies);
    int r = inspect_bring_rows(look, w->q, w->q_stride * sizeof(float), look->turned);
    if (r == 0)
        r = inspect_bring_kv(look, layer);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = check_turned(look, layer, i);
    return r;
}

int inspect_attention(struct inspection *look, uint32_t layer)
{
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    const struct head_shape *heads = &traits->heads;
    const uint32_t dim = heads->dim, n = heads->n * dim;
    const char *kernel = traits->output_gate ? "attention and gate" : "attention";
    int r = inspect_bring_activations(look, &look->pass->workspace->attended, &look->attended);
    if (traits->sinks)
        reference_row_of(&look->model->layers[layer].tensors[TENSOR_SINKS], 0, look->weights);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct inspect_site site = {kernel, NULL, layer, look->picked[i], OFF_ATTENTION};
        const float *found = look->attended.values + (size_t)i * look->attended.stride;
        const float *gate = look->output_gate + (size_t)i * look->attended.stride;
        for (uint32_t at = 0; at < n && r == 0; at += dim) {
            const uint32_t from = at / dim / (heads->n / heads->n_kv) * dim;
            const struct reference_attention attention = {.keys = look->keys + from,
                                                          .values = look->values + from,
                                                          .dim = dim,
                                                          .stride = heads->n_kv * dim,
                                                          .position = look->first + look->picked[i],
                                                          .window = traits->window,
                                                          .cap = traits->attention_cap,
                                                          .sink = traits->sinks ? look->weights + at / dim
                                                                                : NULL};
            const float *query = look->turned + (size_t)i * look->pass->workspace->q_stride + at;
            const double size = reference_attend(&attention, query, look->expected);
            for (uint32_t d = 0; d < dim && r == 0; d++) {
                const double part = traits->output_gate ? 1 / (1 + exp(-(double)gate[at + d])) : 1;
                const double expected = look->expected[d] * part;
                if (!inspect_agree((double)found[at + d], expected, size * part, OFF_ATTENTION))
                    r = inspect_differ(look, &site, at + d, (double)found[at + d], expected);
            }
        }
        /* As they are, for how they are rounded. */
        for (uint32_t k = 0; k < n; k++)
            look->expected[k] = (double)found[k];
        if (r == 0)
            r = inspect_activations(look, kernel, layer, i, &look->attended, look->expected, n);
    }
    return r;
}
