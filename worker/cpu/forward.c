/* SPDX-License-Identifier: MIT */
/* The pass: embedding, layers, head.
 *
 * All threads run the same function and meet at a barrier after each phase; within a phase they claim rows,
 * groups of weight rows, or attention tasks. A phase reads what earlier phases wrote and writes what only its
 * own claims touch, so barriers are the only order there is:
 *
 *   rows: (stream += delta;) norm, round  →  weights: q k v  →  rows: turn, store in the cache
 *   →  tasks: attention  →  rows: round  →  weights: output projection = delta
 *   →  rows: stream += delta; norm, round  →  weights: gate, up  →  rows: silu · up, round  →  weights: down
 *
 * Logits are made for at most FORWARD_LOGITS rows at a time and handed out before the next ones. */

#include "worker/cpu/forward.h"

#include <errno.h>
#include <math.h>

/* Rows times bytes of weights below which one thread is faster than several that meet at barriers: some
 * hundred microseconds of work. Who computes an output does not change it. */
#define SMALL_PASS ((uint64_t)8 << 20)

static uint32_t padded(uint32_t n)
{
    return (n + KERNELS_BLOCK - 1) / KERNELS_BLOCK * KERNELS_BLOCK;
}

static int take_floats(struct memory *memory, size_t rows, size_t stride, float **ret_floats)
{
    void *floats;
    int r = memory_take(memory, rows * stride * sizeof(float), &floats);
    if (r == 0)
        *ret_floats = floats;
    return r;
}

static int take_activations(struct memory *memory, uint32_t rows, uint32_t stride, struct activations *x)
{
    void *quants, *half_sums;
    uint32_t blocks = stride / KERNELS_BLOCK;
    x->stride = stride;
    int r = take_floats(memory, rows, stride, &x->values);
    if (r == 0)
        r = take_floats(memory, rows, blocks, &x->scales);
    if (r == 0)
        r = take_floats(memory, rows, blocks, &x->sums);
    if (r == 0)
        r = memory_take(memory, (size_t)rows * stride, &quants);
    if (r == 0)
        r = memory_take(memory, (size_t)rows * blocks * 2 * sizeof(int16_t), &half_sums);
    if (r < 0)
        return r;
    x->quants = quants;
    x->half_sums = half_sums;
    return 0;
}

static int take_scratch(struct forward *forward, struct memory *memory, bool float_activations)
{
    uint32_t n = threads_count(forward->threads);
    const struct model_params *params = &forward->model->params;
    size_t columns = float_activations ? forward->weights->max_columns : 0;
    void *attention, *multiply;
    int r = memory_take(memory, n * sizeof(float *), &attention);
    if (r == 0)
        r = memory_take(memory, n * sizeof(float *), &multiply);
    if (r < 0)
        return r;
    forward->attention_scratch = attention;
    forward->multiplier.scratch = multiply;
    size_t floats = attention_scratch(forward->kv, params->n_heads / params->n_kv_heads);
    for (uint32_t i = 0; i < n && r == 0; i++) {
        r = take_floats(memory, 1, floats, &forward->attention_scratch[i]);
        if (r == 0)
            r = take_floats(memory, columns, KERNELS_ROWS, &forward->multiplier.scratch[i]);
    }
    return r;
}

static int take_workspace(struct forward *forward, struct memory *memory)
{
    const struct model_params *params = &forward->model->params;
    uint32_t rows = forward->max_rows;
    forward->embd_stride = padded(params->n_embd);
    forward->q_stride = padded(params->n_heads * params->head_dim);
    forward->kv_stride = padded(params->n_kv_heads * params->head_dim);
    forward->ff_stride = padded(params->n_ff);
    forward->vocab_stride = padded(params->n_vocab);
    const struct {
        float **floats;
        uint32_t rows, stride;
    } all[] = {
        {&forward->stream, rows, forward->embd_stride},
        {&forward->delta, rows, forward->embd_stride},
        {&forward->q, rows, forward->q_stride},
        {&forward->k, rows, forward->kv_stride},
        {&forward->v, rows, forward->kv_stride},
        {&forward->gate, rows, forward->ff_stride},
        {&forward->up, rows, forward->ff_stride},
        {&forward->cos_sin, rows, params->rope_dims},
        {&forward->logits, rows < FORWARD_LOGITS ? rows : FORWARD_LOGITS, forward->vocab_stride},
    };
    int r = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all && r == 0; i++)
        r = take_floats(memory, all[i].rows, all[i].stride, all[i].floats);
    if (r == 0)
        r = take_activations(memory, rows, forward->embd_stride, &forward->normed);
    if (r == 0)
        r = take_activations(memory, rows, forward->q_stride, &forward->attended);
    if (r == 0)
        r = take_activations(memory, rows, forward->ff_stride, &forward->gated);
    return r;
}

