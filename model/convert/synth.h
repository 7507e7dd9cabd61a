/* SPDX-License-Identifier: MIT */
#ifndef MODEL_CONVERT_SYNTH_H
#define MODEL_CONVERT_SYNTH_H

/* Models with real shapes, of every architecture, with random weights, for benchmarks and tests.
 *
 * Blocks are generated directly in the target format, so a model of a billion weights takes as long as
 * writing the file. Weights have a standard deviation of 1/√inputs, so activations and logits stay of order
 * one. The vocabulary is usable: any text can be encoded, and any id decodes to readable text. The same
 * shape, type and seed give the same bytes on every machine. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/convert/mixture.h"

struct synth_shape {
    const char *name;
    const char *architecture; /* as in files; NULL: the first of the registry */
    uint32_t n_vocab;         /* ≥ 360: byte tokens, control tokens and single characters */
    uint32_t n_context;
    uint32_t n_embd;
    uint32_t n_layers;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim; /* even */
    uint32_t n_ff;
    float norm_epsilon;
    float rope_base;
    float rope_factor;           /* > 0: Llama 3's rotary factors, stretching by this; 0: none */
    bool tied;                   /* the embedding is also the output matrix */
    bool biases;                 /* of queries, keys and values, if the architecture has them optionally */
    uint32_t window;             /* of layers that have one; 0: none has */
    float cap;                   /* soft cap of scores and logits; 0: none */
    float logit_cap;             /* of logits, if different */
    uint32_t rope_dims;          /* 0: all of a head */
    uint32_t n_experts;          /* 0: plain feed-forward halves */
    uint32_t n_experts_used;     /* 0: two */
    uint32_t n_expert_ff;        /* 0: n_ff */
    uint32_t n_shared_ff;        /* width of the shared expert; 0: none */
    struct delta_net delta;      /* of recurrent layers, if the architecture has them */
    uint32_t attention_interval; /* every n-th layer attends instead; 0: every fourth */
    /* If the architecture allows layers to differ: */
    uint32_t window_period;   /* every n-th layer has no window; 0: every sixth */
    uint32_t window_head_dim; /* of layers with one; 0: head_dim */
    uint32_t full_kv_heads;   /* of layers without one; 0: n_kv_heads */
    uint32_t n_borrowing_layers, n_layer_embd;
    uint32_t borrowing_ff;  /* width of layers that borrow keys and values; 0: n_ff */
    uint32_t turning_share; /* rotary factors let only the first 1/n of the pairs turn; 0: all turn */
    uint32_t n_labels;      /* of a model that ranks, at most SYNTH_MOST_LABELS; 0: it does not rank */
};

#define SYNTH_MOST_LABELS 3

/* The shapes that `quern synth` knows, ended by a NULL name. */
extern const struct synth_shape synth_shapes[];

const struct synth_shape *synth_shape_by_name(const char *name); /* NULL: there is none */

/* `shape` with n_layers ≥ 1 and the same widths. Layers that borrow keys and values keep about their share,
 * and come after whole periods of windows. */
struct synth_shape synth_shape_of_layers(const struct synth_shape *shape, uint32_t n_layers);

/* Writes the model. -errno with a reason. */
int synth_write(const struct synth_shape *shape, const struct mixture *mixture, uint64_t seed,
                const char *path, struct error *err);

#endif
