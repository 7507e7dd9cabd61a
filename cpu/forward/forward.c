/* SPDX-License-Identifier: MIT */
/* The pass: embedding, layers, head, as the model's description says (model/description.h).
 *
 * All threads run the same function and meet at a barrier after each phase; within a phase they claim rows,
 * groups of weight rows, or attention tasks. A phase reads what earlier phases wrote and writes what only its
 * own claims touch, so barriers are the only order there is:
 *
 *   rows: (stream += delta;) norm, round  →  mixer (attention_mixer.c, delta_mixer.c) = delta
 *   →  rows: stream += delta; norm, round  →  weights: gate, up  →  rows: activation, round  →  weights: down
 *
 * Where there are experts, what comes before gate and up and after down is
 *
 *   weights: router = scores, shared gate, up  →  (rows: activation  →  weights: shared down = delta  →)
 *   rows: choose  →  one thread: group assignments  →  places: gather  →  …
 *   …  →  rows: combine = delta
 *
 * Logits are made for at most FORWARD_LOGITS rows at a time and handed out before the next ones. */

#include "cpu/forward/forward.h"

#include <errno.h>

#include "common/clock.h"
#include "cpu/forward/attention_mixer.h"
#include "cpu/forward/delta_mixer.h"
#include "cpu/forward/feed_forward.h"
#include "cpu/forward/layer_inputs.h"
#include "cpu/forward/phases.h"
#include "model/traits.h"

/* Rows times bytes of weights below which one thread is faster than several that meet at barriers: some
 * hundred microseconds of work. Who computes an output does not change it. */
#define SMALL_PASS ((uint64_t)8 << 20)

/* Columns of one sequence's sums that a thread adds at once. */
#define SUM_COLUMNS 64

/* What this pass does not execute: of all traits that there are. */
#define MISSING 0
TRAITS_ARE_KNOWN(33);

int forward_check(const struct model *model, uint32_t n_context, struct error *err)
{
    if (model->tensors[TENSOR_POSITIONS].weight && n_context > model->params.n_context)
        return error_set(err, -EINVAL, "a context of %u exceeds the model's %u learned positions", n_context,
                         model->params.n_context);
    for (uint32_t l = 0; l < model->params.n_layers; l++)
        if (model->layers[l].traits.delta.n_taps > DELTA_MIXER_MOST_TAPS)
            return error_set(err, -EINVAL, "a convolution over %u rows exceeds the CPU backend's %d",
                             model->layers[l].traits.delta.n_taps, DELTA_MIXER_MOST_TAPS);
    return model_check_traits(model, MISSING, "the CPU backend", err);
}

static void embed_row(const struct forward *forward, uint32_t row)
{
    const struct model *model = forward->model;
    const struct table *positions = &forward->weights->positions;
    const struct forward_row *r = &forward->pass->rows[row];
    float *stream = forward->stream + (size_t)row * forward->embd_stride;
    float *delta = forward->delta + (size_t)row * forward->embd_stride; /* free as long as no layer has run */
    table_read(&forward->weights->embedding, (uint32_t)r->id, stream);
    phases_scale(stream, forward->embd_stride, model->params.embedding_scale);
    if (positions->tensor) {
        table_read(positions, r->position, delta);
        forward->kernels->add(stream, delta, forward->embd_stride);
    }
    for (uint32_t i = 0; i < forward->n_rotations; i++) {
        const struct rotation *rotation = &forward->rotations[i];
        rotary_angles(&rotation->rotary, rotation->frequencies, r->position,
                      rotation->cos_sin + (size_t)row * rotation->rotary.dims);
    }
}

static void finish_logits(const struct forward *forward, float *logits)
{
    const struct model_params *params = &forward->model->params;
    phases_scale(logits, params->n_vocab, params->logit_factor);
    if (params->logit_cap > 0)
        forward->kernels->soft_cap(logits, forward->vocab_stride, params->logit_cap);
}

