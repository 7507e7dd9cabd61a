/* SPDX-License-Identifier: MIT */
/* The pass: embedding, layers, head, as the model's description says (model/description.h).
 *
 * All threads run the same function and meet at a barrier after each phase; within a phase they claim rows,
 * groups of weight rows, or attention tasks. A phase reads what earlier phases wrote and writes what only its
 * own claims touch, so barriers are the only order there is:
 *
 *   rows: (stream += delta;) norm, round  →  weights: q k v  →  rows: norm and turn heads, store in the cache
 *   →  tasks: attention  →  rows: round  →  weights: output projection = delta
 *   →  rows: stream += delta; norm, round  →  weights: gate, up  →  rows: activation, round  →  weights: down
 *
 * Where there are experts, what comes before gate and up and after down is
 *
 *   weights: router = scores, shared gate, up  →  (rows: activation  →  weights: shared down = delta  →)
 *   rows: choose  →  one thread: group assignments  →  places: gather  →  …
 *   …  →  rows: combine = delta
 *
 * A parallel layer leaves out the second norm: gate and up read the first one's rows, which nothing has
 * touched, and the attention's delta joins the stream before down overwrites it. Logits are made for at most
 * FORWARD_LOGITS rows at a time and handed out before the next ones. */

#include "cpu/forward.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/clock.h"
#include "model/traits.h"

/* Rows times bytes of weights below which one thread is faster than several that meet at barriers: some
 * hundred microseconds of work. Who computes an output does not change it. */
#define SMALL_PASS ((uint64_t)8 << 20)

/* Columns of one sequence's sums that a thread adds at once. */
#define SUM_COLUMNS 64

/* What this pass does not execute: of all traits that there are. */
#define MISSING 0
TRAITS_ARE_KNOWN(31);

int forward_check(const struct model *model, uint32_t n_context, struct error *err)
{
    if (model->tensors[TENSOR_POSITIONS].weight && n_context > model->params.n_context)
        return error_set(err, -EINVAL, "a context of %u exceeds the model's %u learned positions", n_context,
                         model->params.n_context);
    return model_check_traits(model, MISSING, "the CPU backend", err);
}

static void scale(float *x, uint32_t n, float factor)
{
    for (uint32_t i = 0; factor != 1 && i < n; i++)
        x[i] *= factor;
}

/* A model without such a norm hands its input on. */
static void normalize(const struct kernels *kernels, const struct norm *norm, const struct vector *vector,
                      const float *x, uint32_t n, float *out)
{
    if (!vector->weight) {
        if (out != x)
            memcpy(out, x, n * sizeof *out);
        return;
    }
    switch (norm->kind) {
    case NORM_RMS:
        kernels->rms_norm(x, vector->weight, n, norm->epsilon, out);
        break;
    case NORM_LAYER:
        kernels->layer_norm(x, vector->weight, vector->bias, n, norm->epsilon, out);
        break;
    }
}

static void round_row(const struct forward *forward, const struct activations *x, uint32_t row)
{
    if (forward->weights->any_quantized && !forward->multiplier.float_activations)
        forward->kernels->quantize(x, row);
}

/* Row `row` of the stream, normed, becomes row `to` of what the next products read. */
static void norm_row(const struct forward *forward, uint32_t row, const struct norm *norm,
                     const struct vector *vector, uint32_t to)
{
    const struct activations *x = &forward->normed;
    normalize(forward->kernels, norm, vector, forward->stream + (size_t)row * forward->embd_stride,
              forward->model->params.n_embd, x->values + (size_t)to * x->stride);
    round_row(forward, x, to);
}

/* stream += delta, which a half of layer l has made and whose own norm has the role `post_norm`. */
static void add_delta(const struct forward *forward, uint32_t l, enum tensor_role post_norm, uint32_t row)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct vector *vector = &forward->weights->layers[l].vectors[post_norm];
    size_t at = (size_t)row * forward->embd_stride;
    float *delta = forward->delta + at;
    normalize(forward->kernels, &traits->norm, vector, delta, forward->model->params.n_embd, delta);
    scale(delta, forward->embd_stride, traits->residual_scale);
    forward->kernels->add(forward->stream + at, delta, forward->embd_stride);
}