int forward_init(struct forward *forward, struct memory *memory, bool float_activations, struct error *err)
{
    const struct model_params *params = &forward->model->params;
    void *tasks, *frequencies;
    forward->multiplier = (struct multiplier){forward->kernels, forward->threads, float_activations, NULL};
    int r = take_workspace(forward, memory);
    if (r == 0)
        r = take_scratch(forward, memory, float_activations);
    if (r == 0)
        r = memory_take(memory, forward->max_rows * sizeof *forward->tasks, &tasks);
    if (r == 0)
        r = memory_take(memory, params->rope_dims / 2 * sizeof(double), &frequencies);
    if (r < 0)
        return error_set(err, r, "no memory for a workspace of %u rows", forward->max_rows);
    forward->tasks = tasks;
    forward->frequencies = frequencies;
    const struct gguf_tensor *factors = forward->model->rope_freqs;
    rope_frequencies(params, factors ? factors->data : NULL, forward->frequencies);
    return 0;
}

/* ---- phases over rows ---- */

static void round_row(const struct forward *forward, const struct activations *x, uint32_t row)
{
    if (forward->weights->any_quantized && !forward->multiplier.float_activations)
        forward->kernels->quantize(x, row);
}

static void norm_row(const struct forward *forward, uint32_t row, const float *weight, uint32_t to)
{
    const struct model_params *params = &forward->model->params;
    const struct activations *x = &forward->normed;
    forward->kernels->rms_norm(forward->stream + (size_t)row * forward->embd_stride, weight, params->n_embd,
                               params->rms_epsilon, x->values + (size_t)to * x->stride);
    round_row(forward, x, to);
}

static void add_delta(const struct forward *forward, uint32_t row)
{
    size_t at = (size_t)row * forward->embd_stride;
    forward->kernels->add(forward->stream + at, forward->delta + at, forward->embd_stride);
}

static void embed_row(const struct forward *forward, uint32_t row)
{
    const struct model *model = forward->model;
    const struct gguf_tensor *embd = model->token_embd;
    const struct forward_row *r = &forward->pass->rows[row];
    const uint8_t *from = (const uint8_t *)embd->data + (size_t)r->id * matrix_row_bytes(embd);
    format_traits(embd->format)
        ->to_float(from, forward->stream + (size_t)row * forward->embd_stride, embd->dims[0]);
    rope_angles(forward->frequencies, model->params.rope_dims / 2, r->position,
                forward->cos_sin + (size_t)row * model->params.rope_dims);
}

static void store_row(const struct forward *forward, uint32_t row, uint32_t layer)
{
    const struct model_params *params = &forward->model->params;
    const struct forward_row *r = &forward->pass->rows[row];
    float *q = forward->q + (size_t)row * forward->q_stride;
    float *k = forward->k + (size_t)row * forward->kv_stride;
    const float *v = forward->v + (size_t)row * forward->kv_stride;
    const float *cos_sin = forward->cos_sin + (size_t)row * params->rope_dims;
    rope_turn(q, params->n_heads, params->head_dim, cos_sin, params->rope_dims / 2);
    rope_turn(k, params->n_kv_heads, params->head_dim, cos_sin, params->rope_dims / 2);
    float scale = 1.0f / sqrtf((float)params->head_dim);
    for (uint32_t i = 0; i < params->n_heads * params->head_dim; i++)
        q[i] *= scale;
    kv_store(forward->kv, forward->kernels, r->table[r->position / KERNELS_TOKENS], layer,
             r->position % KERNELS_TOKENS, k, v);
}

static void gate_row(const struct forward *forward, uint32_t row)
{
    const struct activations *x = &forward->gated;
    size_t at = (size_t)row * forward->ff_stride;
    forward->kernels->silu_multiply(forward->gate + at, forward->up + at, forward->ff_stride, x->values + at);
    round_row(forward, x, row);
}

/* ---- the layers ---- */

static void attention_half(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const uint32_t n = forward->pass->n_rows, n_kv_heads = forward->kv->n_heads;
    uint32_t i, end;
    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        if (l > 0)
            add_delta(forward, i);
        norm_row(forward, i, layer->attn_norm, i);
    }
    threads_barrier(forward->threads);

    const struct product inputs[] = {{&layer->q, forward->q, forward->q_stride},
                                     {&layer->k, forward->k, forward->kv_stride},
                                     {&layer->v, forward->v, forward->kv_stride}};
    multiplier_share(&forward->multiplier, inputs, 3, &forward->normed, n, index);
    threads_barrier(forward->threads);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        store_row(forward, i, l);
    threads_barrier(forward->threads);

    while (threads_claim(forward->threads, forward->n_tasks * n_kv_heads, 1, &i, &end))
        attention_run(forward->kv, forward->kernels, &forward->tasks[i / n_kv_heads], l, i % n_kv_heads,
                      forward->model->params.n_heads / n_kv_heads, forward->attention_scratch[index]);
    threads_barrier(forward->threads);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        round_row(forward, &forward->attended, i);
    threads_barrier(forward->threads);

    const struct product output = {&layer->output, forward->delta, forward->embd_stride};
    multiplier_share(&forward->multiplier, &output, 1, &forward->attended, n, index);
    threads_barrier(forward->threads);
}

