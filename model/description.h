/* SPDX-License-Identifier: MIT */
#ifndef MODEL_DESCRIPTION_H
#define MODEL_DESCRIPTION_H

/* What a model computes, in words that every backend understands: hyperparameters of the whole, and of each
 * layer the traits in which transformers differ. Backends execute this and ask for no architecture's name.
 *
 *   rows of the embedding · embedding_scale (+ rows of the position embedding) = x
 *   → layers → output norm → output matrix → · logit_scale, logit_cap → logits
 *
 * Where layers get something of each token by themselves, it is, n_layer_embd numbers p to a layer:
 *
 *   p = (norm(projection x / √n_embd) + √n_layer_embd · row of the layers' embedding) / √2
 *
 * and of a layer, with `norm_place` saying which of its norms there are:
 *
 *   stream += residual_scale · post_norm(mixer(norm(stream)))
 *   stream += residual_scale · post_norm(feed_forward(norm(stream)))
 *
 * or, when it is `parallel`, both halves read the same norm(stream). Last, where the layer has a number for
 * that, the stream is multiplied by it. A mixer attends to keys and values of
 * all positions, or it is a recurrence whose state has one size, however long the sequence. */

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

/* Which rows of a prompt an embedding is made of: their final states are added. The numbers are GGUF's. */
enum pooling_kind {
    POOLING_UNSAID, /* "none", or not said: as POOLING_MEAN */
    POOLING_MEAN,   /* all rows; an embedding is scaled to length one, so the sum will do */
    POOLING_FIRST,  /* "cls" */
    POOLING_LAST,
    POOLING_RANK /* the last row's, which a head turns into the scores of a pair of texts: no embedding */
};

/* "mean", "cls", …; "mean" for POOLING_UNSAID, which is treated so. */
const char *pooling_name(enum pooling_kind pooling);

/* Layers of which a file can list a property one by one. */
#define MODEL_LISTED_LAYERS 512

struct model_params {
    char architecture[32]; /* as the file names it */
    char name[128];        /* general.name, or the file's base name */
    uint32_t n_vocab;      /* rows of the head; may exceed the tokenizer's size: padding, never sampled */
    uint32_t n_context;    /* the length the model was trained for */
    uint32_t n_embd;
    uint32_t n_layers;
    uint32_t n_draft_layers; /* behind those: they guess tokens ahead, and nothing here computes them */
    /* Of layers that attend; which have others is the layers' own matter (struct head_shape). */
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;   /* of queries, keys and values alike */
    uint32_t n_ff;
    /* Where layers differ: of those with a window, and layer by layer where the file lists them; the numbers
     * above are then the largest. */
    uint32_t window_head_dim, window_rope_dims; /* 0: as of the others */
    bool kv_heads_listed, ff_listed;
    uint32_t n_borrowing_layers; /* the last ones: they attend to keys and values of earlier ones */
    uint32_t n_layer_embd;       /* width of what each layer gets of each token by itself; 0: nothing */
    uint32_t listed_kv_heads[MODEL_LISTED_LAYERS], listed_ff[MODEL_LISTED_LAYERS];
    float embedding_scale; /* 1: none */
    float logit_scale;     /* as the file gives it; 1: none */
    float logit_factor;    /* what logits are multiplied by: logit_scale, or 1 / logit_scale */
    float logit_cap;       /* c: logits become c · tanh(logit / c); 0: none */

    /* As the file gives them; which layers they hold for is the layers' own matter. */
    float norm_epsilon;
    float attention_scale; /* 0: 1 / √head_dim */
    float attention_cap, residual_scale;
    uint32_t window;
    /* Bit i set: layer i sees its window only. Where the file has no list, none is set and window_period is
     * what it says or 0. */
    uint64_t window_layers[MODEL_LISTED_LAYERS / 64];
    bool windows_listed;
    uint32_t window_period;
    /* Recurrent layers: bit i set: layer i is one. Where the file has no list, every attention_interval-th
     * layer attends, and the others are. */
    uint64_t recurrent_layers[MODEL_LISTED_LAYERS / 64];
    bool recurrent_listed;
    uint32_t attention_interval;
    uint32_t n_taps;                        /* of their convolutions */
    uint32_t n_state_groups, n_state_heads; /* heads of keys, and of values */
    uint32_t state_size, state_inner;       /* length of a key; of all values together */
    uint32_t rope_dims;
    float rope_base, rope_factor;
    float rope_window_base; /* of layers with a window; 0: rope_base */
    float rope_attention_factor, rope_fast_turns, rope_slow_turns;
    bool rope_exact_ramp;      /* struct rotary */
    float rope_log_multiplier; /* YaRN's magnitude is that of the factor over that of this share of it; 0: of
                                  1 */
    uint32_t rope_trained_context; /* 0: n_context */
    float query_growth;            /* struct query_growth */
    uint32_t n_experts, n_experts_used, n_shared_experts, n_expert_ff;
    uint32_t n_shared_ff; /* width of all shared experts together */
    enum rotary_scaling rope_scaling;
    bool rope_halves; /* halves turn, even where the architecture's files have pairs */
    bool rope_off;    /* nothing turns */
    enum pooling_kind pooling;
    /* Of POOLING_RANK: the head has a row for each label, and the scores of a pair of texts are
     * head · final state + bias, or, with `rank_shares`, the softmax of that. The first score is the one to
     * sort by. */
    uint32_t n_labels;
    bool rank_shares;
};

#define MODEL_MOST_LABELS 64

/* Does the file list layer i among those with a window? */
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

/* Which norms a layer's halves have: of their input, of their output, or both. */
enum norm_place { NORM_BEFORE = 1, NORM_AFTER = 2, NORM_BOTH = NORM_BEFORE | NORM_AFTER };

