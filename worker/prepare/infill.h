/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_INFILL_H
#define WORKER_PREPARE_INFILL_H

/* Makes a prompt whose answer fills the gap between two texts. */

#include "worker/prepare/prompt.h"

/* Appends the ids of such a prompt, with its other files first. Text in it never becomes control tokens.
 * Reserves a quarter of the context for the answer; drops files that do not fit, the first ones first. False
 * with a reason: the model has no tokens for infilling, text is not UTF-8 or too long, no memory. */
bool infill_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                   struct refusal *ret_refusal);

#endif
