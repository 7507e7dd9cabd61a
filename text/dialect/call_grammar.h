/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_CALL_GRAMMAR_H
#define TEXT_DIALECT_CALL_GRAMMAR_H

/* What an answer has to be where calls are forced, or held to something: a grammar in GBNF
 * (text/grammar/gbnf.h), in the dialect of the model. */

#include <jansson.h>

#include "common/bytes.h"
#include "common/error.h"
#include "text/dialect/dialect.h"

struct grammar_tool {
    const char *name;
    const json_t *schema; /* of the arguments: it describes an object */
    bool held;            /* to the schema; else any arguments will do */
    bool barred;          /* not to be called this time */
};

struct call_grammar {
    const struct model_dialect *dialect;
    const struct grammar_tool *tools; /* [n] */
    size_t n;
    bool forced;         /* calls and nothing else; else any text, and calls behind it */
    bool one_call;       /* at most */
    const char *content; /* JSON schema of what else the answer may be; NULL: any text */
    bool thoughts;       /* a thought may come first */
    bool inside_thought; /* the prompt leaves the model in one: its end comes first */
};

/* Appends the grammar. 0; -EINVAL with the name of what a schema asks for and the dialect cannot hold a model
 * to; -ENOMEM. */
int call_grammar_write(const struct call_grammar *grammar, struct buffer *gbnf, struct error *err);

/* The same for an answer that is JSON by a schema, where the prompt leaves the model inside a thought: its
 * end comes first. */
int call_grammar_write_after_thought(const struct model_dialect *dialect, const char *schema,
                                     struct buffer *gbnf, struct error *err);

#endif
