/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROMPT_DIGEST_H
#define WORKER_PROMPT_DIGEST_H

/* Identifies the prompt that an output continues. Frames contain the digest of the prompt's ids; a request
 * that is resumed may state it, and is then rejected for any other prompt: a different chat template,
 * tokenizer or system prompt would give different ids for the same messages. */

#include "common/bytes.h"
#include "common/error.h"
#include "proto/lists.h"

#define PROMPT_DIGEST_BYTES 16

/* Equal for equal ids on every machine. Not cryptographic. */
void prompt_digest(struct id_list ids, uint8_t ret_digest[PROMPT_DIGEST_BYTES]);

/* Whether a stated digest matches the prompt, which has `n` ids; an empty one matches any prompt. If not,
 * `err` says so. */
bool prompt_digest_is(const uint8_t digest[PROMPT_DIGEST_BYTES], struct bytes stated, size_t n,
                      struct error *err);

#endif
