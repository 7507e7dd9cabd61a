/* SPDX-License-Identifier: MIT */
/* Feed-forward, plain and with experts.
 *
 * A parallel layer leaves out the second norm: gate and up read the first one's rows, which nothing has
 * touched, and the mixer's delta joins the stream before down overwrites it. */

#include "cpu/forward/feed_forward.h"

#include <math.h>

#include "cpu/forward/phases.h"

/* The feed-forward behind its norm, of a layer without experts. */
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
    phases_end_products(forward, index, "up gate", inputs, traits->gated ? 2 : 1);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            if (traits->parallel)
                phases_add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
            phases_activate_row(forward, traits, traits->gated ? forward->gate : NULL, forward->up,
                                &forward->activated, i, traits->n_ff);
        }
    phases_end(forward, index, "activation");

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
    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            if (traits->parallel)
                phases_add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
            phases_activate_row(forward, traits, traits->gated ? forward->gate : NULL, forward->up,
                                &forward->activated, i, traits->experts.n_shared_ff);
        }
    phases_end(forward, index, "activation");

    const struct product down = {&forward->weights->layers[l].matrices[TENSOR_SHARED_DOWN],
                                 forward->delta,
                                 forward->embd_stride,
                                 n,
                                 0,
                                 0};
    multiplier_share(&forward->multiplier, &down, 1, &forward->activated, index);
    phases_end_products(forward, index, "shared down", &down, 1);
}

/* How much of a row the shared expert's part counts: σ(w · row). */
static float shared_share(const struct forward *forward, const struct weights_layer *layer, uint32_t row)
{
    const float *x = forward->normed.values + (size_t)row * forward->normed.stride;
    const float *weight = layer->vectors[TENSOR_SHARED_ROUTER].weight;
    double score = 0;
    for (uint32_t i = 0; i < forward->model->params.n_embd; i++)
        score += (double)weight[i] * (double)x[i];
    return (float)(1 / (1 + exp(-score)));
}

/* Of row i: the experts that its scores choose, and what each counts. */
static void choose(const struct forward *forward, uint32_t l, uint32_t i)
{
    const struct experts_workspace *work = &forward->experts;
    const struct experts *experts = &forward->model->layers[l].traits.experts;
    const float *scales = forward->weights->layers[l].vectors[TENSOR_EXPERT_SCALES].weight;
    float *scores = work->scores + (size_t)i * work->scores_stride;
    uint32_t *chosen = work->experts + (size_t)i * experts->n_used;
    float *weights = work->weights + (size_t)i * experts->n_used;
    if (experts->router_norm)
        phases_scale(scores, experts->n, 1 / sqrtf((float)forward->model->params.n_embd));
    experts_choose(experts, scores, chosen, weights);
    for (uint32_t k = 0; k < experts->n_used && experts->scaled; k++)
        weights[k] *= scales[chosen[k]];
}

/* Every row to the experts that were chosen for it, every expert's rows together, up to what they give. */
static void run_experts(struct forward *forward, uint32_t l, uint32_t index)
{
    struct experts_workspace *work = &forward->experts;
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows, n_used = traits->experts.n_used;
    uint32_t i, end;
    if (index == 0)
        experts_group(work, traits, &forward->weights->layers[l], n);
    phases_end(forward, index, "group");

    while (threads_claim_own(forward->threads, index, n * n_used, &i, &end))
        for (; i < end; i++)
            experts_gather(work, &forward->normed, work->assignments[i] / n_used, i);
    phases_end(forward, index, "gather");

    multiplier_share(&forward->multiplier, work->inputs, work->n_inputs, &work->x, index);
    phases_end_products(forward, index, "experts up", work->inputs, work->n_inputs);

    while (threads_claim_own(forward->threads, index, n * n_used, &i, &end))
        for (; i < end; i++)
            phases_activate_row(forward, traits, traits->gated ? work->gate : NULL, work->up,
                                &work->activated, i, traits->experts.n_ff);
    phases_end(forward, index, "activation");

    multiplier_share(&forward->multiplier, work->outputs, work->n_outputs, &work->activated, index);
    phases_end_products(forward, index, "experts down", work->outputs, work->n_outputs);
}