static void embed_row(const struct forward *forward, uint32_t row)
{
    const struct model *model = forward->model;
    const struct table *positions = &forward->weights->positions;
    const struct forward_row *r = &forward->pass->rows[row];
    float *stream = forward->stream + (size_t)row * forward->embd_stride;
    float *delta = forward->delta + (size_t)row * forward->embd_stride; /* free as long as no layer has run */
    table_read(&forward->weights->embedding, (uint32_t)r->id, stream);
    scale(stream, forward->embd_stride, model->params.embedding_scale);
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

static void norm_heads(const struct forward *forward, enum qk_norm kind, const struct norm *norm,
                       const struct vector *vector, float *heads, uint32_t n_heads)
{
    const uint32_t dim = forward->model->params.head_dim;
    switch (kind) {
    case QK_NORM_NONE:
        return;
    case QK_NORM_HEADS:
        for (uint32_t h = 0; h < n_heads; h++, heads += dim)
            normalize(forward->kernels, norm, vector, heads, dim, heads);
        return;
    case QK_NORM_ALL:
        normalize(forward->kernels, norm, vector, heads, n_heads * dim, heads);
        return;
    }
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

static void store_row(const struct forward *forward, uint32_t row, uint32_t l)
{
    const struct model_params *params = &forward->model->params;
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct rotation *rotation = &forward->rotations[forward->rotation_of[l]];
    const struct forward_row *r = &forward->pass->rows[row];
    const float *cos_sin = rotation->cos_sin + (size_t)row * rotation->rotary.dims;
    float *q = forward->q + (size_t)row * forward->q_stride;
    float *k = forward->k + (size_t)row * forward->kv_stride;
    const float *v = forward->v + (size_t)row * forward->kv_stride;
    norm_heads(forward, traits->qk_norm, &traits->norm, &layer->vectors[TENSOR_Q_NORM], q, params->n_heads);
    norm_heads(forward, traits->qk_norm, &traits->norm, &layer->vectors[TENSOR_K_NORM], k,
               params->n_kv_heads);
    rotary_turn(&rotation->rotary, q, params->n_heads, params->head_dim, cos_sin);
    rotary_turn(&rotation->rotary, k, params->n_kv_heads, params->head_dim, cos_sin);
    scale(q, params->n_heads * params->head_dim, query_scale(traits, r->position));
    const uint32_t *table = r->tables[forward->kv->layers[l].group];
    kv_store(forward->kv, forward->kernels, table[r->position / KERNELS_TOKENS], l,
             r->position % KERNELS_TOKENS, k, v);
}

/* Row `row` of gate and up becomes that of x. */
static void activate_row(const struct forward *forward, const struct layer_traits *traits, const float *gate,
                         const float *up, const struct activations *x, uint32_t row)
{
    const size_t at = (size_t)row * x->stride;
    forward->kernels->activate[traits->activation]((traits->gated ? gate : up) + at,
                                                   traits->gated ? up + at : NULL, x->stride, x->values + at);
    round_row(forward, x, row);
}

/* ---- phases ---- */

/* "q k v Q4_K+Q6_K": a phase, and each format of what it multiplies once. */
static void name_phase(const char *phase, const struct product *products, uint32_t n,
                       char ret_name[BACKEND_KERNEL_NAME])
{
    size_t used = (size_t)snprintf(ret_name, BACKEND_KERNEL_NAME, "%s", phase);
    uint64_t named = 0;
    for (uint32_t i = 0; i < n && used < BACKEND_KERNEL_NAME; i++) {
        const enum format format = products[i].matrix->tensor->format;
        if (!(named >> format & 1))
            used += (size_t)snprintf(ret_name + used, BACKEND_KERNEL_NAME - used, "%s%s", named ? "+" : " ",
                                     format_traits(format)->name);
        named |= 1ull << format;
    }
}

/* What a phase took, which has just ended for all; `products` are those it made. */
static struct backend_kernel *note_phase(struct forward *forward, const char *phase,
                                         const struct product *products, uint32_t n_products)
{
    char name[BACKEND_KERNEL_NAME];
    const uint64_t now = clock_ns();
    name_phase(phase, products, n_products, name);
    struct backend_kernel *kernel = profile_kernel(forward->profile, name);
    kernel->n++;
    kernel->ns += now - forward->phase_begun;
    for (uint32_t i = 0; i < n_products; i++) {
        const struct matrix *matrix = products[i].matrix;
        kernel->bytes += matrix->n_groups * matrix->group_bytes;
        kernel->macs += (uint64_t)products[i].n * matrix->n_rows * matrix->n_columns;
    }
    forward->phase_begun = now;
    return kernel;
}

/* Every member waits for the others; the first notes what the phase took. */
static void end_products(struct forward *forward, uint32_t index, const char *phase,
                         const struct product *products, uint32_t n_products)
{
    threads_barrier(forward->threads);
    if (index == 0 && forward->profile)
        note_phase(forward, phase, products, n_products);
}

static void end_phase(struct forward *forward, uint32_t index, const char *phase)
{
    end_products(forward, index, phase, NULL, 0);
}

static void end_attention(struct forward *forward, uint32_t index, uint32_t window)
{
    const struct kv *kv = forward->kv;
    threads_barrier(forward->threads);
    if (index > 0 || !forward->profile)
        return;
    struct backend_kernel *kernel = note_phase(forward, "attention", NULL, 0);
    const uint32_t columns = forward->model->params.n_heads * forward->model->params.head_dim;
    for (uint32_t i = 0; i < forward->n_tasks; i++) {
        const struct attention_task *task = &forward->tasks[i];
        const uint32_t end = task->position + task->n_rows, seen = window && window < end ? window : end;
        kernel->bytes += seen * (uint64_t)kv->layer_bytes / KERNELS_TOKENS;
        kernel->macs += 2ull * task->n_rows * seen * columns;
    }
}

/* ---- the layers ---- */

static void attention_half(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows, n_kv_heads = forward->kv->n_heads;
    uint32_t i, end;
    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        if (l > 0)
            add_delta(forward, l - 1, TENSOR_FFN_POST_NORM, i);
        norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_ATTENTION_NORM], i);
    }
    end_phase(forward, index, "norm");

    const struct product inputs[] = {{&layer->matrices[TENSOR_Q], forward->q, forward->q_stride, n, 0, 0},
                                     {&layer->matrices[TENSOR_K], forward->k, forward->kv_stride, n, 0, 0},
                                     {&layer->matrices[TENSOR_V], forward->v, forward->kv_stride, n, 0, 0}};
    multiplier_share(&forward->multiplier, inputs, 3, &forward->normed, index);
    end_products(forward, index, "q k v", inputs, 3);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        store_row(forward, i, l);
    end_phase(forward, index, "heads");

    const struct attention attention = {.kv = forward->kv,
                                        .kernels = forward->kernels,
                                        .layer = l,
                                        .group = forward->model->params.n_heads / n_kv_heads,
                                        .window = traits->window,
                                        .cap = traits->attention_cap,
                                        .sinks = layer->vectors[TENSOR_SINKS].weight};
    const uint32_t group = attention.group, together = forward->heads_together,
                   n_parts = (group + together - 1) / together, n_each = n_kv_heads * n_parts;
    while (threads_claim(forward->threads, forward->n_tasks * n_each, 1, &i, &end)) {
        const uint32_t part = i % n_parts * together, left = group - part;
        attention_run(&attention, &forward->tasks[i / n_each], i % n_each / n_parts * group + part,
                      left < together ? left : together, forward->attention_scratch[index]);
    }
    end_attention(forward, index, traits->window);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        round_row(forward, &forward->attended, i);
    end_phase(forward, index, "round");

    const struct product output = {
        &layer->matrices[TENSOR_ATTENTION_OUTPUT], forward->delta, forward->embd_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->attended, index);
    end_products(forward, index, "output", &output, 1);
}

