/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_NAMES_H
#define MODEL_HUGGINGFACE_NAMES_H

/* Names of tensors in Hugging Face's transformers and in GGUF, from the tables of families.h. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/huggingface/config/config.h"

#define NAMES_SIZE 96

#define NAMES_MOST_PLACES 2 /* of one tensor */
#define NAMES_MOST_DIMS   4

struct place {
    char name[NAMES_SIZE]; /* in GGUF; "" if the tensor is not used */
    uint32_t rows;         /* 0: a vector */
    uint32_t columns;
    uint32_t count; /* of such matrices, for experts; else 1 */
    uint32_t index; /* which of them this is; 0 if `stacked` */
    bool of_experts;
    bool stacked; /* contains all of them */
    bool blocks;  /* blocks of MXFP4, with exponents in another tensor */
    bool turned;  /* its rows are columns in their tensor */
    bool plain;   /* its numbers become F32 */
    enum how how;
    /* The shape of their tensor, slowest first, and the keys of config.json that give it:
     * "num_attention_heads · head_dim"; "" if it is fixed. */
    uint32_t n_dims, dims[NAMES_MOST_DIMS];
    const char *keys[NAMES_MOST_DIMS];
};

/* A name as in the tables: without the prefixes of wrappers and older files. *ret_is_text false: it belongs
 * to a part of the model that is not used; ret_name then is the name before the first dot. -EINVAL: too
 * long. */
int names_clean(const struct config *config, const char *name, char ret_name[NAMES_SIZE], bool *ret_is_text,
                struct error *err);

/* Notes from a tensor's name which of two forms the experts have. */
void names_note(struct config *config, const char *name);

/* Whether the conversion takes half of a tensor's rows, or of a vector's elements. */
bool names_is_half(enum how how);

/* The places of a tensor in a model of this configuration, at least one. -EINVAL with the name of an
 * unexpected tensor. */
int names_places(const struct config *config, const char *name, struct place ret_places[NAMES_MOST_PLACES],
                 uint32_t *ret_n, struct error *err);

/* Iterates over the tensors that a model of this configuration must have, by their names there; starts from
 * zeros. False after the last one. */
struct names_walk {
    uint32_t table, row, layer, expert;
    bool bias;
};
bool names_next(const struct config *config, struct names_walk *walk, char ret_name[NAMES_SIZE]);

#endif