/* Experts, and the shared one. */
static void expert_feed_forward(struct forward *forward, uint32_t l, uint32_t index)
{
    struct experts_workspace *work = &forward->experts;
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows;
    const bool shared = traits->experts.n_shared_ff > 0;
    uint32_t i, end;
    const struct product inputs[] = {
        {&layer->matrices[TENSOR_ROUTER], work->scores, work->scores_stride, n, 0, 0},
        {&layer->matrices[TENSOR_SHARED_UP], forward->up, forward->ff_stride, n, 0, 0},
        {&layer->matrices[TENSOR_SHARED_GATE], forward->gate, forward->ff_stride, n, 0, 0}};
    const uint32_t n_inputs = !shared ? 1 : traits->gated ? 3 : 2;
    multiplier_share(&forward->multiplier, inputs, n_inputs, &forward->normed, index);
    phases_end_products(forward, index, shared ? "router shared" : "router", inputs, n_inputs);
    if (shared)
        shared_feed_forward(forward, l, index);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++)
            choose(forward, l, i);
    phases_end(forward, index, "choose");
    run_experts(forward, l, index);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            if (traits->parallel && !shared)
                phases_add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
            float *delta = forward->delta + (size_t)i * forward->embd_stride;
            if (traits->experts.shared_gate)
                phases_scale(delta, forward->model->params.n_embd, shared_share(forward, layer, i));
            experts_combine(work, traits->experts.n_used, i, forward->model->params.n_embd, shared, delta);
        }
}

/* Row i of what a half has given, normed, into `out`. */
static void norm_given(const struct forward *forward, uint32_t l, enum tensor_role norm, uint32_t i,
                       float *out)
{
    const size_t at = (size_t)i * forward->embd_stride;
    phases_normalize(forward->kernels, &forward->model->layers[l].traits.norm,
                     &forward->weights->layers[l].vectors[norm], forward->delta + at,
                     forward->model->params.n_embd, out + at);
}

/* The plain half, and experts beside it; each reads the stream by norms of its own. */
static void feed_forward_beside(struct forward *forward, uint32_t l, uint32_t index)
{
    struct experts_workspace *work = &forward->experts;
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    const uint32_t n = forward->pass->n_rows, n_embd = forward->model->params.n_embd;
    uint32_t i, end;
    plain_feed_forward(forward, l, index);
    const struct product down = {&layer->matrices[TENSOR_DOWN], NULL, 0, n, 0, 0};
    phases_end_products(forward, index, "down", &down, 1);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            norm_given(forward, l, TENSOR_PLAIN_POST_NORM, i, forward->beside);
            if (traits->experts.router_norm)
                phases_norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_ROUTER_NORM], i);
        }
    phases_end(forward, index, "norm");

    const struct product router = {
        &layer->matrices[TENSOR_ROUTER], work->scores, work->scores_stride, n, 0, 0};
    multiplier_share(&forward->multiplier, &router, 1, &forward->normed, index);
    phases_end_products(forward, index, "router", &router, 1);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            choose(forward, l, i);
            phases_norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_EXPERT_NORM], i);
        }
    phases_end(forward, index, "choose");
    run_experts(forward, l, index);

    while (threads_claim_own(forward->threads, index, n, &i, &end))
        for (; i < end; i++) {
            float *delta = forward->delta + (size_t)i * forward->embd_stride;
            experts_combine(work, traits->experts.n_used, i, n_embd, false, delta);
            norm_given(forward, l, TENSOR_EXPERT_POST_NORM, i, forward->delta);
            forward->kernels->add(delta, forward->beside + (size_t)i * forward->embd_stride,
                                  forward->embd_stride);
        }
}

void feed_forward(struct forward *forward, uint32_t l, uint32_t index)
{
    const struct weights_layer *layer = &forward->weights->layers[l];
    const struct layer_traits *traits = &forward->model->layers[l].traits;
    uint32_t i, end;
    if (!traits->parallel) {
        while (threads_claim_own(forward->threads, index, forward->pass->n_rows, &i, &end))
            for (; i < end; i++) {
                phases_add_delta(forward, l, TENSOR_ATTENTION_POST_NORM, i);
                phases_norm_row(forward, i, &traits->norm, &layer->vectors[TENSOR_FFN_NORM], i);
            }
        phases_end(forward, index, "norm");
    }
    if (traits->experts.beside)
        feed_forward_beside(forward, l, index);
    else if (traits->experts.n > 0)
        expert_feed_forward(forward, l, index);
    else
        plain_feed_forward(forward, l, index);
}
