/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_MODEL_H
#define WORKER_MODEL_MODEL_H

/* A model: hyperparameters, the tensors of each layer found and their shapes checked, its tokenizer, its
 * digest.
 *
 * Loading maps the file and computes nothing on weights; backends repack what they want. Read-only
 * afterwards. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "worker/model/gguf.h"
#include "worker/model/tokenizer.h"

struct model_params {
    char architecture[32]; /* "llama" */
    char name[128];        /* general.name, or the file's base name */
    uint32_t n_vocab;      /* rows of the head; may exceed the tokenizer's size: padding, never sampled */
    uint32_t n_context;    /* the length the model was trained for */
    uint32_t n_embd;
    uint32_t n_layers;
    uint32_t n_heads;
    uint32_t n_kv_heads;
    uint32_t head_dim; /* of queries, keys and values alike */
    uint32_t n_ff;
    float rms_epsilon;
    float rope_base;
    uint32_t rope_dims; /* leading dims of a head that rotate; even */
    float rope_scale;   /* linear scaling: angles are divided by it; 1 = none */
};

struct model_layer { /* weights [rows = outputs][columns = inputs]; biases F32 [rows] or NULL */
    const struct gguf_tensor *attn_norm;                      /* [n_embd] F32 */
    const struct gguf_tensor *attn_q, *attn_q_bias;           /* [n_heads·head_dim][n_embd] */
    const struct gguf_tensor *attn_k, *attn_k_bias;           /* [n_kv_heads·head_dim][n_embd] */
    const struct gguf_tensor *attn_v, *attn_v_bias;           /* [n_kv_heads·head_dim][n_embd] */
    const struct gguf_tensor *attn_output, *attn_output_bias; /* [n_embd][n_heads·head_dim] */
    const struct gguf_tensor *ffn_norm;                       /* [n_embd] F32 */
    const struct gguf_tensor *ffn_gate, *ffn_gate_bias;       /* [n_ff][n_embd] */
    const struct gguf_tensor *ffn_up, *ffn_up_bias;           /* [n_ff][n_embd] */
    const struct gguf_tensor *ffn_down, *ffn_down_bias;       /* [n_embd][n_ff] */
};

struct model {
    struct gguf *gguf;
    struct model_params params;
    struct tokenizer *tokenizer;           /* NULL when opened without one */
    const struct gguf_tensor *token_embd;  /* [n_vocab][n_embd] */
    const struct gguf_tensor *output_norm; /* [n_embd] F32 */
    const struct gguf_tensor *output;      /* [n_vocab][n_embd]; token_embd when the head is tied */
    const struct gguf_tensor *rope_freqs;  /* [rope_dims / 2] F32, each frequency is divided by it; or NULL */
    struct model_layer *layers;            /* [n_layers] */
    uint8_t digest[16];
    struct bytes chat_template; /* tokenizer.chat_template, UTF-8, in the mapping; len 0 when there is none */
    /* Bit set: the id may be sampled. Clear for padding rows beyond the vocabulary and for unused tokens. */
    uint32_t *sample_mask; /* [(n_vocab + 31) / 32] */
};

/* Opens PATH and checks it all. `with_tokenizer` false skips the vocabulary (benchmarks, logits of files
 * without one). -errno with a reason: an unknown architecture, format or rope scaling, a missing
 * hyperparameter or tensor, a shape that does not fit. */
int model_open(const char *path, bool with_tokenizer, struct model **ret_model, struct error *err);
struct model *model_free(struct model *model);

/* As model_open, of a file that is open already. Takes the gguf over, on failure too. `path` is for names and
 * reasons only. */
int model_take_gguf(struct gguf *gguf, const char *path, bool with_tokenizer, struct model **ret_model,
                    struct error *err);

static inline bool model_may_sample(const struct model *model, uint32_t id)
{
    return model->sample_mask[id / 32] >> (id % 32) & 1;
}

#endif
