/* SPDX-License-Identifier: MIT */
/* The mixer of a layer with a gated delta net (struct delta_net in model/description.h):
 *
 *   rows: (stream += delta;) norm, round  →  weights: q k v, gate, beta, alpha
 *   →  rows: convolution, unit vectors, betas and decays  →  runs and value heads: the recurrence
 *   →  rows: norm of each head, gate, round  →  weights: output projection = delta
 *
 * The recurrence goes from row to row, in prefill as in decode: a state is the same bits however a prompt is
 * cut. The convolution of a row reads those before it in the pass, or in the state, where nothing is written
 * before all have done so: the state's tail is brought up to date by the phase of the recurrence. */

#include "cpu/forward/delta_mixer.h"

#include <math.h>
#include <string.h>

#include "cpu/forward/phases.h"

/* Of the layer that runs. */
struct layer {
    const struct delta_net *net;
    struct delta_widths widths;
    const struct weights_layer *weights;
    float epsilon; /* of the norm of heads */
    size_t state;  /* where its part of a state begins */
};

static struct layer layer_of(const struct forward *forward, uint32_t l)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    return (struct layer){.net = &traits->delta,
                          .widths = delta_widths_of(&traits->delta),
                          .weights = &forward->weights->layers[l],
                          .epsilon = traits->norm.epsilon,
                          .state = forward->states->offsets[l]};
}

/* ---- before the recurrence ---- */

/* A part of what the convolution sees: queries, keys or values. */
struct part {
    const float *rows; /* [rows][stride] of the pass */
    size_t stride;
    uint32_t offset, width; /* in a row of the tail, of the taps, and of what comes out */
};

static struct part part_of(const struct forward *forward, const struct delta_widths *w, uint32_t i)
{
    const struct part parts[] = {
        {forward->q, forward->q_stride, 0, w->queries},
        {forward->k, forward->k_stride, w->queries, w->keys},
        {forward->v, forward->v_stride, w->queries + w->keys, w->values},
    };
    return parts[i];
}

/* What a row of the sequence was before the convolution: of this pass, or from before it. `at` counts from
 * the first row of the run. */
static const float *row_before(const struct layer *layer, const struct forward_run *run,
                               const struct part *part, int64_t at)
{
    if (at >= 0)
        return part->rows + (run->first_row + (size_t)at) * part->stride;
    const size_t from_oldest = (size_t)(at + layer->net->n_taps - 1);
    return run->state + layer->state + from_oldest * layer->widths.row + part->offset;
}

/* What comes out of the convolution at a row, [queries, keys, values] as the tail has them. */
static void convolve_row(const struct forward *forward, const struct layer *layer,
                         const struct forward_run *run, uint32_t row, float *out)
{
    const uint32_t n_taps = layer->net->n_taps;
    const struct vector *taps = &layer->weights->vectors[TENSOR_TAPS];
    const float *rows[DELTA_MIXER_MOST_TAPS];
    for (uint32_t i = 0; i < 3; i++) {
        const struct part part = part_of(forward, &layer->widths, i);
        for (uint32_t t = 0; t < n_taps; t++)
            rows[t] = row_before(layer, run, &part, (int64_t)row - run->first_row + t + 1 - n_taps);
        forward->kernels->convolve(rows, taps->weight + part.offset, n_taps, layer->widths.row, part.width,
                                   out + part.offset);
    }
    forward->kernels->activate[ACTIVATION_SILU](out, NULL, layer->widths.row, out);
}

/* How much the states decay and the row counts, by head. In double: decays near 1 are raised to the power of
 * the length. */
static void make_gates(const struct forward *forward, const struct layer *layer, uint32_t row)
{
    const struct delta_workspace *work = &forward->delta_work;
    float *betas = work->betas + (size_t)row * work->head_stride;
    float *decays = work->decays + (size_t)row * work->head_stride;
    const float *bias = layer->weights->vectors[TENSOR_STEP_BIAS].weight;
    const float *rate = layer->weights->vectors[TENSOR_DECAY].weight;
    for (uint32_t h = 0; h < layer->net->n_value_heads; h++) {
        const double x = (double)decays[h] + (double)bias[h];
        const double softplus = x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
        decays[h] = (float)exp((double)rate[h] * softplus);
        betas[h] = (float)(1 / (1 + exp(-(double)betas[h])));
    }
}

