/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_GRAMMAR_ACCEPTS_H
#define TESTS_UNIT_TEXT_GRAMMAR_ACCEPTS_H

/* Tries texts on a grammar, as an answer would be generated. */

#include "text/grammar/grammar.h"

/* Parses a grammar, which must be valid. */
struct grammar *grammar_of(enum grammar_kind kind, const char *text);

/* Whether the text is an answer: taken byte by byte, and it may end there. */
bool accepts(struct grammar *grammar, const char *text);

/* Why the grammar is refused; "": it is not. */
const char *why_refused(enum grammar_kind kind, const char *text);

/* A grammar with texts that it accepts and texts that it does not, each list terminated by NULL. A failure
 * names the text. */
#define MOST_TEXTS 24
struct accepted {
    const char *grammar;
    const char *yes[MOST_TEXTS], *no[MOST_TEXTS];
};
void check_accepted(enum grammar_kind kind, const struct accepted *cases, size_t n);

#endif
