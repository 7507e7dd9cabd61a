/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_PAIR_H
#define WORKER_PREPARE_PAIR_H

/* Makes the prompt of a ranking model from a query and a document. */

#include "worker/prepare/prompt.h"

/* Appends the ids of the pair, formatted by the model's template: every occurrence of {query} and {document}
 * is replaced by the text, and nothing else in the template is special. Control tokens are parsed in the
 * template, not in the texts, and none are added. False with a reason: the model does not rank, or has no
 * template for a pair; text is not UTF-8 or too long; no memory. */
bool pair_encode(const struct prompt_encoder *encoder, const struct prompt *prompt, struct ids *ret_ids,
                 struct refusal *ret_refusal);

#endif
