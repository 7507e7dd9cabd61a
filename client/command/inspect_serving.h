/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_INSPECT_SERVING_H
#define CLIENT_COMMAND_INSPECT_SERVING_H

/* What a model needs for serving besides its tensors: tokenizer, chat template and memory. */

#include <jansson.h>
#include <stdint.h>

#include "model/model.h"

/* Tokenizer and chat template, or why they are unusable. The model may be opened without a tokenizer. NULL:
 * out of memory. */
json_t *inspect_text(const struct model *model);

/* How the model calls tools and thinks (text/dialect/dialect.h), an object, empty if it has no usable chat
 * template; NULL: out of memory. */
json_t *inspect_dialect(const struct model *model);

/* Bytes for `n` sequences of `context` tokens (0: the model's) on a CPU, keys and values in f16: the caches
 * and the tensors, without a worker's workspace. For a model with recurrent layers also the states: as many
 * snapshots as a worker makes if memory is not short and, with `drafts`, those that drafts need in
 * addition. */
json_t *inspect_memory(const struct model *model, uint32_t n, uint32_t context, bool drafts);

#endif
