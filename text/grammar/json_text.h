/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_TEXT_H
#define TEXT_GRAMMAR_JSON_TEXT_H

/* The parts of JSON as expressions: characters of strings, numbers within bounds, white space, any value.
 *
 * They make less than all that JSON allows, so that an answer ends and every reader takes it: white space is
 * a space, or a line's end and up to 20 blanks, where people put some; numbers have 15 digits before and
 * behind the point, integers 18, and exponents two; \u0000 and halves of surrogate pairs are in no string. */

#include "text/grammar/expression.h"

/* Rules that are made when they are first wanted; UINT32_MAX: not yet. */
struct json_text {
    struct rules *rules;
    uint32_t blank, string, number, integer, value, object, array;
};
void json_text_init(struct json_text *json, struct rules *rules);

const struct expression *json_text_blank(struct json_text *json);   /* perhaps white space */
const struct expression *json_text_string(struct json_text *json);  /* any string */
const struct expression *json_text_number(struct json_text *json);  /* any number */
const struct expression *json_text_integer(struct json_text *json); /* any integer */
const struct expression *json_text_value(struct json_text *json);   /* any value */
const struct expression *json_text_object(struct json_text *json);
const struct expression *json_text_array(struct json_text *json);

/* One character of a string, as it is or behind a backslash (\u is left to json_text_string, where nothing is
 * counted); and one of a set (EXPRESSION_CHARS), escaped where it must be. */
const struct expression *json_text_character(struct json_text *json);
const struct expression *json_text_spelling(struct rules *rules, const struct expression *chars);

/* "…" around the text of a string. */
const struct expression *json_text_quoted(struct json_text *json, const struct expression *text);

/* A string without escapes that is none of these, all of them UTF-8 and sorted by their bytes, each once. */
const struct expression *json_text_other_string(struct json_text *json, const struct bytes *names,
                                                uint32_t n);

/* `{ a, b }` or `[ a, b ]`: what stands between the brackets, which may be nothing. */
const struct expression *json_text_bracketed(struct json_text *json, const char *open,
                                             const struct expression *inner, const char *close);
/* `, item`. */
const struct expression *json_text_next_item(struct json_text *json, const struct expression *item);
/* `key: value`. */
const struct expression *json_text_member(struct json_text *json, const struct expression *key,
                                          const struct expression *value);
/* least … most items with commas between them. */
const struct expression *json_text_items(struct json_text *json, const struct expression *item,
                                         uint32_t least, uint32_t most);

/* Numbers from low to high, both whole and within ± JSON_MOST_BOUND, which is "no bound" too: an integer, or
 * with `fractions` any number between. `*_open`: the bound itself is not one. NULL too when there is none. */
#define JSON_MOST_BOUND 999999999999999ll
struct json_bounds {
    int64_t low, high;
    bool low_open, high_open;
};
const struct expression *json_text_between(struct json_text *json, const struct json_bounds *bounds,
                                           bool fractions);

#endif
