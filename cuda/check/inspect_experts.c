/* SPDX-License-Identifier: MIT */
/* Mixtures of experts: the router, the experts it chooses, and the products of each assignment of a picked
 * row, and the shared expert, which is looked at as a half without experts. An assignment is looked at as if
 * it was the pass's one picked row, whose number is then the assignment's. */

#include "cuda/check/inspect_parts.h"

#include <math.h>
#include <string.h>

#include "cuda/check/inspect_compare.h"
#include "cuda/check/reference.h"

#define MOST_USED KERNELS_MOST_USED

/* What the device chose for a picked row, and with which weights. */
struct choice {
    uint32_t experts[MOST_USED];
    float weights[MOST_USED];
};

static int bring_choice(struct inspection *look, uint32_t layer, uint32_t i, struct choice *choice)
{
    const struct device_assignments *assignments = &look->pass->workspace->experts.assignments;
    const uint32_t n_used = look->model->layers[layer].traits.experts.n_used;
    const size_t first = (size_t)look->picked[i] * n_used;
    int r = inspection_bring(look, assignments->experts + first, n_used * sizeof *choice->experts,
                             choice->experts);
    return r < 0 ? r
                 : inspection_bring(look, assignments->weights + first, n_used * sizeof *choice->weights,
                                    choice->weights);
}

static bool was_taken(const struct choice *choice, uint32_t n, uint32_t expert)
{
    for (uint32_t k = 0; k < n; k++)
        if (choice->experts[k] == expert)
            return true;
    return false;
}

/* What the choice's scores are multiplied by. */
static float score_factor(const struct inspection *look, const struct experts *experts)
{
    return experts->router_norm ? 1 / sqrtf((float)look->model->params.n_embd) : 1;
}

/* The weights of the chosen: of row i the softmax of their scores, times their scales. */
static int check_weights(struct inspection *look, uint32_t layer, const struct inspect_site *site,
                         const float *scores, const struct choice *choice)
{
    const struct model_layer *from = &look->model->layers[layer];
    const struct experts *experts = &from->traits.experts;
    const double factor = (double)score_factor(look, experts), best = (double)scores[choice->experts[0]];
    double sum = 0;
    if (experts->scaled)
        reference_row_of(&from->tensors[TENSOR_EXPERT_SCALES], 0, look->weights);
    for (uint32_t k = 0; k < experts->n_used; k++)
        sum += exp(((double)scores[choice->experts[k]] - best) * factor);
    for (uint32_t k = 0; k < experts->n_used; k++) {
        const uint32_t expert = choice->experts[k];
        const double scale = experts->scaled ? (double)look->weights[expert] : 1;
        const double expected = exp(((double)scores[expert] - best) * factor) / sum * scale;
        if (!inspect_agree((double)choice->weights[k], expected, fabs(scale), OFF_ROW))
            return inspect_differ(look, site, k, (double)choice->weights[k], expected);
    }
    return 0;
}

/* The best that was not taken before, of equal ones the first, n_used times. Scores are compared as the
 * kernel has them, for two may become equal by their factor. */
static int check_choice(struct inspection *look, uint32_t layer, uint32_t i, const struct choice *choice)
{
    const struct experts *experts = &look->model->layers[layer].traits.experts;
    const struct inspect_site site = {"choose_experts", NULL, layer, look->picked[i], OFF_ROW};
    const float *scores = look->scores + (size_t)i * look->pass->workspace->experts.scores_stride;
    const float factor = score_factor(look, experts);
    for (uint32_t k = 0; k < experts->n_used; k++) {
        uint32_t best = experts->n;
        for (uint32_t e = 0; e < experts->n; e++)
            if (!was_taken(choice, k, e) &&
                (best == experts->n || scores[e] * factor > scores[best] * factor))
                best = e;
        if (choice->experts[k] != best)
            return inspect_differ(look, &site, k, choice->experts[k], best);
    }
    return check_weights(look, layer, &site, scores, choice);
}

static struct model_tensor expert_of(const struct model_tensor *tensor, uint32_t expert)
{
    struct model_tensor one = *tensor;
    one.first_row = (uint32_t)model_tensor_row(tensor, (uint64_t)expert * tensor->rows);
    one.run = one.apart = 0; /* a turn is all rows of an expert */
    one.count = 1;
    return one;
}

