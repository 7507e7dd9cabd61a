/* SPDX-License-Identifier: MIT */
/* The books of a pass through experts. Sorting is by counting: assignments in the order of rows, expert by
 * expert, so that neighbours in a product are neighbours in memory. */

#include "cpu/forward/experts.h"

#include <float.h>
#include <math.h>
#include <string.h>

void experts_choose(const struct experts *experts, float *scores, uint32_t *ret_chosen, float *ret_weights)
{
    bool finite = true;
    float sum = 0;
    for (uint32_t e = 0; e < experts->n; e++) {
        finite &= isfinite(scores[e]);
        if (!isfinite(scores[e])) /* still above those that are taken */
            scores[e] = -FLT_MAX;
    }
    for (uint32_t k = 0; k < experts->n_used; k++) {
        uint32_t best = 0;
        for (uint32_t e = 1; e < experts->n; e++)
            if (scores[e] > scores[best])
                best = e;
        ret_chosen[k] = best;
        ret_weights[k] = scores[best];
        scores[best] = -INFINITY;
    }
    for (uint32_t k = experts->n_used; k-- > 0;) { /* the best last: the others need its score */
        ret_weights[k] = expf(ret_weights[k] - ret_weights[0]);
        sum += ret_weights[k];
    }
    for (uint32_t k = 0; k < experts->n_used; k++)
        ret_weights[k] = finite ? ret_weights[k] / sum : NAN;
}

/* The products of expert e, which has `n` places from `first` on. */
static void list_products(struct experts_workspace *work, const struct layer_traits *traits,
                          const struct weights_layer *layer, uint32_t e, uint32_t first, uint32_t n)
{
    struct product input = {.index = e, .first = first, .n = n, .out_stride = work->ff_stride};
    input.matrix = &layer->matrices[TENSOR_EXPERT_UPS];
    input.out = work->up;
    work->inputs[work->n_inputs++] = input;
    input.matrix = &layer->matrices[TENSOR_EXPERT_GATES];
    input.out = work->gate;
    if (traits->gated)
        work->inputs[work->n_inputs++] = input;
    work->outputs[work->n_outputs++] = (struct product){.matrix = &layer->matrices[TENSOR_EXPERT_DOWNS],
                                                        .index = e,
                                                        .first = first,
                                                        .n = n,
                                                        .out = work->out,
                                                        .out_stride = work->embd_stride};
}

void experts_group(struct experts_workspace *work, const struct layer_traits *traits,
                   const struct weights_layer *layer, uint32_t n_rows)
{
    const uint32_t n = traits->experts.n, n_assignments = n_rows * traits->experts.n_used;
    uint32_t *next = work->first_place + 1; /* where an expert's next assignment goes: at the end, where the
                                             * next expert's first place is */
    memset(work->first_place, 0, (n + 1) * sizeof *work->first_place);
    work->n_inputs = work->n_outputs = 0;
    for (uint32_t v = 0; v < n_assignments; v++)
        if (work->experts[v] + 1 < n)
            next[work->experts[v] + 1]++;
    for (uint32_t e = 1; e < n; e++)
        next[e] += next[e - 1];
    for (uint32_t v = 0; v < n_assignments; v++) {
        uint32_t place = next[work->experts[v]]++;
        work->places[v] = place;
        work->assignments[place] = v;
    }
    for (uint32_t e = 0; e < n; e++) {
        uint32_t first = work->first_place[e], end = work->first_place[e + 1];
        if (end > first)
            list_products(work, traits, layer, e, first, end - first);
    }
}

void experts_gather(const struct experts_workspace *work, const struct activations *from, uint32_t row,
                    uint32_t place)
{
    const struct activations *into = &work->x;
    const size_t stride = from->stride, blocks = stride / KERNELS_BLOCK;
    memcpy(into->values + place * stride, from->values + row * stride, stride * sizeof *from->values);
    memcpy(into->quants + place * stride, from->quants + row * stride, stride);
    memcpy(into->scales + place * blocks, from->scales + row * blocks, blocks * sizeof *from->scales);
    memcpy(into->sums + place * blocks, from->sums + row * blocks, blocks * sizeof *from->sums);
    memcpy(into->half_sums + place * blocks * 2, from->half_sums + row * blocks * 2,
           blocks * 2 * sizeof *from->half_sums);
}

void experts_combine(const struct experts_workspace *work, uint32_t n_used, uint32_t row, uint32_t n,
                     bool add, float *out)
{
    if (!add)
        memset(out, 0, n * sizeof *out);
    for (uint32_t k = 0; k < n_used; k++) {
        const size_t assignment = (size_t)row * n_used + k;
        const float *got = work->out + (size_t)work->places[assignment] * work->embd_stride;
        const float weight = work->weights[assignment];
        for (uint32_t i = 0; i < n; i++)
            out[i] += weight * got[i];
    }
}
