/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_PAIR_H
#define WORKER_PREPARE_PAIR_H

/* A query and a document → the prompt of a model that ranks. */

#include "worker/prepare/prompt.h"

/* Appends the ids of the pair, put together by the model's template: {query} and {document} in it, wherever
 * and however often they stand, are replaced by the two texts, and nothing else in it means anything. Control
 * tokens of the template are parsed, those in the texts are not, and none are added. False with a reason: the
 * model does not rank, or does not say how a pair is put together; text that is not UTF-8 or too long; no
 * memory. */
bool pair_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                 struct refusal *ret_refusal);

#endif
