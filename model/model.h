/* SPDX-License-Identifier: MIT */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

/* A model: its description, the tensors that play each role, found and their shapes checked, its tokenizer,
 * its digest.
 *
 * Loading maps the file and computes nothing on weights; backends repack what they want. Read-only
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
    struct model_tensor tensors[TENSOR_ROLES]; /* by role; no weight where the traits ask for none */
};

struct model {
    struct gguf *gguf;
    struct model_params params;
    struct tokenizer *tokenizer; /* NULL when opened without one */
    /* By role: TENSOR_OUTPUT is the embedding where the head is tied; no weight for positions and rotary
     * factors where there are none. */
    struct model_tensor tensors[TENSOR_LAYER_ROLES];
    struct norm output_norm;
    struct model_layer *layers; /* [n_layers] */
    uint8_t digest[16];         /* zeros before model_read_digest */
    struct bytes chat_template; /* tokenizer.chat_template, UTF-8, in the mapping; len 0 when there is none */
    /* tokenizer.chat_template.rerank, likewise: how a model that ranks reads a pair of texts, with {query}
     * and {document} where they go. */
    struct bytes rank_template;
    /* Bit set: the id may be sampled. Clear for padding rows beyond the vocabulary and for unused tokens. */
    uint32_t *sample_mask; /* [(n_vocab + 31) / 32] */
};

/* Opens what a model lies in: a GGUF file, by the first of its parts, or a folder with SafeTensors
 * (model/huggingface/folder.h). */
int model_open_files(const char *path, struct gguf **ret_gguf, struct error *err);

/* What was left out or became another format when the files were opened, in one line; empty if nothing. */
struct bytes model_files_note(const struct gguf *gguf);

/* Opens PATH and checks it all. `with_tokenizer` false skips the vocabulary (benchmarks, logits of files
 * without one). -errno with a reason: an unknown architecture, format or rope scaling, a missing
 * hyperparameter or tensor, a shape that does not fit. Whether a backend executes what the model computes is
 * the backend's to say (traits.h). */
int model_open(const char *path, bool with_tokenizer, struct model **ret_model, struct error *err);
struct model *model_free(struct model *model);

/* The same with options that change what the file says of itself (overrides.h); NULL or "": none. */
int model_open_overridden(const char *path, const char *overrides, bool with_tokenizer,
                          struct model **ret_model, struct error *err);

/* -EINVAL with a reason where overrides speak of rotary positions and the model has none, or set a size of
 * the vocabulary that the embedding does not have: it decides, whatever a file says, and an override would be
 * without effect; or set a key that nothing reads of such a model. -ENOMEM. */
int model_check_overrides(const struct model *model, const char *overrides, struct error *err);

/* Fills in the digest, from every byte of the model's files (gguf_digest): for pools, where it says which
 * models are one. 0 or -ENOMEM. */
int model_read_digest(struct model *model, uint32_t n_threads, bool (*progress)(void *arg), void *arg,
                      struct error *err);

/* Of a model with long-rope factors: are those of long sequences the ones that count where a sequence may
 * have up to n_context positions? All sequences of a process turn alike, so that they can share keys. */
bool model_is_stretched(const struct model *model, uint32_t n_context);

/* Makes the digest another one where that is so: neither keys nor requests may go from workers with one list
 * of factors to those with the other. Once, when the digest is there. */
void model_mark_stretched(struct model *model, uint32_t n_context);

/* Lets go of the file (gguf_let_go): from here on only what the model says of itself may be read, not what
 * its tensors hold or are called. For who has opened a backend with it, which has all it needs. */
void model_let_go(struct model *model);

/* As model_open, of a file that is open already. Takes the gguf over, on failure too. `path` is for names and
 * reasons only. */
int model_take_gguf(struct gguf *gguf, const char *path, bool with_tokenizer, struct model **ret_model,
                    struct error *err);

/* Is the output matrix the embedding? */
static inline bool model_head_is_tied(const struct model *model)
{
    return model->tensors[TENSOR_OUTPUT].weight == model->tensors[TENSOR_EMBEDDING].weight;
}

static inline bool model_may_sample(const struct model *model, uint32_t id)
{
    return model->sample_mask[id / 32] >> (id % 32) & 1;
}

#endif
