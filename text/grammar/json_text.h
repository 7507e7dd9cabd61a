/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_TEXT_H
#define TEXT_GRAMMAR_JSON_TEXT_H

/* The parts of JSON as expressions: characters of strings, numbers within bounds, white space, any value.
 *
 * They generate a subset of JSON, so that an answer ends and every parser accepts it: white space is a
 * space, or a newline and up to 20 blanks, where people write it; numbers have up to 15 digits before and
 * after the point, integers 18, exponents two; strings contain no \u0000 and no lone surrogates. */

#include "text/grammar/expression.h"

/* Rules built on first use; UINT32_MAX: not yet. */
struct json_text {
    struct rules *rules;
    uint32_t blank, string, number, integer, value, object, array;
};
void json_text_init(struct json_text *json, struct rules *rules);

const struct expression *json_text_blank(struct json_text *json);   /* optional white space */
const struct expression *json_text_string(struct json_text *json);  /* any string */
const struct expression *json_text_number(struct json_text *json);  /* any number */
const struct expression *json_text_integer(struct json_text *json); /* any integer */
const struct expression *json_text_value(struct json_text *json);   /* any value */
const struct expression *json_text_object(struct json_text *json);
const struct expression *json_text_array(struct json_text *json);

/* One character of a string, literal or escaped (\u only in json_text_string, where characters are not
 * counted); and one of a set (EXPRESSION_CHARS), escaped where required. */
const struct expression *json_text_character(struct json_text *json);
const struct expression *json_text_spelling(struct rules *rules, const struct expression *chars);

/* "…" around the text of a string. */
const struct expression *json_text_quoted(struct json_text *json, const struct expression *text);

/* A string without escapes that is none of these, which are UTF-8, sorted by bytes and unique. */
const struct expression *json_text_other_string(struct json_text *json, const struct bytes *names,
                                                uint32_t n);

/* `{ a, b }` or `[ a, b ]`: the content between the brackets, which may be empty. */
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

/* Numbers from low to high, both whole and within ± JSON_MOST_BOUND, which means "no bound": integers, or
 * with `fractions` any number. `*_open` excludes the bound itself. NULL also if there is no such number. */
#define JSON_MOST_BOUND 999999999999999ll
struct json_bounds {
    int64_t low, high;
    bool low_open, high_open;
};
const struct expression *json_text_between(struct json_text *json, const struct json_bounds *bounds,
                                           bool fractions);

#endif
