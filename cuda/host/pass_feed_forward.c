/* SPDX-License-Identifier: MIT */
/* The feed-forward half, plain and with experts.
 *
 * Where there are experts, gate, up and down are products of assignments (kernels.h), and what they gave is
 * summed:
 *
 *   → router → choice (and places) → gate, up → activation → down → sum = delta → norm of the next layer
 *
 * A shared expert is a separate feed-forward block beside them: gate, up and activation after the choice,
 * down before the experts' own, and its output, times σ of its gate if it has one, is the sum's first term.
 *
 * A plain half beside experts is one too, but it comes first, for it reads what the mixer's norm left: router
 * and experts have norms of their own, each a launch. What it gave and the sum are each normed, and added, by
 * the norm of the next layer. */

#include "cuda/host/pass_parts.h"

#include <math.h>

/* As if assignments went to as many experts as they can. */
static uint32_t experts_read(const struct device_assignments *assignments, uint32_t n_rows)
{
    const uint32_t n_assignments = n_rows * assignments->n_used;
    return n_assignments < assignments->n_experts ? n_assignments : assignments->n_experts;
}

static int multiply_activate(const struct pass *pass, struct device_stream *queue,
                             const struct layer_traits *traits, const struct device_product *gate,
                             const struct device_product *up, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_product both[] = {*gate, *up}, *products = traits->gated ? both : both + 1;
    const struct activate_step activate = {.activation = traits->activation,
                                           .gate = traits->gated ? gate->out : NULL,
                                           .up = up->out,
                                           .stride = up->out_stride,
                                           .up_stride = up->out_stride,
                                           .n_columns = up->matrix->n_rows,
                                           .out = w->activated};
    const uint32_t n = traits->gated ? 2 : 1;
    const struct multiply_step step = pass_products(pass, products, n, &w->normed, n_rows);
    const struct device_matrix *const matrices[] = {up->matrix, gate->matrix};
    pass_expect_weights(queue, matrices, n, 1);
    if (!pass_takes_library(pass, &step))
        return kernels_multiply_activate(queue, products, &w->normed, &step, &activate, w->tickets);
    int r = pass_multiply(pass, queue, products, n, &w->normed, n_rows);
    return r < 0 ? r : kernels_activate(queue, &activate, n_rows);
}

/* ---- experts ---- */

/* A layer's assignments, in the workspace's memory. */
static struct device_assignments assignments_of(const struct pass *pass, uint32_t l)
{
    const struct experts *experts = &pass->model->layers[l].traits.experts;
    struct device_assignments assignments = pass->workspace->experts.assignments;
    assignments.n_experts = experts->n;
    assignments.n_used = experts->n_used;
    return assignments;
}

/* Up to what its last product reads. */
static int activate_plain(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_product gate = {&layer->matrices[TENSOR_GATE], w->gate, w->ff_stride};
    const struct device_product up = {&layer->matrices[TENSOR_UP], w->up, w->ff_stride};
    return multiply_activate(pass, queue, &pass->model->layers[l].traits, &gate, &up, n_rows);
}

/* The shared expert up to what its last product reads, in the place of a layer without experts. */
static int activate_shared(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_product gate = {&layer->matrices[TENSOR_SHARED_GATE], w->gate, w->ff_stride};
    const struct device_product up = {&layer->matrices[TENSOR_SHARED_UP], w->up, w->ff_stride};
    return multiply_activate(pass, queue, &pass->model->layers[l].traits, &gate, &up, n_rows);
}

/* The stream's rows, by a norm of the layer's, to be read next. */
static int norm_stream(const struct pass *pass, struct device_stream *queue, uint32_t l,
                       enum tensor_role vector, uint32_t n_rows)
{
    const struct pass_between next = {.norm = &pass->model->layers[l].traits.norm,
                                      .vector = &pass->weights->layers[l].vectors[vector],
                                      .before = -1};
    const struct norm_step norm = pass_norm_between(pass, &next);
    return kernels_norm(queue, &norm, n_rows);
}

/* Which experts rows go to. */
static int route(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct expert_workspace *work = &w->experts;
    const struct experts *experts = &pass->model->layers[l].traits.experts;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_assignments assignments = assignments_of(pass, l);
    const struct device_product router = {&layer->matrices[TENSOR_ROUTER], work->scores, work->scores_stride};
    const struct router_scores scores = {
        .scores = work->scores,
        .stride = work->scores_stride,
        .factor = experts->router_norm ? 1 / sqrtf((float)pass->model->params.n_embd) : 1,
        .expert_scales = layer->vectors[TENSOR_EXPERT_SCALES].weight};
    const struct multiply_step step = pass_products(pass, &router, 1, &w->normed, n_rows);
    int r = experts->router_norm ? norm_stream(pass, queue, l, TENSOR_ROUTER_NORM, n_rows) : 0;
    pass_expect_weights(queue, &router.matrix, 1, 1);
    if (r == 0)
        r = kernels_multiply(queue, &router, 1, &w->normed, &step);
    if (r == 0)
        r = kernels_choose(queue, &assignments, &scores, pass->memory.rows, n_rows, pass->invariant);
    return pass_seen(pass, r, PASS_ROUTE, l);
}

