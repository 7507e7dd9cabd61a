/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_MATCH_H
#define TEXT_DIALECT_ANSWER_MATCH_H

/* Compares what has come of an answer with what a dialect says may come. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

enum { MATCH_NONE, MATCH_MORE, MATCH_WHOLE }; /* it does not match, too little has come, it does */

#define ANSWER_MOST_BLANKS                                                                                   \
    256 /* before a mark; more are text: what is long is not read again with each token */

/* Whether `pattern` stands in `held` from `at` on, whatever white space there is; how far it goes, without
 * the white space that the pattern ends with. DIALECT_TYPE matches a word. */
int match_loose(struct bytes held, size_t at, struct bytes pattern, size_t *ret_end);

/* How many blanks, or characters of `also`, stand in `held` from `at` on: at most ANSWER_MOST_BLANKS + 1. */
size_t match_blanks(struct bytes held, size_t at, const char *also);

/* Whether the byte may be part of a tool's name, or of an id. */
bool match_is_name(uint8_t byte);

#endif