static void prepare_row(const struct forward *forward, const struct layer *layer,
                        const struct forward_run *run, uint32_t row, float *scratch)
{
    const struct delta_workspace *work = &forward->delta_work;
    const struct delta_net *net = layer->net;
    const struct delta_widths *w = &layer->widths;
    float *queries = work->queries + (size_t)row * work->key_stride;
    float *keys = work->keys + (size_t)row * work->key_stride;
    float *values = work->values + (size_t)row * work->value_stride;
    convolve_row(forward, layer, run, row, scratch);
    for (uint32_t h = 0; h < net->n_key_heads; h++) {
        const float *q = scratch + (size_t)h * net->key_dim, *k = q + w->queries;
        forward->kernels->unit(q, net->key_dim, DELTA_NET_EPSILON, 1 / sqrtf((float)net->key_dim),
                               queries + (size_t)h * w->key_dim);
        forward->kernels->unit(k, net->key_dim, DELTA_NET_EPSILON, 1, keys + (size_t)h * w->key_dim);
    }
    memset(values, 0, net->n_value_heads * (size_t)w->value_dim * sizeof *values);
    for (uint32_t h = 0; h < net->n_value_heads; h++)
        memcpy(values + (size_t)h * w->value_dim, scratch + w->queries + w->keys + (size_t)h * net->value_dim,
               net->value_dim * sizeof *values);
    make_gates(forward, layer, row);
}

static void prepare(struct forward *forward, const struct layer *layer, uint32_t index)
{
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, forward->pass->n_rows, &i, &end))
        for (uint32_t r = 0; i < end; i++) {
            while (i >= forward->runs[r].first_row + forward->runs[r].n_rows)
                r++;
            prepare_row(forward, layer, &forward->runs[r], i, forward->delta_work.scratch[index]);
        }
    phases_end(forward, index, "convolution");
}

/* ---- the recurrence ---- */

/* Rows first … end − 1 of a run through one value head. What they give takes the place of their values. */
static void run_rows(const struct forward *forward, const struct layer *layer, const struct forward_run *run,
                     uint32_t head, uint32_t first, uint32_t end)
{
    const struct delta_workspace *work = &forward->delta_work;
    const struct delta_widths *w = &layer->widths;
    const size_t key = (size_t)delta_net_key_head(layer->net, head) * w->key_dim,
                 row = run->first_row + first;
    float *state = run->state + layer->state + w->tail + head * w->head;
    const struct delta_rows rows = {.queries = work->queries + row * work->key_stride + key,
                                    .keys = work->keys + row * work->key_stride + key,
                                    .values =
                                        work->values + row * work->value_stride + (size_t)head * w->value_dim,
                                    .decays = work->decays + row * work->head_stride + head,
                                    .betas = work->betas + row * work->head_stride + head,
                                    .key_stride = work->key_stride,
                                    .value_stride = work->value_stride,
                                    .gate_stride = work->head_stride,
                                    .n = end - first,
                                    .key_dim = w->key_dim,
                                    .value_dim = w->value_dim};
    if (rows.n > 0)
        forward->kernels->delta_rule(&rows, state);
}

static void run_head(const struct forward *forward, const struct layer *layer, const struct forward_run *run,
                     uint32_t head)
{
    const size_t at = layer->state + layer->widths.tail + head * layer->widths.head;
    const uint32_t n_before = run->snapshot ? run->n_before : 0;
    if (run->snapshot) {
        run_rows(forward, layer, run, head, 0, n_before);
        memcpy(run->snapshot + at, run->state + at, layer->widths.head * sizeof *run->state);
    }
    if (n_before < run->n_rows)
        run_rows(forward, layer, run, head, n_before, run->n_rows);
}

/* The tail behind the first n rows of a run goes to a state, be it the run's own: what stays of it then moves
 * to the front, from the oldest on. */
