/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_H
#define MODEL_HUGGINGFACE_CONFIG_H

/* config.json of a model of a known family (families.h): read, checked, and written as GGUF's metadata. From
 * a wrapper, whose text_config has the numbers, only the text part is taken. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf_writer.h"
#include "model/huggingface/config/families.h"
#include "model/huggingface/quantization.h"

#define CONFIG_MOST_LAYERS  512 /* that have their kinds listed */
#define CONFIG_MOST_FACTORS 512 /* of long-rope: pairs that turn */

enum config_scaling {
    CONFIG_UNSCALED,
    CONFIG_LINEAR,
    CONFIG_YARN,
    CONFIG_LLAMA3,
    CONFIG_LONG,
    CONFIG_PROPORTIONAL /* the first pairs of a head turn, with the frequencies of a whole head */
};

enum config_flag { CONFIG_UNSAID, CONFIG_NO, CONFIG_YES };

struct config {
    const struct family *family;
    const char *architecture; /* GGUF's name: "llama", "qwen2", "qwen3" */
    bool wrapped;             /* names may begin with language_model. */
    uint32_t n_vocab, n_embd, n_ff, n_layers, n_heads, n_kv_heads, head_dim, n_context, window;
    float norm_epsilon;
    bool tied;
    enum config_flag attention_bias, mlp_bias;
    uint32_t n_experts, n_used, expert_ff, shared_ff;
    float score_cap, logit_cap, query_scalar;
    float embedding_factor, residual_factor, score_factor, logit_divisor;
    uint32_t n_taps, n_key_heads, n_value_heads, key_dim, value_dim; /* of delta nets */

    /* Layers that see only a window, or are recurrent: bits for the first CONFIG_MOST_LAYERS. */
    uint64_t special[CONFIG_MOST_LAYERS / 64];
    uint32_t period; /* describes the same layers as layer_types; 0: only the bits do */

    /* For families whose layers with a window differ from the others (config_apart.h): n_kv_heads and
     * window_head_dim are those of layers with one, head_dim and n_full_kv_heads those of layers without. */
    uint32_t window_head_dim, n_full_kv_heads;
    uint32_t n_borrowing;  /* last layers, which attend to keys and values of earlier ones */
    bool wide_borrowers;   /* these have a feed-forward twice as wide */
    bool keys_are_values;  /* in layers without a window */
    uint32_t n_layer_embd; /* of a token in each layer; 0: none */
    uint32_t rope_dims;
    uint32_t n_turning;           /* pairs that turn, with CONFIG_PROPORTIONAL */
    float rope_base, window_base; /* the latter 0: not given */
    enum config_scaling scaling;
    float factor, low, high, fast_turns, slow_turns, attention_factor; /* 0: not given */
    bool exact_ramp;                                                   /* truncate is false */
    float magnitude, magnitude_all; /* mscale and mscale_all_dim; 0: not given */
    float query_growth;
    uint32_t trained_context; /* 0: not given */
    uint32_t n_long;          /* factors in each list */
    float short_factors[CONFIG_MOST_FACTORS], long_factors[CONFIG_MOST_FACTORS];
    uint32_t sections[4];

    bool fused_experts; /* set from the tensors' names (names_note) */
    struct quantization quantization;
};

/* -EINVAL with a reason that names the key: unsupported, missing, invalid, or with an unknown effect on the
 * computation. */
int config_parse(struct bytes text, struct config *ret_config, struct error *err);

/* Reads rotary positions: config_rope.c. `json` is the object with the numbers. */
int config_read_rope(const json_t *json, struct config *config, struct error *err);

/* Writes it under the keys that model/hyperparameters.c reads. 0 or -ENOMEM. */
int config_write(const struct config *config, const char *name, struct gguf_writer *writer);

/* Lists of factors by which rotary frequencies are divided, each in a separate tensor. */
enum config_factors { CONFIG_FACTORS, CONFIG_SHORT_FACTORS, CONFIG_LONG_FACTORS, CONFIG_FACTOR_LISTS };
const char *config_factors_name(enum config_factors list);

/* The length of a list; 0: no such tensor. */
uint32_t config_n_factors(const struct config *config, enum config_factors list);
void config_factors(const struct config *config, enum config_factors list, float *ret_factors);

/* Whether layer i sees only a window, or is recurrent. */
bool config_is_special(const struct config *config, uint32_t i);

#endif
