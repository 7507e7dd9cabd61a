/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_GRAMMARS_H
#define WORKER_PREPARE_GRAMMARS_H

/* The grammars that were used last, so that one which many requests share is read once, and keeps what was
 * found out about it (text/grammar/grammar.h). Threads share it. */

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"
#include "text/grammar/grammar.h"

#define GRAMMARS_KEPT 32

struct grammars;

int grammars_new(struct grammars **ret_grammars); /* -ENOMEM */
struct grammars *grammars_free(struct grammars *grammars);

/* The grammar of a request, with a reference for the caller. As grammar_make. */
int grammars_get(struct grammars *grammars, const struct grammar_text *text, struct grammar **ret_grammar,
                 struct error *err);

#endif
