/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_DECIMALS_H
#define TEXT_GRAMMAR_JSON_SCHEMA_DECIMALS_H

/* Exact decimal numbers: bounds and multiples as automata over the text of a number, which is an optional
 * minus, digits, and optionally a point with more digits. */

#include <jansson.h>

#include "text/grammar/automaton/automaton.h"

#define DECIMAL_MOST_DIGITS 340 /* before and after the point, of a double */

struct decimal {
    bool negative;
    uint32_t n_whole, n_part;
    uint8_t whole[DECIMAL_MOST_DIGITS], part[DECIMAL_MOST_DIGITS]; /* without leading zeros in `whole` (except
                                                                      "0") and trailing ones in `part` */
};

/* The shortest text of the number. NULL: out of memory. The caller frees it. */
char *decimal_text(const json_t *number);

/* Parses a JSON number. False: it has more digits than a double. */
bool decimal_read(const char *text, struct decimal *ret_decimal);

enum decimal_order { DECIMAL_LESS = 1, DECIMAL_EQUAL = 2, DECIMAL_MORE = 4 };

/* Texts of numbers that compare to this one as one of `orders`. */
const struct automaton *decimal_compared(struct automata *automata, const struct decimal *to,
                                         unsigned orders);

/* Texts of multiples of this number, which is positive. Also NULL if that takes too many states. */
const struct automaton *decimal_multiples(struct automata *automata, const struct decimal *of);

#endif
