/* SPDX-License-Identifier: MIT */
/* The mixer of a layer with a gated delta net (struct delta_net in model/description.h), five launches:
 *
 *   → q k v → gate, beta, alpha → convolution, unit vectors, β and α → recurrence → norm of heads and gate
 *
 * The recurrence takes sets, not rows: each of a step goes on from the state of its slot. Only the recurrence
 * writes states, after all rows of the launch before have read them. */

#include "cuda/host/pass_parts.h"

static struct delta_step step_of(const struct pass *pass, uint32_t l)
{
    const struct workspace *w = pass->workspace;
    const struct delta_workspace *deltas = &w->deltas;
    const struct device_layer *layer = &pass->weights->layers[l];
    return (struct delta_step){.net = pass->model->layers[l].traits.delta,
                               .q = w->q,
                               .k = w->k,
                               .v = w->v,
                               .taps = layer->vectors[TENSOR_TAPS].weight,
                               .step_bias = layer->vectors[TENSOR_STEP_BIAS].weight,
                               .rates = layer->vectors[TENSOR_DECAY].weight,
                               .betas = deltas->betas,
                               .decays = deltas->decays,
                               .queries = deltas->queries,
                               .keys = deltas->keys,
                               .values = deltas->values,
                               .q_stride = w->q_stride,
                               .kv_stride = w->kv_stride,
                               .gate_stride = deltas->gate_stride,
                               .key_stride = deltas->key_stride,
                               .value_stride = deltas->value_stride,
                               .states = pass->states->pool,
                               .offset = pass->states->offsets[l]};
}

/* All of them read the same rows, three at a time. */
static int multiply(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_matrix *m = pass->weights->layers[l].matrices;
    const struct device_product products[] = {{&m[TENSOR_Q], w->q, w->q_stride},
                                              {&m[TENSOR_K], w->k, w->kv_stride},
                                              {&m[TENSOR_V], w->v, w->kv_stride},
                                              {&m[TENSOR_OUTPUT_GATE], w->output_gate, w->attended.stride},
                                              {&m[TENSOR_BETA], w->deltas.betas, w->deltas.gate_stride},
                                              {&m[TENSOR_ALPHA], w->deltas.decays, w->deltas.gate_stride}};
    int r = 0;
    for (uint32_t i = 0; i < 6 && r == 0; i += KERNELS_PRODUCTS) {
        const struct device_matrix *const matrices[] = {products[i].matrix, products[i + 1].matrix,
                                                        products[i + 2].matrix};
        pass_expect_weights(queue, matrices, KERNELS_PRODUCTS, 1);
        r = pass_multiply(pass, queue, products + i, KERNELS_PRODUCTS, &w->normed, n_rows);
    }
    return r;
}

int pass_delta_net(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    _Static_assert(KERNELS_PRODUCTS == 3, "six products are two launches");
    const struct workspace *w = pass->workspace;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct delta_step step = step_of(pass, l);
    const struct delta_gate_step gate = {.heads = w->deltas.values,
                                         .gate = w->output_gate,
                                         .stride = w->deltas.value_stride,
                                         .gate_stride = w->attended.stride,
                                         .n_heads = traits->delta.n_value_heads,
                                         .dim = traits->delta.value_dim,
                                         .weight = pass->weights->layers[l].vectors[TENSOR_DELTA_NORM].weight,
                                         .epsilon = traits->norm.epsilon,
                                         .out = w->attended};
    const uint32_t n_sets = pass->most_sets > 0 ? pass->most_sets : n_rows;
    int r = pass_seen(pass, multiply(pass, queue, l, n_rows), PASS_QKV, l);
    if (r == 0)
        r = pass_seen(pass, kernels_delta_prepare(queue, &step, &pass->memory, n_rows), PASS_DELTA_ROWS, l);
    device_expect(queue, n_sets * kernels_delta_numbers(&traits->delta) * sizeof(float));
    if (r == 0)
        r = pass_seen(pass, kernels_delta_rule(queue, &step, &pass->memory, n_sets), PASS_DELTA_RULE, l);
    return r < 0 ? r : pass_seen(pass, kernels_delta_gate(queue, &gate, n_rows), PASS_ATTENTION, l);
}
