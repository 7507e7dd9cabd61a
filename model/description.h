/* SPDX-License-Identifier: MIT */
#ifndef MODEL_DESCRIPTION_H
#define MODEL_DESCRIPTION_H

/* What a model computes, in words that every backend understands: hyperparameters of the whole, and of each
 * layer the traits in which transformers differ. Backends execute this and ask for no architecture's name.
 *
 *   rows of the embedding · embedding_scale (+ rows of the position embedding)
 *   → layers → output norm → output matrix → · logit_scale, logit_cap → logits
 *
 * and of a layer, with `norm_place` saying which of its norms there are:
 *
 *   stream += residual_scale · post_norm(attention(norm(stream)))
 *   stream += residual_scale · post_norm(feed_forward(norm(stream)))
 *
 * or, when it is `parallel`, both halves read the same norm(stream). */

#include <stdbool.h>
#include <stdint.h>

#include "model/kinds.h"

#define ROW(name, id, words) ROTARY_##name,
enum rotary_scaling { ROTARY_SCALINGS(ROW) };
enum rotary_kind { ROTARY_KINDS(ROW) };
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
    POOLING_RANK /* the model scores pairs of texts and makes no embeddings */
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
    uint32_t n_heads;
    uint32_t n_kv_heads; /* divides n_heads */
    uint32_t head_dim;   /* of queries, keys and values alike */
    uint32_t n_ff;
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
    uint32_t rope_dims;
    float rope_base, rope_factor;
    float rope_window_base; /* of layers with a window; 0: rope_base */
    float rope_attention_factor, rope_fast_turns, rope_slow_turns;
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
};

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
    float magnitude; /* of what turns, after it turned: scores grow by its square; 1 where nothing is said */
};

/* A row goes to the n_used experts that the router scores best; what they give is summed, weighted by the
 * softmax of those scores. A shared expert gets every row, and what it gives is added. */
struct experts {
    uint32_t n; /* 0: a plain feed-forward half */
    uint32_t n_used;
    uint32_t n_ff;        /* width of one */
    uint32_t n_shared_ff; /* width of the shared one; 0: there is none */
};

/* Which vectors of queries and keys are normed before they turn. */
enum qk_norm {
    QK_NORM_NONE,
    QK_NORM_HEADS, /* each head by itself, all with the same weights */
    QK_NORM_ALL    /* all heads together */
};

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

    struct rotary rotary;
    enum qk_norm qk_norm;
    struct query_growth query_growth;
    bool sinks; /* each head has a score that belongs to no position and takes its part of the softmax */
    float attention_scale;
    float attention_cap; /* c: scores become c · tanh(score / c); 0: none */
    uint32_t window;     /* positions that a token sees, its own included; 0: all before it */

    enum activation activation;
    bool gated; /* activation(gate) · up; else activation(up) */
    struct experts experts;
};

#endif