struct rotary {
    enum rotary_kind kind;
    uint32_t dims; /* leading dims of a head that turn; even */
    float base;    /* pair i turns by position · base^(−2i / dims) */
    enum rotary_scaling scaling;
    float factor;             /* linear: angles are divided by it; YaRN: the slow ones */
    uint32_t trained_context; /* YaRN, long-rope: the length before scaling */
    /* YaRN: within that length, pairs that turn more often than the first are left alone, those that turn
     * less often than the second are slowed by the whole factor. */
    float fast_turns, slow_turns;
    bool exact_ramp; /* YaRN's ramp begins and ends between pairs, not at whole ones */
    float magnitude; /* of what turns, after it turned: scores grow by its square; 1 where nothing is said */
    bool unfactored; /* the model's rotary factors do not count here */
};

/* A row goes to the n_used experts that the router scores best; what they give is summed, weighted by the
 * softmax of those scores. A shared expert gets every row, and what it gives is added. */
struct experts {
    uint32_t n; /* 0: a plain feed-forward block */
    uint32_t n_used;
    uint32_t n_ff;        /* width of one */
    uint32_t n_shared_ff; /* width of the shared one; 0: there is none */
    bool shared_gate;     /* what the shared one gives is multiplied by σ(w · row) */
    /* The layer has its plain half as well. Experts read rows of a norm of their own; what they give and what
     * the plain half gives are each normed, and added. */
    bool beside;
    bool router_norm; /* the router reads the stream by a norm of its own, divided by √n_embd */
    bool scaled;      /* what an expert gives is multiplied by a number of its own */
};

/* Which vectors of queries and keys are normed before they turn. */
enum qk_norm {
    QK_NORM_NONE,
    QK_NORM_HEADS, /* each head by itself, all with the same weights */
    QK_NORM_ALL    /* all heads together */
};

/* The heads of a layer that attends. Query heads in a row share a key/value head: head h goes with
 * ⌊h · n_kv / n⌋. */
struct head_shape {
    uint32_t n;    /* of queries */
    uint32_t n_kv; /* of keys and values; divides n */
    uint32_t dim;  /* of queries, keys and values alike */
};

/* A gated delta net (Yang, Kautz, Hatamizadeh 2024, arXiv:2412.06464). Of a row h:
 *
 *   u = [q h | k h | v h],  z = gate h,  β = σ(beta h),  α = exp(decay · softplus(alpha h + step_bias))
 *   u ← silu(Σ_j taps[j] · u of the row n_taps − 1 − j before), each channel by itself
 *   q, k ← q ÷ √(Σ q² + 1e-6), k ÷ √(Σ k² + 1e-6), each head by itself
 *
 * and of each value head, which goes with one key head and has a matrix S [value_dim][key_dim]:
 *
 *   S ← α S,  d = β (v − S k),  S ← S + d kᵀ,  o = S q ÷ √key_dim,  norm(o) · silu(z)
 *
 * `decay` is negative. What a sequence has of it: S of each value head, and u of n_taps − 1 rows before the
 * convolution; zeros at the start. */
struct delta_net {
    uint32_t n_key_heads, n_value_heads; /* the first divides the second */
    uint32_t key_dim, value_dim;         /* queries are as long as keys */
    uint32_t n_taps;                     /* ≥ 1 */
    bool neighbours; /* value heads in a row share a key head, as in attention; else h goes with h mod keys */
};

#define DELTA_NET_EPSILON 1e-6f /* of unit vectors; the same in every model */

static inline uint32_t delta_net_key_head(const struct delta_net *net, uint32_t value_head)
{
    return net->neighbours ? value_head / (net->n_value_heads / net->n_key_heads)
                           : value_head % net->n_key_heads;
}

/* Channels of its convolution: of queries, keys and values. */
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
    struct delta_net delta; /* of MIXER_DELTA */

    /* Of MIXER_ATTENTION, down to `window`. */
    struct head_shape heads;
    bool values_are_keys; /* values are what keys are before their norm and their turn */
    bool value_norm;      /* each head of values is normed, without weights */
    bool output_gate;     /* attention's output is multiplied by σ of a gate of its own, number by number */
    struct rotary rotary;
    enum qk_norm qk_norm;
    struct query_growth query_growth;
    bool sinks; /* each head has a score that belongs to no position and takes its part of the softmax */
    float attention_scale;
    float attention_cap; /* c: scores become c · tanh(score / c); 0: none */
    bool borrows_kv;     /* it has no keys and values, and attends to those of kv_layer, which comes before */
    uint32_t kv_layer;
    uint32_t window; /* positions that a token sees, its own included; 0: all before it */

    enum activation activation;
    bool gated; /* activation(gate) · up; else activation(up) */
    uint32_t n_ff;
    struct experts experts;

    /* A third part behind the halves, of what the layer gets of each token by itself, p:
     *
     *   stream += post_norm(projection (activation(gate · stream) · p)) */
    uint32_t n_layer_embd; /* numbers of p; 0: there is no such part */

    bool stream_scale; /* the stream is multiplied by a number of the layer's when its parts are done */
};

/* Does the layer keep keys and values? */
static inline bool layer_has_kv(const struct layer_traits *layer)
{
    return layer->mixer == MIXER_ATTENTION && !layer->borrows_kv;
}

/* Of layer l that attends: whose keys and values it attends to. */
static inline uint32_t layer_kv_of(const struct layer_traits *layer, uint32_t l)
{
    return layer->borrows_kv ? layer->kv_layer : l;
}

/* Numbers that a layer keeps of a sequence, however long it is; each is an F32. */
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
