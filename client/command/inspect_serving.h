/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_INSPECT_SERVING_H
#define CLIENT_COMMAND_INSPECT_SERVING_H

/* What a worker makes of a model beside its tensors: how it reads text, and what memory it takes. */

#include <jansson.h>
#include <stdint.h>

#include "model/model.h"

/* Tokenizer and chat template, or why they cannot be used. The model may be opened without a tokenizer.
 * NULL: out of memory. */
json_t *inspect_text(const struct model *model);

/* How the model calls tools and thinks (text/dialect/dialect.h), an object, empty where it has no chat
 * template that can be used; NULL without memory. */
json_t *inspect_dialect(const struct model *model);

/* Bytes for `n` sequences of `context` tokens (0: the model's) on a CPU, keys and values in f16: what stands
 * in the caches, and the tensors. What a worker computes with comes on top. */
json_t *inspect_memory(const struct model *model, uint32_t n, uint32_t context);

#endif