/* The logits of segments first … end − 1, at most FORWARD_LOGITS rows in all. */
static void head(struct forward *forward, uint32_t first, uint32_t end, uint32_t index)
{
    const struct forward_pass *pass = forward->pass;
    uint32_t n = 0, i, stop;
    for (uint32_t s = first; s < end; s++)
        n += pass->segments[s].n_rows;
    while (threads_claim_own(forward->threads, index, n, &i, &stop))
        for (; i < stop; i++) {
            uint32_t s = first, row = i;
            while (row >= pass->segments[s].n_rows)
                row -= pass->segments[s++].n_rows;
            row += pass->segments[s].first_row;
            phases_end_layer(forward, forward->model->params.n_layers - 1, row);
            phases_norm_row(forward, row, &forward->model->output_norm, &forward->weights->output_norm, i);
        }
    phases_end(forward, index, "norm");

    const struct product output = {
        &forward->weights->output, forward->logits, forward->vocab_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->normed, index);
    phases_end_products(forward, index, "head", &output, 1);
    const uint64_t begun = index == 0 && forward->pass_begun > 0 ? clock_ns() : 0;

    /* One claim takes all neighbouring segments of one sequence, so that they come in order. */
    while (threads_claim(forward->threads, end - first, 1, &i, &stop)) {
        uint32_t s = first + i, row = 0;
        if (s > first && pass->segments[s].arg == pass->segments[s - 1].arg)
            continue;
        for (uint32_t before = first; before < s; before++)
            row += pass->segments[before].n_rows;
        void *arg = pass->segments[s].arg;
        for (; s < end && pass->segments[s].arg == arg; row += pass->segments[s++].n_rows) {
            float *logits = forward->logits + (size_t)row * forward->vocab_stride;
            for (uint32_t j = 0; j < pass->segments[s].n_rows; j++)
                finish_logits(forward, logits + (size_t)j * forward->vocab_stride);
            pass->take_logits(&pass->segments[s], logits, forward->vocab_stride, index);
        }
    }
    phases_end(forward, index, "sample");
    if (begun > 0)
        forward->sample_ns += clock_ns() - begun;
}

/* Adds the final states of rows. A row is normed by whoever claims it; then whoever claims a few columns of
 * a sequence adds them, from the first row to the last: which thread it is makes no difference to any sum. */
static void sum(struct forward *forward, uint32_t index)
{
    const struct forward_pass *pass = forward->pass;
    const uint32_t n_embd = forward->model->params.n_embd, n_parts = (n_embd + SUM_COLUMNS - 1) / SUM_COLUMNS;
    const struct activations *states = &forward->normed;
    uint32_t n = 0, i, stop;
    for (uint32_t s = 0; s < pass->n_sums; s++)
        n += pass->sums[s].n_rows;
    while (threads_claim_own(forward->threads, index, n, &i, &stop))
        for (; i < stop; i++) {
            uint32_t s = 0, row = i;
            while (row >= pass->sums[s].n_rows)
                row -= pass->sums[s++].n_rows;
            row += pass->sums[s].first_row;
            phases_end_layer(forward, forward->model->params.n_layers - 1, row);
            phases_normalize(forward->kernels, &forward->model->output_norm, &forward->weights->output_norm,
                             forward->stream + (size_t)row * forward->embd_stride, n_embd,
                             states->values + (size_t)row * states->stride);
        }
    phases_end(forward, index, "norm");

    while (threads_claim(forward->threads, pass->n_sums * n_parts, 1, &i, &stop)) {
        const struct forward_sum *sum = &pass->sums[i / n_parts];
        const uint32_t first = i % n_parts * SUM_COLUMNS;
        const uint32_t end = first + SUM_COLUMNS < n_embd ? first + SUM_COLUMNS : n_embd;
        for (uint32_t row = sum->first_row; row < sum->first_row + sum->n_rows; row++)
            for (uint32_t j = first; j < end; j++)
                sum->sums[j] += (double)states->values[(size_t)row * states->stride + j];
    }
    phases_end(forward, index, "sum");
}

static void mixer(struct forward *forward, uint32_t l, uint32_t index)
{
    switch (forward->model->layers[l].traits.mixer) {
    case MIXER_ATTENTION:
        attention_mixer(forward, l, index);
        break;
    case MIXER_DELTA:
        delta_mixer(forward, l, index);
        break;
    }
}

/* The last phase of a layer's feed-forward, or of what it gets behind that. */
static void end_part(struct forward *forward, uint32_t l, enum tensor_role last, uint32_t index)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const bool gets = last == TENSOR_INPUT_PROJECTION && traits->n_layer_embd > 0;
    const bool experts = !gets && traits->experts.n > 0;
    const struct product product = {
        &forward->weights->layers[l].matrices[gets ? TENSOR_INPUT_PROJECTION : TENSOR_DOWN],
        NULL,
        0,
        forward->pass->n_rows,
        0,
        0};
    phases_end_products(forward, index,
                        gets      ? "input projection"
                        : experts ? "combine"
                                  : "down",
                        &product, experts ? 0 : 1);
}