/* The feed-forward half behind its norm, of a layer without experts. */
static void plain_feed_forward(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    const struct product inputs[] = {
        {&layer->matrices[TENSOR_UP], forward->up, forward->ff_stride, n, 0, 0},
        {&layer->matrices[TENSOR_GATE], forward->gate, forward->ff_stride, n, 0, 0}};
    multiplier_share(&forward->multiplier, inputs, traits->gated ? 2 : 1, &forward->normed, index);
    end_products(forward, index, "up gate", inputs, traits->gated ? 2 : 1);

    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        if (traits->parallel)
            add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
        activate_row(forward, traits, forward->gate, forward->up, &forward->activated, i);
    }
    end_phase(forward, index, "activation");

    const struct product output = {
        &layer->matrices[TENSOR_DOWN], forward->delta, forward->embd_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->activated, index);
}

/* The shared expert's part behind its first products: it becomes the row's delta. */
static void shared_feed_forward(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows;
    uint32_t i, end;
    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        if (traits->parallel)
            add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
        activate_row(forward, traits, forward->gate, forward->up, &forward->activated, i);
    }
    end_phase(forward, index, "activation");

    const struct product down = {&forward->weights->layers[l].matrices[TENSOR_SHARED_DOWN],
                                 forward->delta,
                                 forward->embd_stride,
                                 n,
                                 0,
                                 0};
    multiplier_share(&forward->multiplier, &down, 1, &forward->activated, index);
    end_products(forward, index, "shared down", &down, 1);
}

