/* SPDX-License-Identifier: MIT */
#ifndef MODEL_HUGGINGFACE_POOLING_H
#define MODEL_HUGGINGFACE_POOLING_H

/* 1_Pooling/config.json of sentence-transformers: the pooling of embeddings. */

#include <stdint.h>

#include "common/bytes.h"
#include "common/error.h"

/* *ret_type: GGUF's number, 1 mean, 2 cls, 3 last. -EINVAL with a reason that names the key: an unsupported
 * pooling, several at once, or none. */
int pooling_parse(struct bytes text, uint32_t *ret_type, struct error *err);

#endif
