/* SPDX-License-Identifier: MIT */
#ifndef CUDA_CHECK_INSPECT_H
#define CUDA_CHECK_INSPECT_H

/* Inspects a pass through the model part by part (pass.h). After each part a few rows of its results are
 * copied to the host, compared with plain C (reference.h) on the same inputs, and kept as inputs of later
 * parts. So an error is found in the kernel that causes it, before it spreads.
 *
 * Of ids, embeddings, norms, heads, keys and values, attention, activations and the residual stream, all
 * columns of the picked rows are compared; of each matrix, a few outputs.
 *
 * If the reference itself computes a NaN, the model is broken; the inspection then says nothing about the
 * device. */

#include "cuda/host/step.h"

#define INSPECTION_ROWS      72 /* of a pass at most */
#define INSPECTION_PICKED    4
#define INSPECTION_POSITIONS 521 /* of the sequence at most */
#define INSPECTION_BLOCKS    ((INSPECTION_POSITIONS + BACKEND_BLOCK_TOKENS - 1) / BACKEND_BLOCK_TOKENS)
#define INSPECTION_TAKEN     64

/* Rows of activations, [INSPECTION_PICKED][stride]. */
struct held {
    float *values;
    int8_t *quants;
    float *scales, *sums;
    uint32_t stride;
};

/* All rows of a pass through a delta net, [INSPECTION_ROWS][the workspace's stride], and the sequence's
 * state. */
struct held_delta {
    float *q, *k, *v;               /* before the convolution */
    float *queries, *keys, *values; /* after it */
    float *betas, *decays;
    float *given;                     /* by the recurrence */
    float *before, *after, *snapshot; /* states, [numbers of the largest layer] */
};

struct inspection {
    struct steps *steps; /* only the inspected pass is in flight */
    const struct pass *pass;
    const struct model *model;
    struct error *err;
    bool broken;           /* the model is broken: nothing more is compared */
    const uint32_t *names; /* the layers' numbers for verdicts; NULL: those of the pass */

    uint32_t n_rows, first; /* rows of the pass, and the first row's position */
    uint32_t snapshot_rows; /* after this many rows the state is copied to snapshot 0; 0: it is not */
    const int32_t *ids;     /* [n_rows] */
    uint32_t picked[INSPECTION_PICKED], n_picked;

    struct held normed, attended, activated;
    float *stream, *delta, *q, *turned, *k, *v, *gate, *up; /* [INSPECTION_PICKED][the workspace's stride] */
    /* Of experts: the picked rows' scores, [INSPECTION_PICKED][stride], and data of one assignment */
    float *scores, *expert_gate, *expert_up, *expert_out;
    struct held expert_activated;
    float *shared; /* output of the shared expert, or of the plain part beside experts, for the picked rows,
                      [INSPECTION_PICKED][stride] */
    float *share;  /* its share, [INSPECTION_PICKED] */
    float *projected, *inputs; /* of the layers' inputs of the picked rows, [INSPECTION_PICKED][the
                                  workspace's stride] */
    float *output_gate;        /* [INSPECTION_PICKED][stride of attended] */
    float *betas, *decays;     /* output of the products, [INSPECTION_PICKED][stride] */
    struct held_delta delta_net;
    float *keys, *values; /* [INSPECTION_BLOCKS · 32][n_kv_heads · dim] of one layer, as stored */
    float *logits;        /* of the last row */
    float *weights;       /* the reference's scratch, as the next three */
    double *expected, *more, *frequencies;
    uint8_t *block; /* a layer's part of a block */

    void *taken[INSPECTION_TAKEN];
    uint32_t n_taken;
    bool lacking;
};

/* 0 or -ENOMEM. Call inspection_deinit in either case. */
int inspection_init(struct inspection *look, struct steps *steps, const struct pass *pass, struct error *err);
void inspection_deinit(struct inspection *look);

/* The next pass has n ids of one sequence from position `first` on, 1 ≤ n ≤ INSPECTION_ROWS, in blocks 0, 1,
 * …; if it has logits, they are those of its last row. If there are states, the state after its first
 * snapshot_rows rows is copied to snapshot 0. */
void inspection_begin(struct inspection *look, uint32_t first, const int32_t *ids, uint32_t n,
                      uint32_t snapshot_rows);

/* The pass's watch; `look` is its argument. 0; -ENODEV: the device computes wrongly, with the kernel, tensor,
 * format, shape and the two numbers in err; or a fault of the device. */
int inspect_part(void *look, enum pass_part part, uint32_t layer);

/* From now on another pass is inspected, over the same workspace and with layers of the same sizes. */
void inspection_turn_to(struct inspection *look, const struct pass *pass, const uint32_t *names);

/* Writes made-up keys and values, different in each position, to a layer's part of the first n_blocks blocks.
 * 0 or a fault. */
int inspection_invent_kv(struct inspection *look, uint32_t layer, uint32_t n_blocks);

/* The same for a recurrent layer's state, in its part of snapshot 0. */
int inspection_invent_state(struct inspection *look, uint32_t layer);

/* Copies device memory to the host once everything queued is done. 0 or a fault. */
int inspection_bring(struct inspection *look, const void *from, size_t bytes, void *to);
int inspection_send(struct inspection *look, const void *from, size_t bytes, void *to); /* to the device */

/* Sets a verdict: "DEVICE computes wrongly: …". Returns -ENODEV. */
int inspection_refuse(struct inspection *look, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
