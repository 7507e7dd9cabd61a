/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_TEXT_H
#define TEXT_GRAMMAR_JSON_TEXT_H

/* The parts of JSON as expressions: numbers, white space, brackets, any value.
 *
 * They make less than all that JSON allows, so that an answer ends and every reader takes it: white space is
 * a space, or a line's end and up to 20 blanks, where people put some; numbers have 15 digits before and
 * behind the point, integers 18, and exponents two. Strings: json_strings.h. */

#include "text/grammar/expression.h"

/* Rules that are made when they are first wanted; UINT32_MAX: not yet. */
struct json_text {
    struct rules *rules;
    uint32_t blank, string, escape, any_escape, number, integer, value, object, array;
};
void json_text_init(struct json_text *json, struct rules *rules);

/* The rule of that place, which is a frame of its own, made by `body` when it is first wanted. */
const struct expression *json_text_rule(struct json_text *json, uint32_t *place, const char *name,
                                        const struct expression *(*body)(struct json_text *json));

const struct expression *json_text_blank(struct json_text *json);   /* perhaps white space */
const struct expression *json_text_number(struct json_text *json);  /* any number */
const struct expression *json_text_integer(struct json_text *json); /* any integer */
const struct expression *json_text_value(struct json_text *json);   /* any value */
const struct expression *json_text_object(struct json_text *json);
const struct expression *json_text_array(struct json_text *json);

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

#endif
