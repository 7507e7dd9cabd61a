/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_REGEX_H
#define TEXT_GRAMMAR_REGEX_H

/* Regular expressions, in the part that the usual dialects have in common:
 *
 *     .  [a-z]  [^a-z]  \d \w \s \D \W \S   characters; classes are those of ASCII; . is any but a line's end
 *     ab  a|b  (a)  (?:a)  (?<name>a)       sequence, choice, groups
 *     a*  a+  a?  a{3}  a{3,}  a{3,5}       repeats; one that is lazy (a*?) matches the same texts
 *     ^ $                                   where an alternative of the whole begins and ends
 *     \n \r \t \f \v \xHH \uHHHH \.         escapes
 *
 * What looks around, back or aside (assertions, \b, back references, \p, flags) is refused by name. */

#include "text/grammar/expression.h"

/* How an expression is wanted. */
struct regex_style {
    /* What stands for one character of a set (an EXPRESSION_CHARS); NULL: itself. */
    const struct expression *(*spell)(void *arg, const struct expression *chars);
    void *arg;
    /* The text need only contain a match: an end without its anchor may have anything beyond it. */
    bool search;
};

/* Reads the text into an expression. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int regex_expression(struct bytes text, const struct regex_style *style, struct rules *rules,
                     const struct expression **ret_expression, struct error *err);

/* The same as a whole grammar: an answer is a text that matches from its beginning to its end. */
int regex_read(struct bytes text, struct rules *rules, struct error *err);

#endif
