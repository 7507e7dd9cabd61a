/* SPDX-License-Identifier: MIT */
/* The layers' own embeddings, of models that have them (model/description.h). Before the first layer
 *
 *   stream as it is → projection → norm of each layer's part, and its part of the token's row
 *
 * and behind a layer's feed-forward half, whose last norm leaves the stream as it is:
 *
 *   → gate → activation times what the layer gets → projection = delta and norm of the next layer
 *
 * The first product, of which there is one a step, is never a library's. */

#include "cuda/host/pass_parts.h"

#include <math.h>

static int project(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    static const struct device_vector none = {NULL, NULL};
    const struct workspace *w = pass->workspace;
    const struct pass_between as_it_is = {.norm = &pass->model->output_norm, .vector = &none, .before = -1};
    const struct norm_step copy = pass_norm_between(pass, &as_it_is);
    const struct device_product projection = {&pass->weights->layer_projection, w->inputs.projected,
                                              w->inputs.projected_stride};
    const struct multiply_step step = pass_products(pass, &projection, 1, &w->normed, n_rows);
    int r = kernels_norm(queue, &copy, n_rows);
    pass_expect_weights(queue, &projection.matrix, 1, 1);
    if (r == 0)
        r = kernels_multiply(queue, &projection, 1, &w->normed, &step);
    return pass_seen(pass, r, PASS_PROJECT, 0);
}

int pass_make_inputs(const struct pass *pass, struct device_stream *queue, uint32_t n_rows)
{
    const struct model_params *params = &pass->model->params;
    const struct input_workspace *inputs = &pass->workspace->inputs;
    struct layer_inputs_step step = {.table = &pass->weights->layer_embedding,
                                     .projected = inputs->projected,
                                     .projected_stride = inputs->projected_stride,
                                     .n_layers = params->n_layers,
                                     .n = params->n_layer_embd,
                                     .factor = 1 / sqrtf((float)params->n_embd),
                                     .norm = pass->model->output_norm,
                                     .vector = pass->weights->layer_projection_norm,
                                     .out = inputs->values,
                                     .stride = inputs->stride,
                                     .part = inputs->part};
    int r = project(pass, queue, n_rows);
    step.norm.offset = 0; /* the vector has it */
    return r < 0 ? r
                 : pass_seen(pass, kernels_layer_inputs(queue, &step, pass->memory.rows, n_rows), PASS_INPUTS,
                             0);
}

static int activate(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_product gate = {&pass->weights->layers[l].matrices[TENSOR_INPUT_GATE], w->gate,
                                        w->ff_stride};
    const struct activate_step activate = {.activation = traits->activation,
                                           .gate = w->gate,
                                           .up = w->inputs.values + (size_t)l * w->inputs.part,
                                           .stride = w->ff_stride,
                                           .up_stride = w->inputs.stride,
                                           .n_columns = traits->n_layer_embd,
                                           .out = w->activated};
    pass_expect_weights(queue, &gate.matrix, 1, 1);
    int r = pass_multiply(pass, queue, &gate, 1, &w->normed, n_rows);
    if (r == 0)
        r = kernels_activate(queue, &activate, n_rows);
    return pass_seen(pass, r, PASS_INPUT, l);
}

int pass_add_input(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_product projection = {&pass->weights->layers[l].matrices[TENSOR_INPUT_PROJECTION],
                                              w->delta, w->embd_stride};
    int r = activate(pass, queue, l, n_rows);
    if (r == 0 && l + 1 == pass->model->params.n_layers) {
        pass_expect_weights(queue, &projection.matrix, 1, 1);
        r = pass_multiply(pass, queue, &projection, 1, &w->activated, n_rows);
    } else if (r == 0) {
        const struct pass_between next = pass_next_layer(pass, l);
        r = pass_end_part(pass, queue, projection.matrix, &w->activated, &next, n_rows);
    }
    return pass_seen(pass, r, PASS_INPUT_END, l);
}
