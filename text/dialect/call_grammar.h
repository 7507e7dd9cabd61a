/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_CALL_GRAMMAR_H
#define TEXT_DIALECT_CALL_GRAMMAR_H

/* The grammar (GBNF, text/grammar/gbnf.h) of an answer whose tool calls are forced or constrained, in the
 * dialect of the model. */

#include <jansson.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/dialect/dialect.h"

struct grammar_tool {
    const char *name;
    const json_t *schema; /* of the arguments: it describes an object */
    bool held;            /* arguments must match the schema; else any arguments are allowed */
    bool barred;          /* it must not be called this time */
};

struct call_grammar {
    const struct model_dialect *dialect;
    const struct grammar_tool *tools; /* [n] */
    size_t n;
    bool forced;         /* only calls; else any text, optionally followed by calls */
    bool one_call;       /* at most one */
    const char *content; /* JSON schema of an answer without calls; NULL: any text */
    bool thoughts;       /* a thought may come first */
    bool inside_thought; /* the prompt ends inside a thought: its end comes first */
};

/* Appends the grammar. 0; -EINVAL names the part of a schema that this dialect cannot enforce; -ENOMEM. */
int call_grammar_write(const struct call_grammar *grammar, struct buffer *gbnf, struct error *err);

/* The same for an answer that is JSON matching a schema, if the prompt ends inside a thought: its end comes
 * first. */
int call_grammar_write_after_thought(const struct model_dialect *dialect, const char *schema,
                                     struct buffer *gbnf, struct error *err);

#endif
