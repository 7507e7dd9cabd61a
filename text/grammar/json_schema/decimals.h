/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_DECIMALS_H
#define TEXT_GRAMMAR_JSON_SCHEMA_DECIMALS_H

/* Numbers by their digits, exactly: bounds and multiples as automata over the text of a number, which is an
 * optional minus, digits, and perhaps a point with digits behind it. */

#include <jansson.h>

#include "text/grammar/automaton/automaton.h"

#define DECIMAL_MOST_DIGITS 340 /* before and behind the point, of a double */

struct decimal {
    bool negative;
    uint32_t n_whole, n_part;
    uint8_t whole[DECIMAL_MOST_DIGITS],
        part[DECIMAL_MOST_DIGITS]; /* without zeroes at their outer ends, but "0" */
};

/* With as few digits as say the same number. NULL: no memory. The caller frees it. */
char *decimal_text(const json_t *number);

/* The number of a text of JSON. False: it has more digits than a double. */
bool decimal_read(const char *text, struct decimal *ret_decimal);

enum decimal_order { DECIMAL_LESS = 1, DECIMAL_EQUAL = 2, DECIMAL_MORE = 4 };

/* Texts of numbers whose order to this one is among `orders`. */
const struct automaton *decimal_compared(struct automata *automata, const struct decimal *to,
                                         unsigned orders);

/* Texts of numbers that are a multiple of this one, which is above 0. NULL too where that takes too many
 * states. */
const struct automaton *decimal_multiples(struct automata *automata, const struct decimal *of);

#endif