/* Row i of what is held, as the first. */
static struct held held_row(const struct held *held, uint32_t i)
{
    const size_t at = (size_t)i * held->stride;
    return (struct held){held->values + at, held->quants + at, held->scales + at / 32, held->sums + at / 32,
                         held->stride};
}

/* Makes assignment k of picked row i the one picked row; and back. */
struct picked_before {
    uint32_t picked, n_picked;
};

static struct picked_before pick_assignment(struct inspection *look, uint32_t n_used, uint32_t i, uint32_t k)
{
    const struct picked_before before = {look->picked[0], look->n_picked};
    look->picked[0] = look->picked[i] * n_used + k;
    look->n_picked = 1;
    return before;
}

static void pick_rows(struct inspection *look, struct picked_before before)
{
    look->picked[0] = before.picked;
    look->n_picked = before.n_picked;
}

/* Gate, up and activation of the assignment that is picked. */
static int check_assignment(struct inspection *look, uint32_t layer, uint32_t expert, const struct held *x)
{
    const struct expert_workspace *w = &look->pass->workspace->experts;
    const struct model_layer *from = &look->model->layers[layer];
    const struct model_tensor up = expert_of(&from->tensors[TENSOR_EXPERT_UPS], expert);
    const struct model_tensor gate = expert_of(&from->tensors[TENSOR_EXPERT_GATES], expert);
    const size_t row_bytes = w->ff_stride * sizeof(float);
    int r = inspect_bring_rows(look, w->up, row_bytes, look->expert_up);
    if (r == 0)
        r = inspect_product(look, "multiply_experts", &up, x, look->expert_up, w->ff_stride);
    if (r == 0 && from->traits.gated)
        r = inspect_bring_rows(look, w->gate, row_bytes, look->expert_gate);
    if (r == 0 && from->traits.gated)
        r = inspect_product(look, "multiply_experts", &gate, x, look->expert_gate, w->ff_stride);
    if (r == 0)
        r = inspect_bring_activations(look, &w->activated, &look->expert_activated);
    return r < 0 || look->broken
               ? r
               : inspect_activated_row(look, "activate", layer, 0, look->expert_gate, look->expert_up,
                                       &look->expert_activated, from->traits.experts.n_ff);
}

/* How much of the picked rows the shared expert's part counts, into look->share. */
static int check_shares(struct inspection *look, uint32_t layer)
{
    const struct model_layer *from = &look->model->layers[layer];
    int r = 0;
    for (uint32_t i = 0; i < look->n_picked; i++)
        look->share[i] = 1;
    if (!from->traits.experts.shared_gate)
        return 0;
    r = inspect_bring_rows(look, look->pass->workspace->experts.shares, sizeof *look->share, look->share);
    reference_row_of(&from->tensors[TENSOR_SHARED_ROUTER], 0, look->weights);
    for (uint32_t i = 0; i < look->n_picked && r == 0; i++) {
        const struct inspect_site site = {"share", &from->tensors[TENSOR_SHARED_ROUTER], layer,
                                          look->picked[i], OFF_ROW};
        const float *x = look->normed.values + (size_t)i * look->normed.stride;
        double score = 0;
        for (uint32_t c = 0; c < look->model->params.n_embd; c++)
            score += (double)look->weights[c] * (double)x[c];
        const double expected = 1 / (1 + exp(-score));
        if (!inspect_agree((double)look->share[i], expected, 1, site.off))
            r = inspect_differ(look, &site, 0, (double)look->share[i], expected);
    }
    return r;
}

int inspect_route(struct inspection *look, uint32_t layer)
{
    const struct expert_workspace *w = &look->pass->workspace->experts;
    const struct model_layer *from = &look->model->layers[layer];
    int r = from->traits.experts.router_norm
                ? inspect_norm(look, "norm", layer, &from->traits.norm, &from->tensors[TENSOR_ROUTER_NORM])
                : 0;
    if (r == 0)
        r = inspect_bring_rows(look, w->scores, w->scores_stride * sizeof(float), look->scores);
    if (r == 0)
        r = inspect_product(look, "multiply", &from->tensors[TENSOR_ROUTER], &look->normed, look->scores,
                            w->scores_stride);
    for (uint32_t i = 0; i < look->n_picked && r == 0 && !look->broken; i++) {
        struct choice choice;
        r = bring_choice(look, layer, i, &choice);
        if (r == 0)
            r = check_choice(look, layer, i, &choice);
    }
    return r;
}

