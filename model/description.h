/* SPDX-License-Identifier: MIT */
#ifndef MODEL_DESCRIPTION_H
#define MODEL_DESCRIPTION_H

/* Describes what a model computes, independently of its architecture: hyperparameters of the model, and for
 * each layer the traits in which transformers differ. Backends execute this description and never see an
 * architecture's name.
 *
 *   rows of the embedding · embedding_scale (+ rows of the position embedding) = x
 *   → layers → output norm → output matrix → · logit_scale, logit_cap → logits
 *
 * If layers get their own embedding of each token, n_layer_embd numbers p per layer:
 *
 *   p = (norm(projection x / √n_embd) + √n_layer_embd · row of the layers' embedding) / √2
 *
 * In a layer, where `norm_place` says which of its norms exist:
 *
 *   stream += residual_scale · post_norm(mixer(norm(stream)))
 *   stream += residual_scale · post_norm(feed_forward(norm(stream)))
 *
 * or, if it is `parallel`, both halves read the same norm(stream). Finally, if the layer has a stream scale,
 * the stream is multiplied by it. A mixer either attends to keys and values of all positions, or is a
 * recurrence whose state has a fixed size, whatever the length of the sequence. */

#include <stdbool.h>
#include <stdint.h>

#include "model/kinds.h"

#define ROW(name, id, words) ROTARY_##name,
enum rotary_scaling { ROTARY_SCALINGS(ROW) };
enum rotary_kind { ROTARY_KINDS(ROW) };
#undef ROW

#define ROW(name, id, words) MIXER_##name,
enum mixer { MIXERS(ROW) };
#undef ROW

#define ROW(name, id, words) NORM_##name,
enum norm_kind { NORM_KINDS(ROW) };
#undef ROW

#define ROW(name, id, words) ACTIVATION_##name,
enum activation { ACTIVATIONS(ROW) };
#undef ROW

/* Which rows of a prompt make up an embedding: their final states are added. The numbers are GGUF's. */
enum pooling_kind {
    POOLING_UNSAID, /* "none", or not given: as POOLING_MEAN */
    POOLING_MEAN,   /* all rows; embeddings are scaled to length one, so the sum suffices */
    POOLING_FIRST,  /* "cls" */
    POOLING_LAST,
    POOLING_RANK /* the last row, which a head turns into scores of a pair of texts: no embedding */
};

/* "mean", "cls", …; "mean" for POOLING_UNSAID, which is treated as that. */
const char *pooling_name(enum pooling_kind pooling);

/* Layers for which a file can list a property one by one. */
#define MODEL_LISTED_LAYERS 512

struct model_params {
    char architecture[32]; /* as in the file */
    char name[128];        /* general.name, or the file's base name */
    uint32_t n_vocab;      /* rows of the head; may exceed the tokenizer's size: padding, never sampled */
    uint32_t n_context;    /* the length the model was trained for */
    uint32_t n_embd;
    uint32_t n_layers;
    uint32_t n_draft_layers; /* after those: they predict further tokens, and are not computed here */
    /* For layers that attend; each layer's actual numbers are in its struct head_shape. */
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;   /* of queries, keys and values alike */
    uint32_t n_ff;
    /* If layers differ: those of layers with a window, and per layer if the file lists them; the numbers
     * above are then the largest. */
    uint32_t window_head_dim, window_rope_dims; /* 0: as in the others */
    bool kv_heads_listed, ff_listed;
    uint32_t n_borrowing_layers; /* the last ones: they attend to keys and values of earlier ones */
    uint32_t n_layer_embd;       /* width of each layer's own embedding of a token; 0: none */
    uint32_t listed_kv_heads[MODEL_LISTED_LAYERS], listed_ff[MODEL_LISTED_LAYERS];
    float embedding_scale; /* 1: none */
    float logit_scale;     /* as in the file; 1: none */
    float logit_factor;    /* multiplies logits: logit_scale, or 1 / logit_scale */
    float logit_cap;       /* c: logits become c · tanh(logit / c); 0: none */
    /* As in the file; the layers' traits say to which layers they apply. */
    float norm_epsilon;
    float attention_scale; /* 0: 1 / √head_dim */
    float attention_cap, residual_scale;
    uint32_t window;
    /* Bit i set: layer i sees only its window. If the file has no list, no bit is set, and window_period is
     * the file's value, or 0. */
    uint64_t window_layers[MODEL_LISTED_LAYERS / 64];
    bool windows_listed;
    uint32_t window_period;
    /* Bit i set: layer i is recurrent. If the file has no list, every attention_interval-th layer attends,
     * and the others are recurrent. */
    uint64_t recurrent_layers[MODEL_LISTED_LAYERS / 64];
    bool recurrent_listed;
    uint32_t attention_interval;
    uint32_t n_taps;                        /* of the recurrent layers' convolutions */
    uint32_t n_state_groups, n_state_heads; /* heads of keys, and of values */
    uint32_t state_size, state_inner;       /* length of a key; of all values together */
    uint32_t rope_dims;
    float rope_base, rope_factor;
    float rope_window_base; /* of layers with a window; 0: rope_base */
    float rope_attention_factor, rope_fast_turns, rope_slow_turns;
    bool rope_exact_ramp;      /* struct rotary */
    float rope_log_multiplier; /* m: YaRN's magnitude is (1 + g) / (1 + m · g), where g = 0.1 · ln factor */
    uint32_t rope_trained_context; /* 0: n_context */
    float query_growth;            /* struct query_growth */
    uint32_t n_experts, n_experts_used, n_shared_experts, n_expert_ff;
    uint32_t n_shared_ff; /* width of all shared experts together */
    enum rotary_scaling rope_scaling;
    bool rope_halves; /* halves turn, even if the architecture's files have pairs */
    bool rope_off;    /* no rotation */
    enum pooling_kind pooling;
    /* For POOLING_RANK: the head has one row per label. The scores of a pair of texts are head · final state
     * + bias, or, with `rank_shares`, the softmax of that. Sort by the first score. */
    uint32_t n_labels;
    bool rank_shares;
};

