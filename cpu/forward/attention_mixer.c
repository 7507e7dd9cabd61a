/* SPDX-License-Identifier: MIT */
/* The mixer of a layer that attends:
 *
 *   rows: (stream += delta;) norm, round  →  weights: q k v, gate  →  rows: norm and turn heads, store in the
 *   cache  →  tasks: attention  →  rows: gate, round  →  weights: output projection = delta */

#include "cpu/forward/attention_mixer.h"

#include <math.h>
#include <string.h>

#include "cpu/forward/phases.h"

static void norm_heads(const struct forward *forward, enum qk_norm kind, const struct norm *norm,
                       const struct vector *vector, float *heads, uint32_t n_heads, uint32_t dim)
{
    switch (kind) {
    case QK_NORM_NONE:
        return;
    case QK_NORM_HEADS:
        for (uint32_t h = 0; h < n_heads; h++, heads += dim)
            phases_normalize(forward->kernels, norm, vector, heads, dim, heads);
        return;
    case QK_NORM_ALL:
        phases_normalize(forward->kernels, norm, vector, heads, n_heads * dim, heads);
        return;
    }
}

/* A row's values: those of their own product, or keys before anything is done to them; each head normed by
 * itself, without weights, where the layer does that. */
static const float *finish_values(const struct forward *forward, const struct layer_traits *traits,
                                  uint32_t row, const float *keys)
{
    const struct vector ones = {.weight = forward->ones};
    const struct head_shape *heads = &traits->heads;
    float *values = forward->v + (size_t)row * forward->v_stride;
    if (traits->values_are_keys)
        memcpy(values, keys, (size_t)heads->n_kv * heads->dim * sizeof *values);
    if (traits->value_norm)
        norm_heads(forward, QK_NORM_HEADS, &traits->norm, &ones, values, heads->n_kv, heads->dim);
    return values;
}

/* What queries at a position are multiplied by. In double: the logarithm is small. */
static float query_scale(const struct layer_traits *traits, uint32_t position)
{
    const struct query_growth *growth = &traits->query_growth;
    if (growth->factor == 0)
        return traits->attention_scale;
    return (float)((double)traits->attention_scale *
                   (1 + (double)growth->factor * log(1 + (double)(position / growth->span))));
}

static void finish_queries(const struct forward *forward, uint32_t row, uint32_t l)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct rotation *rotation = &forward->rotations[forward->rotation_of[l]];
    const struct head_shape *heads = &traits->heads;
    float *q = forward->q + (size_t)row * forward->q_stride;
    norm_heads(forward, traits->qk_norm, &traits->norm, &forward->weights->layers[l].vectors[TENSOR_Q_NORM],
               q, heads->n, heads->dim);
    rotary_turn(&rotation->rotary, q, heads->n, heads->dim,
                rotation->cos_sin + (size_t)row * rotation->rotary.dims);
    phases_scale(q, heads->n * heads->dim, query_scale(traits, forward->pass->rows[row].position));
}

static void store_keys(const struct forward *forward, uint32_t row, uint32_t l)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct rotation *rotation = &forward->rotations[forward->rotation_of[l]];
    const struct forward_row *r = &forward->pass->rows[row];
    const struct head_shape *heads = &traits->heads;
    float *k = forward->k + (size_t)row * forward->k_stride;
    const float *v = finish_values(forward, traits, row, k);
    norm_heads(forward, traits->qk_norm, &traits->norm, &forward->weights->layers[l].vectors[TENSOR_K_NORM],
               k, heads->n_kv, heads->dim);
    rotary_turn(&rotation->rotary, k, heads->n_kv, heads->dim,
                rotation->cos_sin + (size_t)row * rotation->rotary.dims);
    const uint32_t *table = r->tables[forward->kv->layers[l].group];
    kv_store(forward->kv, forward->kernels, table[r->position / KERNELS_TOKENS], l,
             r->position % KERNELS_TOKENS, k, v);
}

