/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_INFILL_H
#define WORKER_PREPARE_INFILL_H

/* A text before and one after a gap → a prompt whose answer fills the gap. */

#include "worker/prepare/prompt.h"

/* Appends the ids of such a prompt, preceded by its other files. Text in it never becomes control tokens. A
 * quarter of the context is kept for the answer; files that do not fit beside it are dropped, the first ones
 * first. False with a reason: the model has no tokens for it, text that is not UTF-8 or too long, no memory.
 */
bool infill_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                   struct refusal *ret_refusal);

#endif
