/* SPDX-License-Identifier: MIT */
#ifndef CPU_FORWARD_PASS_H
#define CPU_FORWARD_PASS_H

/* What a pass is made of: its rows, and the workspace that its parts share.
 *
 * A row is one token at one position of one sequence. Rows of a sequence are adjacent and in order; their
 * keys and values are written before any row attends. */

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
    uint32_t *const *tables; /* the sequence's, one for each KV group, reaching beyond position / 32 */
    float *state;            /* the sequence's (states.h); NULL where the model has none */
    float *snapshot;         /* where the state behind this row is copied; NULL: nowhere */
};

/* Neighbouring rows of one sequence whose logits are wanted. */
struct forward_segment {
    uint32_t first_row, n_rows; /* n_rows ≤ FORWARD_LOGITS */
    void *arg;                  /* for take_logits */
};

/* Neighbouring rows of one sequence whose final states are summed: what the head reads, after the output
 * norm, in float; added in double, from the first row to the last. */
struct forward_sum {
    uint32_t first_row, n_rows;
    double *sums; /* [n_embd], added to */
};

/* The rows of a sequence in a pass, and what becomes of its state. */
struct forward_run {
    uint32_t first_row, n_rows;
    float *state;
    float *snapshot; /* of the state behind the first n_before rows; NULL: none */
    uint32_t n_before;
};

struct forward_pass {
    const struct forward_row *rows;
    uint32_t n_rows;
    const struct forward_segment *segments; /* in the order of rows; may be cut from one run of rows */
    uint32_t n_segments;
    const struct forward_sum *sums; /* of rows that are in no segment */
    uint32_t n_sums;
    /* Gets the logits of a segment, [n_rows][stride], the first n_vocab of each valid, during the call.
     * Segments with the same arg come one after the other; others may come at once from other threads. */
    void (*take_logits)(const struct forward_segment *segment, const float *logits, size_t stride,
                        uint32_t thread);
    bool (*progress)(void *arg); /* after each layer, from the calling thread; true abandons. May be NULL */
    void *progress_arg;
};

/* A way to turn that some layers share: its frequencies, and each row's cosines and sines. */
struct rotation {
    struct rotary rotary;
    double *frequencies; /* [dims / 2] */
    float *cos_sin;      /* [max_rows][dims] */
};

/* What delta nets make on the way, [max_rows] each. Vectors of a head are filled up with zeros to a multiple
 * of eight; lengths are those of the widest layer. */
struct delta_workspace {
    float *queries, *keys; /* [key heads][key_dim]: unit vectors, queries ÷ √key_dim */
    float *values;         /* [value heads][value_dim]; then what the heads give */
    float *betas, *decays; /* [value heads] */
    float **scratch;       /* [threads]: of one row, what the convolution gives */
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
    struct rotation *rotations; /* [n_rotations], as many as differ */
    uint32_t n_rotations;
    uint32_t *rotation_of; /* [n_layers] */

    /* [max_rows] each, rows padded with zeros to a multiple of 32 */
    float *stream; /* the residual stream, n_embd */
    float *delta;  /* what a layer's mixer or feed-forward adds to it */
    float *q, *k, *v, *gate, *up;
    float *output_gate;  /* of what a mixer makes, before its σ or SiLU */
    float *beside;       /* what the plain half beside experts gives, n_embd; NULL: no layer has both */
    float *layer_inputs; /* what each layer gets of the token by itself; NULL: none gets anything */
    float *ones;         /* weights of norms that have none, [the largest head]; NULL: no layer has such */
    struct activations normed, attended, activated;
    struct delta_workspace delta_work;
    struct experts_workspace experts;
    float *logits;             /* [FORWARD_LOGITS][vocab padded] */
    float **attention_scratch; /* [threads] */
    uint32_t layer_inputs_stride;
    uint32_t embd_stride, q_stride, k_stride, v_stride, output_gate_stride, ff_stride, vocab_stride;

    struct profile *profile; /* time of each phase; NULL: not measured */
    bool timed;              /* the times of the pass are noted: */
    uint64_t pass_begun, embed_ns, sample_ns, pass_ns;

    /* Of the pass that runs. */
    uint64_t phase_begun; /* on the clock, of a profile */
    const struct forward_pass *pass;
    struct attention_task *tasks; /* [max_rows] */
    uint32_t n_tasks;
    struct forward_run *runs; /* [max_rows], of a model whose sequences have states */
    uint32_t n_runs;
    uint32_t n_threads; /* that run it */
    atomic_bool abandoned;
};

#endif