static void run(void *arg, uint32_t index)
{
    struct forward *forward = arg;
    const struct forward_pass *pass = forward->pass;
    uint32_t i, end;
    while (threads_claim_own(forward->threads, index, pass->n_rows, &i, &end))
        for (; i < end; i++)
            embed_row(forward, i);
    phases_end(forward, index, "embed");
    if (index == 0 && forward->pass_begun > 0)
        forward->embed_ns = clock_ns() - forward->pass_begun;
    if (forward->model->params.n_layer_embd > 0)
        layer_inputs_make(forward, index);

    for (uint32_t l = 0; l < forward->model->params.n_layers; l++) {
        mixer(forward, l, index);
        feed_forward(forward, l, index);
        if (forward->model->layers[l].traits.n_layer_embd > 0) {
            end_part(forward, l, TENSOR_DOWN, index);
            layer_inputs_add(forward, l, index);
        }
        if (index == 0 && pass->progress && pass->progress(pass->progress_arg))
            atomic_store(&forward->abandoned, true);
        end_part(forward, l, TENSOR_INPUT_PROJECTION, index);
        if (atomic_load(&forward->abandoned))
            return;
    }
    if (pass->n_sums > 0)
        sum(forward, index);
    for (uint32_t s = 0; s < pass->n_segments;) {
        uint32_t first = s, n = 0;
        while (s < pass->n_segments && n + pass->segments[s].n_rows <= FORWARD_LOGITS)
            n += pass->segments[s++].n_rows;
        head(forward, first, s, index);
    }
}

/* Cuts the rows into attention tasks: neighbours of one sequence, in tiles. */
static void plan_attention(struct forward *forward)
{
    const struct forward_pass *pass = forward->pass;
    forward->n_tasks = 0;
    for (uint32_t row = 0; row < pass->n_rows;) {
        uint32_t first = row;
        const struct forward_row *rows = pass->rows;
        do
            row++;
        while (row < pass->n_rows && row - first < ATTENTION_TILE && rows[row].tables == rows[first].tables &&
               rows[row].position == rows[row - 1].position + 1);
        forward->tasks[forward->n_tasks++] = (struct attention_task){
            .tables = rows[first].tables,
            .position = rows[first].position,
            .n_rows = row - first,
            .queries = forward->q + (size_t)first * forward->q_stride,
            .query_stride = forward->q_stride,
            .out = forward->attended.values + (size_t)first * forward->attended.stride,
            .out_stride = forward->attended.stride,
        };
    }
}

/* The rows of each sequence. */
static void plan_runs(struct forward *forward)
{
    const struct forward_pass *pass = forward->pass;
    forward->n_runs = 0;
    for (uint32_t row = 0; row < pass->n_rows && forward->runs;) {
        struct forward_run *run = &forward->runs[forward->n_runs++];
        *run = (struct forward_run){.first_row = row, .state = pass->rows[row].state};
        for (; row < pass->n_rows && pass->rows[row].state == run->state; row++)
            if (pass->rows[row].snapshot) {
                run->snapshot = pass->rows[row].snapshot;
                run->n_before = row + 1 - run->first_row;
            }
        run->n_rows = row - run->first_row;
    }
}

int forward_run(struct forward *forward, const struct forward_pass *pass)
{
    forward->pass = pass;
    forward->phase_begun = forward->profile ? clock_ns() : 0;
    forward->pass_begun = forward->timed ? clock_ns() : 0;
    forward->embed_ns = forward->sample_ns = 0;
    atomic_store(&forward->abandoned, false);
    bool small = pass->n_rows * (uint64_t)forward->weights->bytes < SMALL_PASS;
    forward->n_threads = small ? 1 : threads_count(forward->threads);
    plan_attention(forward);
    plan_runs(forward);
    (small ? threads_run_alone : threads_run)(forward->threads, run, forward);
    forward->pass = NULL;
    forward->pass_ns = forward->pass_begun > 0 ? clock_ns() - forward->pass_begun : 0;
    return atomic_load(&forward->abandoned) ? -ECANCELED : 0;
}