static void end_attention(struct forward *forward, uint32_t index, uint32_t l)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t columns = traits->heads.n * traits->heads.dim, window = traits->window;
    struct backend_kernel *kernel = phases_end_noted(forward, index, "attention");
    for (uint32_t i = 0; kernel && i < forward->n_tasks; i++) {
        const struct attention_task *task = &forward->tasks[i];
        const uint32_t end = task->position + task->n_rows, seen = window && window < end ? window : end;
        kernel->bytes += seen * (uint64_t)forward->kv->layers[layer_kv_of(traits, l)].bytes / KERNELS_TOKENS;
        kernel->macs += 2ull * task->n_rows * seen * columns;
    }
}

/* What was attended to, times σ of the row's gate. */
static void gate_row(const struct forward *forward, const struct layer_traits *traits, uint32_t row)
{
    const struct activations *x = &forward->attended;
    const uint32_t n = traits->heads.n * traits->heads.dim;
    float *attended = x->values + (size_t)row * x->stride;
    if (traits->output_gate)
        forward->kernels->sigmoid(forward->output_gate + (size_t)row * forward->output_gate_stride, attended,
                                  (n + 7) / 8 * 8, attended);
    phases_finish_attended(forward, row, n);
}

static void attend(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t group = traits->heads.n / traits->heads.n_kv, n_kv_heads = traits->heads.n_kv;
    const struct attention attention = {.kv = forward->kv,
                                        .kernels = forward->kernels,
                                        .layer = layer_kv_of(traits, l),
                                        .group = group,
                                        .window = traits->window,
                                        .cap = traits->attention_cap,
                                        .sinks = forward->weights->layers[l].vectors[TENSOR_SINKS].weight};
    const uint32_t together =
        attention_heads_together(group, forward->n_tasks * n_kv_heads, forward->n_threads);
    const uint32_t n_parts = (group + together - 1) / together, n_each = n_kv_heads * n_parts;
    uint32_t i, end;
    while (threads_claim(forward->threads, forward->n_tasks * n_each, 1, &i, &end)) {
        const uint32_t part = i % n_parts * together, left = group - part;
        attention_run(&attention, &forward->tasks[i / n_each], i % n_each / n_parts * group + part,
                      left < together ? left : together, forward->attention_scratch[index]);
    }
    end_attention(forward, index, l);
}

/* What is multiplied with the normed rows. */
static uint32_t list_inputs(const struct forward *forward, uint32_t l, struct product ret_inputs[4])
{
    const struct matrix *matrices = forward->weights->layers[l].matrices;
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t rows = forward->pass->n_rows;
    uint32_t n = 0;
    ret_inputs[n++] = (struct product){&matrices[TENSOR_Q], forward->q, forward->q_stride, rows, 0, 0};
    if (!traits->borrows_kv)
        ret_inputs[n++] = (struct product){&matrices[TENSOR_K], forward->k, forward->k_stride, rows, 0, 0};
    if (!traits->borrows_kv && !traits->values_are_keys)
        ret_inputs[n++] = (struct product){&matrices[TENSOR_V], forward->v, forward->v_stride, rows, 0, 0};
    if (traits->output_gate)
        ret_inputs[n++] = (struct product){
            &matrices[TENSOR_OUTPUT_GATE], forward->output_gate, forward->output_gate_stride, rows, 0, 0};
    return n;
}

void attention_mixer(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            if (l > 0)
                phases_end_layer(forward, l - 1, i);
            phases_norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_ATTENTION_NORM], i);
        }
    phases_end(forward, index, "norm");

    struct product inputs[4];
    const uint32_t n_inputs = list_inputs(forward, l, inputs);
    multiplier_share(&forward->multiplier, inputs, n_inputs, &forward->normed, index);
    phases_end_products(forward, index, "q k v", inputs, n_inputs);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            finish_queries(forward, i, l);
            if (!traits->borrows_kv)
                store_keys(forward, i, l);
        }
    phases_end(forward, index, "heads");
    attend(forward, l, index);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++)
            gate_row(forward, traits, i);
    phases_end(forward, index, "round");

    const struct product output = {
        &layer->matrices[TENSOR_ATTENTION_OUTPUT], forward->delta, forward->embd_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->attended, index);
    phases_end_products(forward, index, "output", &output, 1);
}