#define MODEL_MOST_LABELS 64

/* Whether the file lists layer i among those with a window. */
static inline bool params_list_window(const struct model_params *params, uint32_t i)
{
    return params->window_layers[i / 64] >> (i % 64) & 1;
}

/* The length before rotary scaling. */
static inline uint32_t model_params_trained_context(const struct model_params *params)
{
    return params->rope_trained_context ? params->rope_trained_context : params->n_context;
}

struct norm {
    enum norm_kind kind;
    float epsilon;
    float offset; /* added to the weights */
};

/* Which norms the halves of a layer have: of their input, of their output, or both. */
enum norm_place { NORM_BEFORE = 1, NORM_AFTER = 2, NORM_BOTH = NORM_BEFORE | NORM_AFTER };

struct rotary {
    enum rotary_kind kind;
    uint32_t dims; /* leading dims of a head that turn; even */
    float base;    /* pair i turns by position · base^(−2i / dims) */
    enum rotary_scaling scaling;
    float factor;             /* linear: angles are divided by it; YaRN: the slow ones */
    uint32_t trained_context; /* YaRN, long-rope: the length before scaling */
    /* YaRN: within that length, pairs that turn more often than fast_turns are left alone; those that turn
     * less often than slow_turns are slowed by the whole factor. */
    float fast_turns, slow_turns;
    bool exact_ramp; /* YaRN's ramp begins and ends between pairs, not at whole ones */
    float magnitude; /* multiplies the rotated dims; scores grow by its square; 1 if not given */
    bool unfactored; /* the model's rotary factors do not apply here */
};

/* A row goes to the n_used experts with the best router scores; their outputs are summed, weighted by the
 * softmax of those scores. A shared expert gets every row, and its output is added. */
struct experts {
    uint32_t n; /* 0: a plain feed-forward block */
    uint32_t n_used;
    uint32_t n_ff;        /* width of one expert */
    uint32_t n_shared_ff; /* width of the shared one; 0: none */
    bool shared_gate;     /* the output of the shared expert is multiplied by σ(w · row) */
    /* The layer has a plain half as well. Experts read the rows of a separate norm; the outputs of the
     * experts and of the plain half are each normed, and added. */
    bool beside;
    bool router_norm; /* the router reads the stream through its own norm, divided by √n_embd */
    bool scaled;      /* the output of each expert is multiplied by a number of that expert */
};

/* Which vectors of queries and keys are normed before rotation. */
enum qk_norm {
    QK_NORM_NONE,
    QK_NORM_HEADS, /* each head separately, all with the same weights */
    QK_NORM_ALL    /* all heads together */
};

/* The heads of a layer that attends. Consecutive query heads share a key/value head: head h uses ⌊h · n_kv /
 * n⌋. */
