/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_GRAMMAR_TEXT_H
#define TEXT_DIALECT_GRAMMAR_TEXT_H

/* Writes GBNF that contains texts of a dialect. */

#include <jansson.h>
#include <stdbool.h>

#include "common/bytes.h"

struct grammar_text {
    struct buffer *buffer;
    bool failed; /* out of memory */
};

/* The values for the places in a dialect's texts; NULL: an empty text. */
struct grammar_names {
    const char *tool, *key;
    unsigned kinds; /* of the value: its types by name */
};

void grammar_put(struct grammar_text *out, const char *text);
void grammar_put_number(struct grammar_text *out, size_t number);
void grammar_put_json(struct grammar_text *out, const json_t *json);

/* The name of the rule for a tool's arguments. It contains the tool's number, because the tool's name may be
 * too long or have other characters. */
void grammar_put_arguments(struct grammar_text *out, size_t i, const char *tool);

/* A text as literals; ids and numbers become sets of characters. */
void grammar_put_literal(struct grammar_text *out, const char *text, const struct grammar_names *names);

/* The set of all characters except these ASCII ones. */
void grammar_put_others(struct grammar_text *out, const char * not, size_t n);

/* Rules for any text that does not contain the mark; NAME-0 is the first. The mark, without blanks around it,
 * has at least one character. */
void grammar_put_free_text(struct grammar_text *out, const char *name, struct bytes mark);

#endif