static void write_tail(const struct forward *forward, const struct layer *layer,
                       const struct forward_run *run, uint32_t n, float *state)
{
    const int64_t n_tail = layer->net->n_taps - 1;
    for (int64_t t = 0; t < n_tail; t++)
        for (uint32_t i = 0; i < 3; i++) {
            const struct part part = part_of(forward, &layer->widths, i);
            float *to = state + layer->state + (size_t)t * layer->widths.row + part.offset;
            memmove(to, row_before(layer, run, &part, n + t - n_tail), part.width * sizeof *to);
        }
}

static void move_tail(const struct forward *forward, const struct layer *layer, const struct forward_run *run)
{
    if (run->snapshot)
        write_tail(forward, layer, run, run->n_before, run->snapshot);
    write_tail(forward, layer, run, run->n_rows, run->state);
}

static void recur(struct forward *forward, const struct layer *layer, uint32_t index)
{
    const uint32_t n_heads = layer->net->n_value_heads;
    uint32_t i, end;
    while (threads_claim(forward->threads, forward->n_runs * (n_heads + 1), 1, &i, &end)) {
        const struct forward_run *run = &forward->runs[i / (n_heads + 1)];
        if (i % (n_heads + 1) < n_heads)
            run_head(forward, layer, run, i % (n_heads + 1));
        else
            move_tail(forward, layer, run);
    }
    struct backend_kernel *kernel = phases_end_noted(forward, index, "delta rule");
    if (kernel)
        kernel->macs += 3ull * forward->pass->n_rows * n_heads * layer->widths.head;
}

/* ---- behind it ---- */

/* Each head normed, times SiLU of its gate. A head whose length is no multiple of eight writes beyond its
 * end, where the next one's numbers come. */
static void gate_row(const struct forward *forward, const struct layer *layer, uint32_t row)
{
    const struct delta_net *net = layer->net;
    const struct activations *x = &forward->attended;
    const float *norm = layer->weights->vectors[TENSOR_DELTA_NORM].weight;
    const float *gate = forward->output_gate + (size_t)row * forward->output_gate_stride;
    float *heads = forward->delta_work.values + (size_t)row * forward->delta_work.value_stride;
    float *out = x->values + (size_t)row * x->stride;
    for (uint32_t h = 0; h < net->n_value_heads; h++) {
        float *head = heads + (size_t)h * layer->widths.value_dim;
        const size_t at = (size_t)h * net->value_dim;
        forward->kernels->rms_norm(head, norm, net->value_dim, layer->epsilon, head);
        forward->kernels->activate[ACTIVATION_SILU](gate + at, head, layer->widths.value_dim, out + at);
    }
    phases_finish_attended(forward, row, net->n_value_heads * net->value_dim);
}

void delta_mixer(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct layer layer = layer_of(forward, l);
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct matrix *matrices = layer.weights->matrices;
    const struct delta_workspace *work = &forward->delta_work;
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            if (l > 0)
                phases_end_layer(forward, l - 1, i);
            phases_norm_row(forward, i, &traits->norm, &layer.weights->vectors[TENSOR_ATTENTION_NORM], i);
        }
    phases_end(forward, index, "norm");

    const struct product inputs[] = {
        {&matrices[TENSOR_Q], forward->q, forward->q_stride, n, 0, 0},
        {&matrices[TENSOR_K], forward->k, forward->k_stride, n, 0, 0},
        {&matrices[TENSOR_V], forward->v, forward->v_stride, n, 0, 0},
        {&matrices[TENSOR_OUTPUT_GATE], forward->output_gate, forward->output_gate_stride, n, 0, 0},
        {&matrices[TENSOR_BETA], work->betas, work->head_stride, n, 0, 0},
        {&matrices[TENSOR_ALPHA], work->decays, work->head_stride, n, 0, 0}};
    multiplier_share(&forward->multiplier, inputs, 6, &forward->normed, index);
    phases_end_products(forward, index, "q k v gates", inputs, 6);

    prepare(forward, &layer, index);
    recur(forward, &layer, index);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++)
            gate_row(forward, &layer, i);
    phases_end(forward, index, "gate");

    const struct product output = {
        &matrices[TENSOR_DELTA_OUTPUT], forward->delta, forward->embd_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->attended, index);
    phases_end_products(forward, index, "output", &output, 1);
}
