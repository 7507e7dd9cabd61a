/* SPDX-License-Identifier: MIT */
#ifndef WORKER_TOKENIZE_H
#define WORKER_TOKENIZE_H

/* Clients' requests for the ids of a text, or the text of ids: prepared like prompts, answered on the worker
 * link. */

#include <stdint.h>

#include "worker/link/link.h"
#include "worker/prepare/prepare.h"

struct question;

struct tokenize {
    struct link *link;
    struct preparer *preparer;
    const struct tokenizer *tokenizer;
    struct question *questions; /* utlist, in order of arrival */
};

/* The tokenizer is the preparer's. All three must outlive the questions, except in tokenize_deinit. */
void tokenize_init(struct tokenize *tokenize, struct link *link, struct preparer *preparer,
                   const struct tokenizer *tokenizer);

/* Frees the questions. The preparer must have ended. */
void tokenize_deinit(struct tokenize *tokenize);

/* Takes the `tokenize` or `detokenize` that the link received last. */
void tokenize_take(struct tokenize *tokenize);

/* Drops questions that have waited so long that no client still expects an answer. */
void tokenize_expire(struct tokenize *tokenize, uint64_t now);

#endif