int inspect_experts(struct inspection *look, uint32_t layer)
{
    const struct model_layer *from = &look->model->layers[layer];
    const uint32_t n_used = from->traits.experts.n_used;
    int r = from->traits.experts.beside
                ? inspect_norm(look, "norm", layer, &from->traits.norm, &from->tensors[TENSOR_EXPERT_NORM])
                : 0;
    if (r == 0 && !look->broken && from->traits.experts.n_shared_ff > 0)
        r = inspect_shared(look, layer);
    if (r == 0 && !look->broken)
        r = check_shares(look, layer);
    for (uint32_t i = 0; i < look->n_picked && r == 0 && !look->broken; i++) {
        const struct held x = held_row(&look->normed, i);
        struct choice choice;
        r = bring_choice(look, layer, i, &choice);
        for (uint32_t k = 0; k < n_used && r == 0 && !look->broken; k++) {
            const struct picked_before before = pick_assignment(look, n_used, i, k);
            r = check_assignment(look, layer, choice.experts[k], &x);
            pick_rows(look, before);
        }
    }
    return r;
}

/* What the picked assignment got; adds it to the row's sum, look->expected. */
static int check_got(struct inspection *look, uint32_t layer, uint32_t expert, double weight)
{
    const struct workspace *w = look->pass->workspace;
    const struct model_tensor down =
        expert_of(&look->model->layers[layer].tensors[TENSOR_EXPERT_DOWNS], expert);
    int r = inspect_bring_activations(look, &w->experts.activated, &look->expert_activated);
    if (r == 0)
        r = inspect_bring_rows(look, w->experts.out, w->embd_stride * sizeof(float), look->expert_out);
    if (r == 0)
        r = inspect_product(look, "multiply_experts", &down, &look->expert_activated, look->expert_out,
                            w->embd_stride);
    for (uint32_t c = 0; c < look->model->params.n_embd; c++)
        look->expected[c] += weight * (double)look->expert_out[c];
    return r;
}

/* What the shared expert, or the plain half beside experts, gave the picked rows, into look->shared. */
static int bring_shared(struct inspection *look, uint32_t layer)
{
    const struct workspace *w = look->pass->workspace;
    const struct experts *experts = &look->model->layers[layer].traits.experts;
    const enum tensor_role down = experts->beside ? TENSOR_DOWN : TENSOR_SHARED_DOWN;
    if (experts->n_shared_ff == 0 && !experts->beside)
        return 0;
    int r = inspect_bring_rows(look, w->experts.shared, w->embd_stride * sizeof(float), look->shared);
    return r < 0 ? r
                 : inspect_layer_product(look, "multiply", layer, down, &look->activated, look->shared,
                                         w->embd_stride);
}

/* The shared expert's part of column c of picked row i. */
static double shared_part(const struct inspection *look, uint32_t layer, uint32_t i, uint32_t c)
{
    const uint32_t stride = look->pass->workspace->embd_stride;
    const bool any = look->model->layers[layer].traits.experts.n_shared_ff > 0;
    return any ? (double)look->share[i] * (double)look->shared[(size_t)i * stride + c] : 0;
}

int inspect_mixture(struct inspection *look, uint32_t layer)
{
    const uint32_t n_used = look->model->layers[layer].traits.experts.n_used;
    const uint32_t n = look->model->params.n_embd, stride = look->pass->workspace->embd_stride;
    int r = bring_shared(look, layer);
    for (uint32_t i = 0; i < look->n_picked && r == 0 && !look->broken; i++) {
        const struct inspect_site site = {"combine_experts", NULL, layer, look->picked[i], OFF_ROW};
        struct choice choice;
        r = bring_choice(look, layer, i, &choice);
        for (uint32_t c = 0; c < n; c++)
            look->expected[c] = shared_part(look, layer, i, c);
        for (uint32_t k = 0; k < n_used && r == 0 && !look->broken; k++) {
            const struct picked_before before = pick_assignment(look, n_used, i, k);
            r = check_got(look, layer, choice.experts[k], (double)choice.weights[k]);
            pick_rows(look, before);
        }
        if (r == 0 && !look->broken)
            r = inspect_compare(look, &site, look->delta + (size_t)i * stride, look->expected, n);
    }
    return r;
}