/* Gate, up and activation of every assignment. */
static int activate_assignments(const struct pass *pass, struct device_stream *queue, uint32_t l,
                                uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct expert_workspace *experts = &w->experts;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_assignments assignments = assignments_of(pass, l);
    const struct device_product inputs[] = {
        {&layer->matrices[TENSOR_EXPERT_UPS], experts->up, experts->ff_stride},
        {&layer->matrices[TENSOR_EXPERT_GATES], experts->gate, experts->ff_stride}};
    const struct activate_step activate = {.activation = traits->activation,
                                           .gate = traits->gated ? experts->gate : NULL,
                                           .up = experts->up,
                                           .stride = experts->ff_stride,
                                           .up_stride = experts->ff_stride,
                                           .n_columns = traits->experts.n_ff,
                                           .out = experts->activated};
    const struct device_matrix *const matrices[] = {inputs[0].matrix, inputs[1].matrix};
    const struct multiply_step step = pass_experts(pass, n_rows);
    pass_expect_weights(queue, matrices, traits->gated ? 2 : 1, experts_read(&assignments, n_rows));
    int r =
        kernels_multiply_experts(queue, inputs, traits->gated ? 2 : 1, &w->normed, true, &assignments, &step);
    return r < 0 ? r : kernels_activate(queue, &activate, n_rows * assignments.n_used);
}

/* Up to what the experts' last product reads. */
static int activate_experts(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct experts *experts = &pass->model->layers[l].traits.experts;
    const struct device_layer *layer = &pass->weights->layers[l];
    int r = 0;
    if (experts->beside)
        r = pass_seen(pass, activate_plain(pass, queue, l, n_rows), PASS_PLAIN, l);
    if (r == 0)
        r = route(pass, queue, l, n_rows);
    if (r == 0 && experts->beside)
        r = norm_stream(pass, queue, l, TENSOR_EXPERT_NORM, n_rows);
    if (r == 0 && experts->n_shared_ff > 0)
        r = activate_shared(pass, queue, l, n_rows);
    if (r == 0 && experts->shared_gate)
        r = kernels_share(queue, &w->normed, layer->vectors[TENSOR_SHARED_ROUTER].weight,
                          pass->model->params.n_embd, w->experts.shares, n_rows);
    if (r == 0)
        r = activate_assignments(pass, queue, l, n_rows);
    return pass_seen(pass, r, PASS_ACTIVATE, l);
}

/* What a row got from its experts, and from the shared one: delta. What a plain half beside them gave stays
 * by itself. */
static int sum_experts(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    const struct workspace *w = pass->workspace;
    const struct device_layer *layer = &pass->weights->layers[l];
    const struct device_assignments assignments = assignments_of(pass, l);
    const struct device_product down = {&layer->matrices[TENSOR_EXPERT_DOWNS], w->experts.out,
                                        w->embd_stride};
    const struct experts *experts = &pass->model->layers[l].traits.experts;
    const bool any_shared = experts->n_shared_ff > 0;
    const struct device_product aside = {&layer->matrices[experts->beside ? TENSOR_DOWN : TENSOR_SHARED_DOWN],
                                         w->experts.shared, w->embd_stride};
    const struct shared_part part = {any_shared ? w->experts.shared : NULL,
                                     experts->shared_gate ? w->experts.shares : NULL};
    const struct multiply_step step = pass_experts(pass, n_rows);
    int r = 0;
    if (any_shared || experts->beside) {
        pass_expect_weights(queue, &aside.matrix, 1, 1);
        r = pass_multiply(pass, queue, &aside, 1, &w->activated, n_rows);
    }
    pass_expect_weights(queue, &down.matrix, 1, experts_read(&assignments, n_rows));
    if (r == 0)
        r = kernels_multiply_experts(queue, &down, 1, &w->experts.activated, false, &assignments, &step);
    return r < 0 ? r
                 : kernels_combine(queue, &assignments, w->experts.out, &part, w->embd_stride,
                                   pass->model->params.n_embd, w->delta, n_rows);
}

/* ---- the half ---- */

int pass_activate(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    if (pass->model->layers[l].traits.experts.n > 0)
        return activate_experts(pass, queue, l, n_rows);
    return pass_seen(pass, activate_plain(pass, queue, l, n_rows), PASS_ACTIVATE, l);
}

int pass_end_feed_forward(const struct pass *pass, struct device_stream *queue, uint32_t l, uint32_t n_rows)
{
    static const struct device_vector none = {NULL, NULL};
    const struct workspace *w = pass->workspace;
    const struct layer_traits *traits = &pass->model->layers[l].traits;
    const struct device_product down = {&pass->weights->layers[l].matrices[TENSOR_DOWN], w->delta,
                                        w->embd_stride};
    const bool gets = traits->n_layer_embd > 0, is_end = !gets && l + 1 == pass->model->params.n_layers;
    struct pass_between next = {
        .norm = &traits->norm, .vector = &none, .before = (int)l, .post_norm = TENSOR_FFN_POST_NORM};
    int r;
    if (!gets && !is_end)
        next = pass_next_layer(pass, l);
    if (traits->experts.n > 0) {
        const struct norm_step norm = pass_norm_between(pass, &next);
        r = sum_experts(pass, queue, l, n_rows);
        if (r == 0 && !is_end)
            r = kernels_norm(queue, &norm, n_rows);
    } else if (is_end) {
        pass_expect_weights(queue, &down.matrix, 1, 1);
        r = pass_multiply(pass, queue, &down, 1, &w->activated, n_rows);
    } else {
        r = pass_end_part(pass, queue, down.matrix, &w->activated, &next, n_rows);
    }
    return pass_seen(pass, r, PASS_DOWN, l);
}
