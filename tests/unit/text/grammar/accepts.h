/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_GRAMMAR_ACCEPTS_H
#define TESTS_UNIT_TEXT_GRAMMAR_ACCEPTS_H

/* Texts tried on a grammar, as an answer would be made of them. */

#include "text/grammar/grammar.h"

/* The grammar, which must be one. */
struct grammar *grammar_of(enum grammar_kind kind, const char *text);

/* Whether the text is an answer: taken byte by byte, and it may end there. */
bool accepts(struct grammar *grammar, const char *text);

/* Why the grammar is refused; "" when it is not. */
const char *why_refused(enum grammar_kind kind, const char *text);

/* A grammar with what it accepts and what it does not, each list ended by NULL. Fails the test by name. */
#define MOST_TEXTS 24
struct accepted {
    const char *grammar;
    const char *yes[MOST_TEXTS], *no[MOST_TEXTS];
};
void check_accepted(enum grammar_kind kind, const struct accepted *cases, size_t n);

#endif
