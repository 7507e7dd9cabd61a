/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_TEXT_H
#define TEXT_GRAMMAR_JSON_TEXT_H

/* The parts of JSON as expressions: numbers, white space, brackets, any value.
 *
 * They generate a subset of JSON, so that an answer ends and every parser accepts it: white space is a space,
 * or a newline and up to 20 blanks, in the usual places; numbers have up to 15 digits before and after the
 * point, integers 18, exponents two. Strings: json_strings.h. */

#include "text/grammar/expression.h"

/* Rules built on first use; UINT32_MAX: not yet. */
struct json_text {
    struct rules *rules;
    uint32_t blank, string, escape, any_escape, number, integer, value, object, array;
};
void json_text_init(struct json_text *json, struct rules *rules);

/* The rule at *place, with its own frame; `body` builds it on first use. */
const struct expression *json_text_rule(struct json_text *json, uint32_t *place, const char *name,
                                        const struct expression *(*body)(struct json_text *json));

const struct expression *json_text_blank(struct json_text *json);   /* optional white space */
const struct expression *json_text_number(struct json_text *json);  /* any number */
const struct expression *json_text_integer(struct json_text *json); /* any integer */
const struct expression *json_text_value(struct json_text *json);   /* any value */
const struct expression *json_text_object(struct json_text *json);
const struct expression *json_text_array(struct json_text *json);

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

#endif