static void feed_forward_half(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        add_delta(forward, i);
        norm_row(forward, i, layer->ffn_norm, i);
    }
    threads_barrier(forward->threads);

    const struct product inputs[] = {{&layer->gate, forward->gate, forward->ff_stride},
                                     {&layer->up, forward->up, forward->ff_stride}};
    multiplier_share(&forward->multiplier, inputs, 2, &forward->normed, n, index);
    threads_barrier(forward->threads);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        gate_row(forward, i);
    threads_barrier(forward->threads);

    const struct product output = {&layer->down, forward->delta, forward->embd_stride};
    multiplier_share(&forward->multiplier, &output, 1, &forward->gated, n, index);
}

/* The logits of segments first … end − 1, at most FORWARD_LOGITS rows in all. */
static void head(struct forward *forward, uint32_t first, uint32_t end, uint32_t index)
{
    const struct forward_pass *pass = forward->pass;
    uint32_t n = 0, i, unused;
    for (uint32_t s = first; s < end; s++)
        n += pass->segments[s].n_rows;
    while (threads_claim(forward->threads, n, 1, &i, &unused)) {
        uint32_t s = first, row = i;
        while (row >= pass->segments[s].n_rows)
            row -= pass->segments[s++].n_rows;
        row += pass->segments[s].first_row;
        add_delta(forward, row);
        norm_row(forward, row, forward->weights->output_norm, i);
    }
    threads_barrier(forward->threads);

    const struct product output = {&forward->weights->output, forward->logits, forward->vocab_stride};
    multiplier_share(&forward->multiplier, &output, 1, &forward->normed, n, index);
    threads_barrier(forward->threads);

    /* One claim takes all neighbouring segments of one sequence, so that they come in order. */
    while (threads_claim(forward->threads, end - first, 1, &i, &unused)) {
        uint32_t s = first + i, row = 0;
        if (s > first && pass->segments[s].arg == pass->segments[s - 1].arg)
            continue;
        for (uint32_t before = first; before < s; before++)
            row += pass->segments[before].n_rows;
        void *arg = pass->segments[s].arg;
        for (; s < end && pass->segments[s].arg == arg; row += pass->segments[s++].n_rows)
            pass->take_logits(&pass->segments[s], forward->logits + row * forward->vocab_stride,
                              forward->vocab_stride, index);
    }
    threads_barrier(forward->threads);
}

static void run(void *arg, uint32_t index)
{
    struct forward *forward = arg;
    const struct forward_pass *pass = forward->pass;
    uint32_t i, end;
    while (threads_claim(forward->threads, pass->n_rows, 1, &i, &end))
        embed_row(forward, i);
    threads_barrier(forward->threads);

    for (uint32_t l = 0; l < forward->model->params.n_layers; l++) {
        attention_half(forward, l, index);
        feed_forward_half(forward, l, index);
        if (index == 0 && pass->progress && pass->progress(pass->progress_arg))
            atomic_store(&forward->abandoned, true);
        threads_barrier(forward->threads);
        if (atomic_load(&forward->abandoned))
            return;
    }
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
        while (row < pass->n_rows && row - first < ATTENTION_TILE && rows[row].table == rows[first].table &&
               rows[row].position == rows[row - 1].position + 1);
        forward->tasks[forward->n_tasks++] = (struct attention_task){
            .table = rows[first].table,
            .position = rows[first].position,
            .n_rows = row - first,
            .queries = forward->q + (size_t)first * forward->q_stride,
            .query_stride = forward->q_stride,
            .out = forward->attended.values + (size_t)first * forward->attended.stride,
            .out_stride = forward->attended.stride,
        };
    }
}

int forward_run(struct forward *forward, const struct forward_pass *pass)
{
    forward->pass = pass;
    atomic_store(&forward->abandoned, false);
    plan_attention(forward);
    bool small = pass->n_rows * (uint64_t)forward->weights->bytes < SMALL_PASS;
    (small ? threads_run_alone : threads_run)(forward->threads, run, forward);
    forward->pass = NULL;
    return atomic_load(&forward->abandoned) ? -ECANCELED : 0;
}
