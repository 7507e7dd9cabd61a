/* SPDX-License-Identifier: MIT */
#ifndef WORKER_PREPARE_GRAMMARS_H
#define WORKER_PREPARE_GRAMMARS_H

/* A cache of recent grammars: requests with the same grammar parse it once and share its automaton
 * (text/grammar/grammar.h). Thread-safe. */

#include "common/bytes.h"
#include "common/error.h"
#include "proto/message.h"
#include "text/grammar/grammar.h"

#define GRAMMARS_KEPT 32

struct grammars;

int grammars_new(struct grammars **ret_grammars); /* -ENOMEM */
struct grammars *grammars_free(struct grammars *grammars);

/* The grammar of a request, with a reference for the caller. Returns as grammar_make. */
int grammars_get(struct grammars *grammars, const struct grammar_text *text, struct grammar **ret_grammar,
                 struct error *err);

#endif
