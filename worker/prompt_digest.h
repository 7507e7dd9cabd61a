/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PROMPT_DIGEST_H
#define WORKER_PROMPT_DIGEST_H

/* Which prompt an output continues. Frames say the digest of the prompt's ids; a request that is resumed may
 * state it, and then continues no other prompt: another chat template, tokenizer or system prompt would make
 * other ids of the same messages. */

#include "common/bytes.h"
#include "common/error.h"
#include "proto/lists.h"

#define PROMPT_DIGEST_BYTES 16

/* The same for the same ids on every machine. It is not cryptographic. */
void prompt_digest(struct id_list ids, uint8_t ret_digest[PROMPT_DIGEST_BYTES]);

/* Whether a stated digest is that of the prompt, which has `n` ids; an empty one is that of any prompt. If
 * not, `err` says so. */
bool prompt_digest_is(const uint8_t digest[PROMPT_DIGEST_BYTES], struct bytes stated, size_t n,
                      struct error *err);

#endif
