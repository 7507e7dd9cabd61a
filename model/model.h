/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

/* A model: its description, the tensor of each role, with its shape checked, its tokenizer, its digest.
 *
 * Loading maps the file and computes nothing on weights; backends repack them as they need. Read-only
 * afterwards. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "gguf/gguf.h"
#include "model/description.h"
#include "model/tensors.h"
#include "text/tokenizer/tokenizer.h"

#define MODEL_RANK_TEMPLATE "tokenizer.chat_template.rerank"

struct model_layer {
    struct layer_traits traits;
    struct model_tensor tensors[TENSOR_ROLES]; /* by role; no weight if the traits do not need one */
};

struct model {
    struct gguf *gguf;
    struct model_params params;
    struct tokenizer *tokenizer; /* NULL: opened without one */
    /* By role: TENSOR_OUTPUT is the embedding if the head is tied; positions and rotary factors have no
     * weight if the model has none. */
    struct model_tensor tensors[TENSOR_LAYER_ROLES];
    struct norm output_norm;
    struct model_layer *layers; /* [n_layers] */
    uint8_t digest[16];         /* zeros before model_read_digest */
    struct bytes chat_template; /* tokenizer.chat_template, UTF-8, in the mapping; len 0: none */
    /* tokenizer.chat_template.rerank, likewise: the template for a pair of texts, with {query} and
     * {document}, of a model that ranks. */
    struct bytes rank_template;
    /* Bit set: the id may be sampled. Clear for padding rows beyond the vocabulary and for unused tokens. */
    uint32_t *sample_mask; /* [(n_vocab + 31) / 32] */
};

/* Opens the files of a model: a GGUF file, by the first of its parts, or a folder with SafeTensors
 * (model/huggingface/folder.h). */
int model_open_files(const char *path, struct gguf **ret_gguf, struct error *err);

/* The parts of the files that were not used, or were converted on opening, in one line; empty: none. */
struct bytes model_files_note(const struct gguf *gguf);

/* Opens PATH and checks everything. `with_tokenizer` false skips the vocabulary (benchmarks, logits of files
 * without one). -errno with a reason: an unknown architecture, format or rope scaling, a missing
 * hyperparameter or tensor, a shape that does not fit. Each backend decides whether it supports the model
 * (traits.h). */
int model_open(const char *path, bool with_tokenizer, struct model **ret_model, struct error *err);
struct model *model_free(struct model *model);

/* The same with options that override the file's metadata (overrides.h); NULL or "": none. */
int model_open_overridden(const char *path, const char *overrides, bool with_tokenizer,
                          struct model **ret_model, struct error *err);

/* -EINVAL with a reason if overrides concern rotary positions and the model has none, set a vocabulary size
 * that differs from the embedding's (which decides, so that the override would have no effect), or set a key
 * that nothing reads for such a model. -ENOMEM. */
int model_check_overrides(const struct model *model, const char *overrides, struct error *err);

/* Computes the digest from every byte of the model's files (gguf_digest). Pools use it to tell whether models
 * are the same. 0 or -ENOMEM. */
int model_read_digest(struct model *model, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                      struct error *err);

/* For a model with long-rope factors: whether the factors for long sequences apply if sequences may have up
 * to n_context positions. All sequences of a process use the same factors, so that they can share keys. */
bool model_is_stretched(const struct model *model, uint32_t n_context);

/* If so, changes the digest: neither keys nor requests may move between workers that use different lists of
 * factors. Call it once, when the digest is set. */
void model_mark_stretched(struct model *model, uint32_t n_context);

/* Releases the file (gguf_let_go): afterwards only metadata may be read, not contents or names of tensors.
 * Call it when a backend, which has everything it needs, is open. */
void model_let_go(struct model *model);

/* As model_open, for a file that is already open. Takes ownership of the gguf, on failure too. `path` is only
 * for names and reasons. */
int model_take_gguf(struct gguf *gguf, const char *path, bool with_tokenizer, struct model **ret_model,
                    struct error *err);

/* Whether the output matrix is the embedding. */
static inline bool model_head_is_tied(const struct model *model)
{
    return model->tensors[TENSOR_OUTPUT].weight == model->tensors[TENSOR_EMBEDDING].weight;
}

static inline bool model_may_sample(const struct model *model, uint32_t id)
{
    return model->sample_mask[id / 32] >> (id % 32) & 1;
}

#endif
