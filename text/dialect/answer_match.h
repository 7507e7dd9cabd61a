/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_ANSWER_MATCH_H
#define TEXT_DIALECT_ANSWER_MATCH_H

/* Compares an incomplete answer with the texts of a dialect. */

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"

enum { MATCH_NONE, MATCH_MORE, MATCH_WHOLE }; /* no match; more bytes are needed; a match */

#define ANSWER_MOST_BLANKS                                                                                   \
    256 /* before a mark; more are text, so that long runs are not read again with each token */

/* Whether `held` has `pattern` from `at` on, with any white space; *ret_end: where the match ends, without
 * the pattern's final white space. DIALECT_TYPE matches a word. */
int match_loose(struct bytes held, size_t at, struct bytes pattern, size_t *ret_end);

/* The number of blanks, or characters of `also`, in `held` from `at` on: at most ANSWER_MOST_BLANKS + 1. */
size_t match_blanks(struct bytes held, size_t at, const char *also);

/* Whether the byte may be part of a tool's name, or of an id. */
bool match_is_name(uint8_t byte);

#endif
