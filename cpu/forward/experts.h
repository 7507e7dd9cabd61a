/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_EXPERTS_H
#define CPU_FORWARD_EXPERTS_H

/* Mixtures of experts: the choice of experts for each row, and a pass's rows in the order of experts.
 *
 * An *assignment* pairs a row with one of its experts: a row has n_used of them, and assignment row · n_used
 * + k is to its k-th best expert. Assignments to one expert get adjacent *places*, so one product serves them
 * all; experts without assignments are not read. A row's results from experts, and the order of summation,
 * depend only on the row. A model without experts has an empty workspace (workspace.c). */

#include "cpu/memory/weights.h"

struct experts_workspace {
    uint32_t scores_stride; /* the most experts of a layer, rounded up to 32 */
    uint32_t ff_stride, embd_stride;
    float *scores;         /* [max_rows][scores_stride]: the router's score of each expert */
    uint32_t *experts;     /* [max_assignments], by assignment */
    float *weights;        /* [max_assignments], by assignment */
    uint32_t *places;      /* [max_assignments], by assignment */
    uint32_t *assignments; /* [max_assignments], by place */
    uint32_t *first_place; /* [scores_stride + 1], by expert */
    /* Products of the experts that have assignments: gates and ups; downs. */
    struct product *inputs, *outputs;
    uint32_t n_inputs, n_outputs;
    /* By place. */
    struct activations x;         /* [max_assignments][embd_stride] */
    float *gate, *up;             /* [max_assignments][ff_stride] */
    struct activations activated; /* [max_assignments][ff_stride] */
    float *out;                   /* [max_assignments][embd_stride] */
};

/* The n_used experts with the best scores of a row, lower numbers first among equals, and their weights: the
 * softmax of their scores, which sums to 1. If a score is not finite, all weights are NaN, so the fault stays
 * visible. Overwrites the scores. */
void experts_choose(const struct experts *experts, float *scores, uint32_t *ret_chosen, float *ret_weights);

/* Places the assignments of rows 0 … n_rows − 1, and lists the products of the experts that have any. Call
 * on one thread. */
void experts_group(struct experts_workspace *work, const struct layer_traits *traits,
                   const struct weights_layer *layer, uint32_t n_rows);

/* Copies a row of `from`, including rounded values, to a place of x. */
void experts_gather(const struct experts_workspace *work, const struct activations *from, uint32_t row,
                    uint32_t place);

/* out[0 … n − 1] = Σ weight · the row's result from each of its experts, best expert first; with `add`, added
 * to `out`, the result of a shared expert. */
void experts_combine(const struct experts_workspace *work, uint32_t n_used, uint32_t row, uint32_t n,
                     bool add, float *out);

#endif
