/* SPDX-License-Identifier: MIT */
/* What layers get of each token by themselves: the projection, what is made of it, and a layer's gate. A
 * layer's last product and what it does to the stream are inspected like those of halves. */

#include "cuda/check/inspect_parts.h"

#include <math.h>
#include <string.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/reference.h"

int inspect_projection(struct inspection *look)
{
    static const struct model_tensor as_it_is;
    const struct input_workspace *inputs = &look->pass->workspace->inputs;
    int r = inspect_norm(look, "norm", 0, &look->model->output_norm, &as_it_is);
    if (r == 0)
        r = inspect_bring_rows(look, inputs->projected, inputs->projected_stride * sizeof(float),
                               look->projected);
    return r < 0 ? r
                 : inspect_product(look, "multiply", &look->model->tensors[TENSOR_LAYER_PROJECTION],
                                   &look->normed, look->projected, inputs->projected_stride);
}

/* Picked row i: the part of each layer. The token's row is read anew, for norms use the same scratch. */
static int check_row(struct inspection *look, uint32_t i)
{
    const struct input_workspace *inputs = &look->pass->workspace->inputs;
    const struct model *model = look->model;
    const struct model_tensor *table = &model->tensors[TENSOR_LAYER_EMBEDDING];
    const struct inspect_site site = {"layer_inputs", table, 0, look->picked[i], OFF_ROW};
    const uint32_t n = model->params.n_layer_embd;
    int r = 0;
    for (uint32_t l = 0; l < model->params.n_layers && r == 0; l++) {
        const float *projected = look->projected + (size_t)i * inputs->projected_stride + (size_t)l * n;
        for (uint32_t k = 0; k < n; k++)
            look->more[k] = (double)projected[k] / sqrt(model->params.n_embd);
        reference_norm(&model->output_norm, &model->tensors[TENSOR_LAYER_PROJECTION_NORM], look->more, n,
                       look->weights, look->more);
        reference_row_of(table, (uint32_t)look->ids[look->picked[i]], look->weights);
        for (uint32_t k = 0; k < n; k++)
            look->expected[k] =
                (look->more[k] + sqrt(n) * (double)look->weights[(size_t)l * n + k]) * M_SQRT1_2;
        r = inspect_compare(look, &site, look->inputs + (size_t)i * inputs->stride + (size_t)l * inputs->part,
                            look->expected, n);
    }
    return r;
}

int inspect_inputs(struct inspection *look)
{
    const struct input_workspace *inputs = &look->pass->workspace->inputs;
    int r = inspect_bring_rows(look, inputs->values, inputs->stride * sizeof(float), look->inputs);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++)
        r = check_row(look, i);
    return r;
}

int inspect_input(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct layer_traits *traits = &look->model->layers[layer].traits;
    int r = inspect_bring_rows(look, w->gate, w->ff_stride * sizeof(float), look->gate);
    if (r == 0)
        r = inspect_layer_product(look, "multiply", layer, TENSOR_INPUT_GATE, &look->normed, look->gate,
                                  w->ff_stride);
    if (r == 0)
        r = inspect_bring_activations(look, &w->activated, &look->activated);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        memcpy(look->up + (size_t)i * w->ff_stride,
               look->inputs + (size_t)i * w->inputs.stride + (size_t)layer * w->inputs.part,
               traits->n_layer_embd * sizeof *look->up);
        r = inspect_activated_row(look, "activate", layer, i, look->gate, look->up, &look->activated,
                                  traits->n_layer_embd);
    }
    return r;
}