/* Every row to the experts that the router chooses, every expert's rows together. */
static void expert_feed_forward(struct forward *forward, uint32_t l, uint32_t index)
{
    struct experts_workspace *work = &forward->experts;
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows, n_used = traits->experts.n_used;
    const bool shared = traits->experts.n_shared_ff > 0;
    uint32_t i, end;
    const struct product inputs[] = {
        {&layer->matrices[TENSOR_ROUTER], work->scores, work->scores_stride, n, 0, 0},
        {&layer->matrices[TENSOR_SHARED_UP], forward->up, forward->ff_stride, n, 0, 0},
        {&layer->matrices[TENSOR_SHARED_GATE], forward->gate, forward->ff_stride, n, 0, 0}};
    const uint32_t n_inputs = !shared ? 1 : traits->gated ? 3 : 2;
    multiplier_share(&forward->multiplier, inputs, n_inputs, &forward->normed, index);
    end_products(forward, index, shared ? "router shared" : "router", inputs, n_inputs);
    if (shared)
        shared_feed_forward(forward, l, index);

    while (threads_claim(forward->threads, n, 1, &i, &end))
        experts_choose(&traits->experts, work->scores + (size_t)i * work->scores_stride,
                       work->experts + (size_t)i * n_used, work->weights + (size_t)i * n_used);
    end_phase(forward, index, "choose");

    if (index == 0)
        experts_group(work, traits, layer, n);
    end_phase(forward, index, "group");

    while (threads_claim(forward->threads, n * n_used, 1, &i, &end))
        experts_gather(work, &forward->normed, work->assignments[i] / n_used, i);
    end_phase(forward, index, "gather");

    multiplier_share(&forward->multiplier, work->inputs, work->n_inputs, &work->x, index);
    end_products(forward, index, "experts up", work->inputs, work->n_inputs);

    while (threads_claim(forward->threads, n * n_used, 1, &i, &end))
        activate_row(forward, traits, work->gate, work->up, &work->activated, i);
    end_phase(forward, index, "activation");

    multiplier_share(&forward->multiplier, work->outputs, work->n_outputs, &work->activated, index);
    end_products(forward, index, "experts down", work->outputs, work->n_outputs);

    while (threads_claim(forward->threads, n, 1, &i, &end)) {
        if (traits->parallel && !shared)
            add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
        experts_combine(work, n_used, i, forward->model->params.n_embd, shared,
                        forward->delta + (size_t)i * forward->embd_stride);
    }
}

static void feed_forward_half(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    uint32_t i, end;
    if (!traits->parallel) {
        while (threads_claim(forward->threads, forward->pass->n_rows, 1, &i, &end)) {
            add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
            norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_FFN_NORM], i);
        }
        end_phase(forward, index, "norm");
    }
    if (traits->experts.n > 0)
        expert_feed_forward(forward, l, index);
    else
        plain_feed_forward(forward, l, index);
}

