/* SPDX-License-Identifier: MIT */
/* Products of layers, what they do to the stream, and who is told of them. */

#include "cuda/host/pass_parts.h"

#include "cuda/kernels/layout.h"

int pass_seen(const struct pass *pass, int r, enum pass_part part, uint32_t layer)
{
    return r < 0 || !pass->watch ? r : pass->watch->see(pass->watch->arg, part, layer);
}

void pass_expect_weights(struct device_stream *queue, const struct device_matrix *const *matrices, uint32_t n,
                         uint32_t n_experts)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct layout *layout = layout_of(matrices[i]->format);
        bytes += layout ? layout_bytes(layout, matrices[i]->n_rows, matrices[i]->n_columns) : 0;
    }
    device_expect(queue, bytes * n_experts);
}

struct multiply_step pass_experts(const struct pass *pass, uint32_t n_rows)
{
    return (struct multiply_step){n_rows, pass->invariant, &pass->workspace->multiply, PRODUCT_BY_RULE};
}

struct multiply_step pass_products(const struct pass *pass, const struct device_product *products, uint32_t n,
                                   const struct device_activations *x, uint32_t n_rows)
{
    struct multiply_step step = pass_experts(pass, n_rows);
    step.way = pass_way(pass, products->matrix, n_rows);
    if (pass->meets)
        pass->meets->meet(pass->meets->arg, products, n, x);
    return step;
}

bool pass_takes_library(const struct pass *pass, const struct multiply_step *step)
{
    return pass_is_large(pass, step->n_rows) && (!pass->large_by_choice || step->way == PRODUCT_LIBRARY);
}

int pass_multiply(const struct pass *pass, struct device_stream *queue, const struct device_product *products,
                  uint32_t n, const struct device_activations *x, uint32_t n_rows)
{
    const struct multiply_step step = pass_products(pass, products, n, x, n_rows);
    return pass_takes_library(pass, &step)
               ? library_products_multiply(pass->large, queue, products, n, x, &step)
               : kernels_multiply(queue, products, n, x, &step);
}

/* Of a feed-forward half with experts beside a plain one: what the latter gave, and the norms of both. */
static void add_beside(const struct pass *pass, uint32_t layer, struct norm_step *step)
{
    const struct device_vector *vectors = pass->weights->layers[layer].vectors;
    step->beside = pass->workspace->experts.shared;
    step->delta_vector = vectors[TENSOR_EXPERT_POST_NORM];
    step->beside_vector = vectors[TENSOR_PLAIN_POST_NORM];
}

struct norm_step pass_norm_between(const struct pass *pass, const struct pass_between *between)
{
    const struct workspace *workspace = pass->workspace;
    struct norm_step step = {.stream = workspace->stream,
                             .stride = workspace->embd_stride,
                             .n_columns = pass->model->params.n_embd,
                             .norm = *between->norm,
                             .vector = *between->vector,
                             .residual_scale = 1,
                             .outputs = between->outputs,
                             .out = workspace->normed};
    if (between->before >= 0) {
        const uint32_t l = (uint32_t)between->before;
        const struct layer_traits *traits = &pass->model->layers[l].traits;
        const struct device_vector *vectors = pass->weights->layers[l].vectors;
        step.delta = workspace->delta;
        step.post_norm = traits->norm;
        step.post_vector = vectors[between->post_norm];
        step.residual_scale = traits->residual_scale;
        if (between->post_norm == TENSOR_FFN_POST_NORM && traits->experts.beside)
            add_beside(pass, l, &step);
        if (between->post_norm == pass_last_norm(traits))
            step.stream_scale = vectors[TENSOR_STREAM_SCALE].weight;
    }
    step.norm.offset = step.post_norm.offset = 0; /* the vectors have it */
    return step;
}

struct pass_between pass_next_layer(const struct pass *pass, uint32_t l)
{
    return (struct pass_between){.norm = &pass->model->layers[l + 1].traits.norm,
                                 .vector = &pass->weights->layers[l + 1].vectors[TENSOR_ATTENTION_NORM],
                                 .before = (int)l,
                                 .post_norm = pass_last_norm(&pass->model->layers[l].traits)};
}

int pass_end_part(const struct pass *pass, struct device_stream *queue, const struct device_matrix *matrix,
                  const struct device_activations *x, const struct pass_between *next, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_product product = {matrix, w->delta, w->embd_stride};
    const struct norm_step norm = pass_norm_between(pass, next);
    const struct multiply_step step = pass_products(pass, &product, 1, x, n_rows);
    pass_expect_weights(queue, &matrix, 1, 1);
    if (pass_takes_library(pass, &step)) {
        int r = pass_multiply(pass, queue, &product, 1, x, n_rows);
        return r < 0 ? r : kernels_norm(queue, &norm, n_rows);
    }
    return kernels_multiply_norm(queue, &product, x, &step, &norm, w->tickets);
}
