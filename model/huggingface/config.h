/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_CONFIG_H
#define MODEL_HUGGINGFACE_CONFIG_H

/* config.json of a model of the kinds llama, mistral, qwen2 and qwen3: read, and written as GGUF's metadata.
 */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"
#include "gguf/gguf_writer.h"

enum config_scaling { CONFIG_UNSCALED, CONFIG_LINEAR, CONFIG_YARN, CONFIG_LLAMA3 };

struct config {
    const char *architecture; /* as GGUF names it: "llama", "qwen2", "qwen3" */
    uint32_t n_vocab, n_embd, n_ff, n_layers, n_heads, n_kv_heads, head_dim, n_context, window;
    float norm_epsilon, rope_base;
    bool tied;
    enum config_scaling scaling;
    float factor, low, high, fast_turns, slow_turns, attention_factor; /* 0: not said */
    uint32_t trained_context;                                          /* 0: not said */
};

/* -EINVAL with a reason that names the key: unsupported, missing, invalid, or changing the computation in an
 * unknown way. */
int config_parse(struct bytes text, struct config *ret_config, struct error *err);

/* Writes it under the keys that model/hyperparameters.c reads. 0 or -ENOMEM. */
int config_write(const struct config *config, const char *name, struct gguf_writer *writer);

/* Number of factors by which Llama 3's scaling divides frequencies; 0: none. */
uint32_t config_n_factors(const struct config *config);
void config_factors(const struct config *config, float *ret_factors);

#endif
