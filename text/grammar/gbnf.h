/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_GBNF_H
#define TEXT_GRAMMAR_GBNF_H

/* GBNF: rules `name ::= …`; `root` describes the whole answer.
 *
 *     "text"  [a-z]  [^"\\]  .          literals, sets of characters, any character
 *     a b   a | b   ( a )   a* a+ a?    sequence, choice, group, repeats
 *     a{3}  a{3,}  a{3,5}               as often
 *     %json {…}                         JSON that matches a JSON Schema (json_schema.h)
 *     # …                               a comment
 *
 * Escapes in literals and sets: \n \r \t \\ \" \] \[ \- \^, \xHH, \uHHHH, \UHHHHHHHH. A rule continues over
 * lines until the next `name ::=`. */

#include "text/grammar/expression.h"

/* Reads the text into the rules, which are empty. 0, GRAMMAR_E_INVALID with line and reason, -ENOMEM. */
int gbnf_read(struct bytes text, struct rules *rules, struct error *err);

#endif
