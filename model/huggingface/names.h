/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_NAMES_H
#define MODEL_HUGGINGFACE_NAMES_H

/* Names of the tensors in Hugging Face's transformers and in GGUF, by the tables of families.h. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/huggingface/config/config.h"

#define NAMES_SIZE 96

#define NAMES_MOST_PLACES 2 /* of one tensor */
#define NAMES_MOST_DIMS   4

struct place {
    char name[NAMES_SIZE]; /* in GGUF; "" where the tensor is not needed */
    uint32_t rows;         /* 0: a vector */
    uint32_t columns;
    uint32_t count; /* of such matrices, of experts; else 1 */
    uint32_t index; /* which of them this is; with `stacked` 0 */
    bool of_experts;
    bool stacked; /* it is all of them */
    bool blocks;  /* it is blocks of MXFP4, whose exponents are another */
    bool turned;  /* its rows are columns there */
    bool plain;   /* its numbers become F32 */
    enum how how;
    /* The shape of their tensor, slowest first, and the keys of config.json that say so: "num_attention_heads
     * · head_dim"; "" where it is always so. */
    uint32_t n_dims, dims[NAMES_MOST_DIMS];
    const char *keys[NAMES_MOST_DIMS];
};

/* A name as the tables have it: without what wrappers and older files put before it. False if it is of a part
 * that is left out, whose name before the first dot is then in ret_name. -EINVAL: too long. */
int names_clean(const struct config *config, const char *name, char ret_name[NAMES_SIZE], bool *ret_is_text,
                struct error *err);

/* Remembers in which of two forms experts are. */
void names_note(struct config *config, const char *name);

/* Is what becomes of it half of a tensor's rows, or of a vector's elements? */
bool names_is_half(enum how how);

/* The places of a tensor in a model of this configuration, at least one. -EINVAL names an unexpected one. */
int names_places(const struct config *config, const char *name, struct place ret_places[NAMES_MOST_PLACES],
                 uint32_t *ret_n, struct error *err);

/* Goes through the tensors that a model of this configuration must have, by their names there; begins with
 * zeros. False past the last one. */
struct names_walk {
    uint32_t table, row, layer, expert;
    bool bias;
};
bool names_next(const struct config *config, struct names_walk *walk, char ret_name[NAMES_SIZE]);

#endif