static void finish_logits(const struct forward *forward, float *logits)
{
    const struct model_params *params = &forward->model->params;
    scale(logits, params->n_vocab, params->logit_factor);
    if (params->logit_cap > 0)
        forward->kernels->soft_cap(logits, forward->vocab_stride, params->logit_cap);
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
        add_delta(forward, forward->model->params.n_layers - 1, TENSOR_FFN_POST_NORM, row);
        norm_row(forward, row, &forward->model->output_norm, &forward->weights->output_norm, i);
    }
    end_phase(forward, index, "norm");

    const struct product output = {
        &forward->weights->output, forward->logits, forward->vocab_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &output, 1, &forward->normed, index);
    end_products(forward, index, "head", &output, 1);

    /* One claim takes all neighbouring segments of one sequence, so that they come in order. */
    while (threads_claim(forward->threads, end - first, 1, &i, &unused)) {
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
    end_phase(forward, index, "sample");
}

/* Adds the final states of rows. A row is normed by whoever claims it; then whoever claims a few columns of
 * a sequence adds them, from the first row to the last: which thread it is makes no difference to any sum. */
static void sum(struct forward *forward, uint32_t index)
{
    const struct forward_pass *pass = forward->pass;
    const uint32_t n_embd = forward->model->params.n_embd, n_parts = (n_embd + SUM_COLUMNS - 1) / SUM_COLUMNS;
    const struct activations *states = &forward->normed;
    uint32_t n = 0, i, unused;
    for (uint32_t s = 0; s < pass->n_sums; s++)
        n += pass->sums[s].n_rows;
    while (threads_claim(forward->threads, n, 1, &i, &unused)) {
        uint32_t s = 0, row = i;
        while (row >= pass->sums[s].n_rows)
            row -= pass->sums[s++].n_rows;
        row += pass->sums[s].first_row;
        add_delta(forward, forward->model->params.n_layers - 1, TENSOR_FFN_POST_NORM, row);
        normalize(forward->kernels, &forward->model->output_norm, &forward->weights->output_norm,
                  forward->stream + (size_t)row * forward->embd_stride, n_embd,
                  states->values + (size_t)row * states->stride);
    }
    end_phase(forward, index, "norm");

    while (threads_claim(forward->threads, pass->n_sums * n_parts, 1, &i, &unused)) {
        const struct forward_sum *sum = &pass->sums[i / n_parts];
        const uint32_t first = i % n_parts * SUM_COLUMNS;
        const uint32_t end = first + SUM_COLUMNS < n_embd ? first + SUM_COLUMNS : n_embd;
        for (uint32_t row = sum->first_row; row < sum->first_row + sum->n_rows; row++)
            for (uint32_t j = first; j < end; j++)
                sum->sums[j] += (double)states->values[(size_t)row * states->stride + j];
    }
    end_phase(forward, index, "sum");
}

static void run(void *arg, uint32_t index)
{
    struct forward *forward = arg;
    const struct forward_pass *pass = forward->pass;
    uint32_t i, end;
    while (threads_claim(forward->threads, pass->n_rows, 1, &i, &end))
        embed_row(forward, i);
    end_phase(forward, index, "embed");

    for (uint32_t l = 0; l < forward->model->params.n_layers; l++) {
        attention_half(forward, l, index);
        feed_forward_half(forward, l, index);
        if (index == 0 && pass->progress && pass->progress(pass->progress_arg))
            atomic_store(&forward->abandoned, true);
        const bool experts = forward->model->layers[l].traits.experts.n > 0;
        const struct product down = {
            &forward->weights->layers[l].matrices[TENSOR_DOWN], NULL, 0, pass->n_rows, 0, 0};
        end_products(forward, index, experts ? "combine" : "down", &down, experts ? 0 : 1);
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
static void plan_attention(struct forward *forward, uint32_t n_threads)
{
    const struct model_params *params = &forward->model->params;
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
    forward->heads_together = attention_heads_together(params->n_heads / params->n_kv_heads,
                                                       forward->n_tasks * params->n_kv_heads, n_threads);
}

int forward_run(struct forward *forward, const struct forward_pass *pass)
{
    forward->pass = pass;
    forward->phase_begun = forward->profile ? clock_ns() : 0;
    atomic_store(&forward->abandoned, false);
    bool small = pass->n_rows * (uint64_t)forward->weights->bytes < SMALL_PASS;
    plan_attention(forward, small ? 1 : threads_count(forward->threads));
    (small ? threads_run_alone : threads_run)(forward->threads, run, forward);
    forward->pass = NULL;
    return atomic_load(&forward->abandoned) ? -ECANCELED : 0;
}
