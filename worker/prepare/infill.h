/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_INFILL_H
#define WORKER_PREPARE_INFILL_H

/* A text before and one behind → a prompt whose answer is what stands between them. */

#include "worker/prepare/prompt.h"

/* Appends the ids of such a prompt, with its other files before it. No text in it spells a control token.
 * Files for which there is no room beside a quarter of the context, kept for the answer, are left out, the
 * first ones first. False with the reason: the model has no tokens for it, texts that are not UTF-8, too
 * long, without memory. */
bool infill_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                   struct refusal *ret_refusal);

#endif
