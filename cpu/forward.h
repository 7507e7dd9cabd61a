/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_H
#define CPU_FORWARD_H

/* One pass of a ragged batch of rows through the layers.
 *
 * A row is one token at one position of one sequence. Rows of a sequence are adjacent and in order; their
 * keys and values are written before any row attends. */

#include <stdatomic.h>
#include <stdbool.h>

#include "cpu/attention.h"
#include "cpu/experts.h"
#include "cpu/kv.h"
#include "cpu/rotary.h"
#include "cpu/weights.h"
#include "engine/backend/profile.h"

/* Rows whose logits are in memory at once. */
#define FORWARD_LOGITS 32

struct forward_row {
    int32_t id;
    uint32_t position;
    uint32_t *const *tables; /* the sequence's, one for each KV group, reaching beyond position / 32 */
};

/* Neighbouring rows of one sequence whose logits are wanted. */
struct forward_segment {
    uint32_t first_row, n_rows; /* n_rows ≤ FORWARD_LOGITS */
    void *arg;                  /* for take_logits */
};

/* Adjacent rows of one sequence whose final states (after the output norm, in float) are summed in double,
 * from the first row to the last. */
struct forward_sum {
    uint32_t first_row, n_rows;
    double *sums; /* [n_embd], added to */
};

struct forward_pass {
    const struct forward_row *rows;
    uint32_t n_rows;
    const struct forward_segment *segments; /* in the order of rows; may be cut from one run of rows */
    uint32_t n_segments;
    const struct forward_sum *sums; /* of rows that are in no segment */
    uint32_t n_sums;
    /* Receives the logits of a segment, [n_rows][stride], of which the first n_vocab of each row are valid,
     * for the duration of the call. Segments with the same arg come in order; others may come at the same
     * time from other threads. */
    void (*take_logits)(const struct forward_segment *segment, const float *logits, size_t stride,
                        uint32_t thread);
    bool (*progress)(void *arg); /* after each layer, from the calling thread; true abandons. May be NULL */
    void *progress_arg;
};

/* A rotation that some layers share: its frequencies, and the cosines and sines of each row. */
struct rotation {
    struct rotary rotary;
    double *frequencies; /* [dims / 2] */
    float *cos_sin;      /* [max_rows][dims] */
};

/* Everything a pass needs: threads, weights and the workspace. */
struct forward {
    const struct model *model;
    const struct kernels *kernels;
    struct threads *threads;
    const struct kv *kv;
    const struct weights *weights;
    struct multiplier multiplier;
    uint32_t max_rows, n_context;
    struct rotation *rotations; /* [n_rotations], as many as differ */
    uint32_t n_rotations;
    uint32_t *rotation_of; /* [n_layers] */

    /* [max_rows] each, rows padded with zeros to a multiple of 32 */
    float *stream; /* the residual stream, n_embd */
    float *delta;  /* what a layer's half adds to it */
    float *q, *k, *v, *gate, *up;
    struct activations normed, attended, activated;
    struct experts_workspace experts;
    float *logits;             /* [FORWARD_LOGITS][vocab padded] */
    float **attention_scratch; /* [threads] */
    uint32_t embd_stride, q_stride, kv_stride, ff_stride, vocab_stride;

    struct profile *profile; /* time of each phase; NULL: not measured */

    /* Of the pass that runs. */
    uint64_t phase_begun; /* on the clock, of a profile */
    const struct forward_pass *pass;
    struct attention_task *tasks; /* [max_rows] */
    uint32_t n_tasks;
    uint32_t heads_together; /* query heads that one thread takes of a task */
    atomic_bool abandoned;
};

/* -EINVAL names what the pass cannot compute, or a context longer than the model's learned positions. Call
 * before loading. */
int forward_check(const struct model *model, uint32_t n_context, struct error *err);

/* Takes the workspace for passes of up to max_rows rows. The caller sets the pointers above, which must
 * outlive it. 0, or -ENOMEM with a reason. */
int forward_init(struct forward *forward, struct memory *memory, bool float_activations, struct error *err);

/* Runs a pass. 0, or -ECANCELED if progress abandoned it: the positions it wrote then count as empty. */
int forward_run(struct forward *forward, const struct forward_pass *pass);

#endif
