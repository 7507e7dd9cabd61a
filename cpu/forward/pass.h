/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_PASS_H
#define CPU_FORWARD_PASS_H

/* A pass: its rows, and the workspace that its parts share.
 *
 * A row is one token at one position of one sequence. Rows of a sequence are adjacent and in order; their
 * keys and values are written before any of them attends. */

#include <stdatomic.h>
#include <stdbool.h>

#include "cpu/forward/attention.h"
#include "cpu/forward/experts.h"
#include "cpu/memory/kv.h"
#include "cpu/forward/rotary.h"
#include "cpu/memory/states.h"
#include "cpu/memory/weights.h"
#include "engine/backend/profile.h"

/* Rows whose logits are in memory at once. */
#define FORWARD_LOGITS 32

struct forward_row {
    int32_t id;
    uint32_t position;
    uint32_t *const *tables; /* the sequence's, one per KV group, reaching beyond position / 32 */
    float *state;            /* the sequence's (states.h); NULL: the model has none */
    float *snapshot;         /* where to copy the state after this row; NULL: nowhere */
};

/* Adjacent rows of one sequence whose logits are wanted. */
struct forward_segment {
    uint32_t first_row, n_rows; /* n_rows ≤ FORWARD_LOGITS */
    void *arg;                  /* for take_logits */
};

/* Adjacent rows of one sequence whose final states (the head's input, after the output norm, in float) are
 * summed in double, from the first row to the last. */
struct forward_sum {
    uint32_t first_row, n_rows;
    double *sums; /* [n_embd], the states are added to it */
};

/* The rows of a sequence in a pass, and its state. */
struct forward_run {
    uint32_t first_row, n_rows;
    float *state;
    float *snapshot; /* of the state after the first n_before rows; NULL: none */
    uint32_t n_before;
};

struct forward_pass {
    const struct forward_row *rows;
    uint32_t n_rows;
    const struct forward_segment *segments; /* in the order of rows; may be parts of one run of rows */
    uint32_t n_segments;
    const struct forward_sum *sums; /* of rows that are in no segment */
    uint32_t n_sums;
    /* Takes the logits of a segment, [n_rows][stride], the first n_vocab of each row valid, during the call.
     * Segments with the same arg come one after the other; others may come concurrently from other
     * threads. */
    void (*take_logits)(const struct forward_segment *segment, const float *logits, size_t stride,
                        uint32_t thread);
    bool (*progress)(void *arg); /* after each layer, on the caller's thread; true abandons. May be NULL */
    void *progress_arg;
};

/* A kind of rotation that some layers share: its frequencies, and each row's cosines and sines. */
struct rotation {
    struct rotary rotary;
    double *frequencies; /* [dims / 2] */
    float *cos_sin;      /* [max_rows][dims] */
};

/* Intermediate results of delta nets, [max_rows] each. Vectors of a head are padded with zeros to a multiple
 * of eight; lengths are those of the widest layer. */
struct delta_workspace {
    float *queries, *keys; /* [key heads][key_dim]: unit vectors, queries ÷ √key_dim */
    float *values;         /* [value heads][value_dim]; then the heads' outputs */
    float *betas, *decays; /* [value heads] */
    float **scratch;       /* [threads]: the convolution's output for one row */
    uint32_t key_stride, value_stride, head_stride;
};

/* Everything a pass needs: threads, weights and the workspace. */
struct forward {
    const struct model *model;
    const struct kernels *kernels;
    struct threads *threads;
    const struct kv *kv;
    const struct states *states;
    const struct weights *weights;
    struct multiplier multiplier;
    uint32_t max_rows, n_context;
    struct rotation *rotations; /* [n_rotations] different ones */
    uint32_t n_rotations;
    uint32_t *rotation_of; /* [n_layers] */

    /* [max_rows] each, rows padded with zeros to a multiple of 32 */
    float *stream; /* the residual stream, n_embd */
    float *delta;  /* added to it by a layer's mixer or feed-forward */
    float *q, *k, *v, *gate, *up;
    float *output_gate;  /* for a mixer's output, before its σ or SiLU */
    float *beside;       /* output of the plain half beside experts, n_embd; NULL: no layer has both */
    float *layer_inputs; /* the layers' own embeddings of the token; NULL: none */
    float *ones;         /* weights for norms without weights, [the largest head]; NULL: no layer has such */
    struct activations normed, attended, activated;
    struct delta_workspace delta_work;
    struct experts_workspace experts;
    float *logits;             /* [FORWARD_LOGITS][vocab padded] */
    float **attention_scratch; /* [threads] */
    uint32_t layer_inputs_stride;
    uint32_t embd_stride, q_stride, k_stride, v_stride, output_gate_stride, ff_stride, vocab_stride;

    struct profile *profile; /* time of each phase; NULL: not measured */
    bool timed;              /* record the times of the pass: */
    uint64_t pass_begun, embed_ns, sample_ns, pass_ns;

    /* For the current pass. */
    uint64_t phase_begun; /* on the clock, for a profile */
    const struct forward_pass *pass;
    struct attention_task *tasks; /* [max_rows] */
    uint32_t n_tasks;
    struct forward_run *runs; /* [max_rows], if the model's sequences have states */
    uint32_t n_runs;
    uint32_t n_threads; /* that run the pass */
    atomic_bool abandoned;
};

#endif