struct head_shape {
    uint32_t n;    /* of queries */
    uint32_t n_kv; /* of keys and values; divides n */
    uint32_t dim;  /* of queries, keys and values alike */
};

/* A gated delta net (Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464). For a row h:
 *
 *   u = [q h | k h | v h],  z = gate h,  β = σ(beta h),  α = exp(decay · softplus(alpha h + step_bias))
 *   u ← silu(Σ_j taps[j] · u of the row n_taps − 1 − j before), each channel separately
 *   q, k ← q ÷ √(Σ q² + 1e-6), k ÷ √(Σ k² + 1e-6), each head separately
 *
 * and for each value head, which uses one key head and has a matrix S [value_dim][key_dim]:
 *
 *   S ← α S,  d = β (v − S k),  S ← S + d kᵀ,  o = S q ÷ √key_dim,  norm(o) · silu(z)
 *
 * `decay` is negative. The state of a sequence: S of each value head, and u of n_taps − 1 rows before the
 * convolution; zeros at the start. */
struct delta_net {
    uint32_t n_key_heads, n_value_heads; /* the first divides the second */
    uint32_t key_dim, value_dim;         /* queries have key_dim numbers, too */
    uint32_t n_taps;                     /* ≥ 1 */
    bool neighbours; /* consecutive value heads share a key head, as in attention; else h uses h mod keys */
};

#define DELTA_NET_EPSILON 1e-6f /* for unit vectors; the same in every model */

static inline uint32_t delta_net_key_head(const struct delta_net *net, uint32_t value_head)
{
    return net->neighbours ? value_head / (net->n_value_heads / net->n_key_heads)
                           : value_head % net->n_key_heads;
}

/* Channels of its convolution: those of queries, keys and values. */
static inline uint32_t delta_net_channels(const struct delta_net *net)
{
    return 2 * net->n_key_heads * net->key_dim + net->n_value_heads * net->value_dim;
}

/* A query at position p is multiplied by 1 + factor · ln(1 + ⌊p / span⌋). */
struct query_growth {
    float factor; /* 0: none */
    uint32_t span;
};

struct layer_traits {
    struct norm norm;
    enum norm_place norm_place;
    bool parallel;
    float residual_scale;

    enum mixer mixer;
    struct delta_net delta; /* for MIXER_DELTA */
    /* For MIXER_ATTENTION, down to `window`. */
    struct head_shape heads;
    bool values_are_keys; /* values are the keys before their norm and rotation */
    bool value_norm;      /* each head of values is normed, without weights */
    bool output_gate;     /* the output of attention is multiplied by σ of a separate gate, elementwise */
    struct rotary rotary;
    enum qk_norm qk_norm;
    struct query_growth query_growth;
    bool sinks; /* each head has a score that belongs to no position and takes a part of the softmax */
    float attention_scale;
    float attention_cap; /* c: scores become c · tanh(score / c); 0: none */
    bool borrows_kv;     /* it has no keys and values, and attends to those of an earlier layer, kv_layer */
    uint32_t kv_layer;
    uint32_t window; /* positions that a token sees, including its own; 0: all before it */

    enum activation activation;
    bool gated; /* activation(gate) · up; else activation(up) */
    uint32_t n_ff;
    struct experts experts;

    /* A third part after the halves, for the layer's own embedding of each token, p:
     *
     *   stream += post_norm(projection (activation(gate · stream) · p)) */
    uint32_t n_layer_embd; /* numbers of p; 0: no such part */
    bool stream_scale;     /* at the end, the stream is multiplied by a number of the layer */
};

/* Whether the layer stores keys and values. */
static inline bool layer_has_kv(const struct layer_traits *layer)
{
    return layer->mixer == MIXER_ATTENTION && !layer->borrows_kv;
}

/* For layer l, which attends: the layer whose keys and values it uses. */
static inline uint32_t layer_kv_of(const struct layer_traits *layer, uint32_t l)
{
    return layer->borrows_kv ? layer->kv_layer : l;
}

/* Numbers that a layer keeps for a sequence of any length; each is an F32. */
static inline uint64_t layer_state_numbers(const struct layer_traits *layer)
{
    const struct delta_net *net = &layer->delta;
    switch (layer->mixer) {
    case MIXER_ATTENTION:
        return 0;
    case MIXER_DELTA:
        return (uint64_t)net->n_value_heads * net->value_dim * net->key_dim +
               (uint64_t)(net->n_taps - 1) * delta_net_channels(net);
    }
    return 0;
}

#endif
