/* SPDX-License-Identifier: MIT */
/* The layers' own embeddings, of models that have them (model/description.h says what is computed):
 *
 *   rows: round  →  weights: projection of the embedded rows
 *   →  rows: norm each layer's part, add its part of the token's row
 *
 * and of each layer, behind its feed-forward block:
 *
 *   rows: stream += delta; round  →  weights: gate
 *   →  rows: activation times what the layer gets  →  weights: projection = delta */

#include "cpu/forward/layer_inputs.h"

#include <math.h>
#include <string.h>

#include "cpu/forward/phases.h"

/* The parts of all layers of one row, of which the projection has been made; `embedded` is scratch for the
 * token's row. */
static void finish_row(const struct forward *forward, uint32_t row, float *embedded)
{
    const struct model_params *params = &forward->model->params;
    const uint32_t n = params->n_layer_embd;
    const float scale = sqrtf((float)n);
    float *inputs = forward->layer_inputs + (size_t)row * forward->layer_inputs_stride;
    table_read(&forward->weights->layer_embedding, (uint32_t)forward->pass->rows[row].id, embedded);
    phases_scale(inputs, n * params->n_layers, 1 / sqrtf((float)params->n_embd));
    for (uint32_t l = 0; l < params->n_layers; l++, inputs += n, embedded += n) {
        phases_normalize(forward->kernels, &forward->model->output_norm,
                         &forward->weights->layer_projection_norm, inputs, n, inputs);
        for (uint32_t i = 0; i < n; i++)
            inputs[i] = (inputs[i] + scale * embedded[i]) * (float)M_SQRT1_2;
    }
}

void layer_inputs_make(struct forward *forward, uint32_t index)
{
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++)
            phases_copy_row(forward, i);
    phases_end(forward, index, "round");

    const struct product projection = {
        &forward->weights->layer_projection, forward->layer_inputs, forward->layer_inputs_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &projection, 1, &forward->normed, index);
    phases_end_products(forward, index, "layer inputs", &projection, 1);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++)
            finish_row(forward, i, forward->attention_scratch[index]);
    phases_end(forward, index, "embed layers");
}

void layer_inputs_add(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct matrix *matrices = forward->weights->layers[l].matrices;
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows, n_numbers = traits->n_layer_embd;
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            phases_add_delta(forward, l, TENSOR_FFN_POST_NORM, i);
            phases_copy_row(forward, i);
        }
    phases_end(forward, index, "round");

    const struct product gate = {&matrices[TENSOR_INPUT_GATE], forward->gate, forward->ff_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &gate, 1, &forward->normed, index);
    phases_end_products(forward, index, "input gate", &gate, 1);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            memcpy(forward->up + (size_t)i * forward->ff_stride,
                   forward->layer_inputs + (size_t)i * forward->layer_inputs_stride + (size_t)l * n_numbers,
                   n_numbers * sizeof *forward->up);
            phases_activate_row(forward, traits, forward->gate, forward->up, &forward->activated, i,
                                n_numbers);
        }
    phases_end(forward, index, "activation");

    const struct product projection = {
        &matrices[TENSOR_INPUT_PROJECTION], forward->delta, forward->embd_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &projection, 1, &forward->activated, index);
}
