/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_REGEX_H
#define TEXT_GRAMMAR_REGEX_H

/* Regular expressions, limited to what the usual dialects have in common:
 *
 *     .  [a-z]  [^a-z]  \d \w \s \D \W \S   characters; classes are those of ASCII; . is any but a line's end
 *     ab  a|b  (a)  (?:a)  (?<name>a)       sequence, choice, groups
 *     a*  a+  a?  a{3}  a{3,}  a{3,5}       repeats; lazy ones (a*?) match the same texts
 *     ^ $                                   where an alternative of the whole begins and ends
 *     \n \r \t \f \v \xHH \uHHHH \.         escapes
 *
 * Assertions, \b, back references, \p and flags are rejected with an error that names them. */

#include "text/grammar/expression.h"

/* How to build the expression. */
struct regex_style {
    /* Spells one character of a set (an EXPRESSION_CHARS); NULL: as it is. */
    const struct expression *(*spell)(void *arg, const struct expression *chars);
    void *arg;
    /* The text need only contain a match: where an anchor is missing, any text may precede or follow. */
    bool search;
};

/* Reads the text into an expression. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int regex_expression(struct bytes text, const struct regex_style *style, struct rules *rules,
                     const struct expression **ret_expression, struct error *err);

/* The same as a complete grammar: the whole answer must match. */
int regex_read(struct bytes text, struct rules *rules, struct error *err);

#endif
