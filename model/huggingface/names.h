/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_NAMES_H
#define MODEL_HUGGINGFACE_NAMES_H

/* Names of the tensors in Hugging Face's transformers and in GGUF, for the kinds in config.h. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "model/huggingface/config.h"

#define NAMES_SIZE 64

struct place {
    char name[NAMES_SIZE]; /* in GGUF; "" where the tensor is not needed */
    uint32_t rows;         /* 0: a vector */
    uint32_t columns;
    const char *rows_key, *columns_key; /* of config.json, which say so: "num_attention_heads · head_dim" */
};

/* The place of a tensor in a model of this configuration. -EINVAL names an unexpected one. */
int names_place(const struct config *config, const char *name, struct place *ret_place, struct error *err);

/* The i-th tensor that a model of this configuration must have, by its name there; false past the last one.
 */
bool names_needed(const struct config *config, uint64_t i, char ret_name[NAMES_SIZE]);

#endif
