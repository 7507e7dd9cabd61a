/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_STRINGS_H
#define TEXT_GRAMMAR_JSON_STRINGS_H

/* JSON strings as expressions, with all spellings of a character: itself; control characters, the quote and
 * the backslash escaped; non-ASCII also as \uXXXX, as many JSON writers have it. \u0000 and unpaired
 * surrogates occur only in literals. */

#include "text/grammar/json_text.h"

const struct expression *json_string_any(struct json_text *json); /* any string, with all escapes */

/* Any character, or one of a set (an EXPRESSION_CHARS). The second function is also the `spell` of regex.h
 * and automaton.h; `json` is the struct json_text. */
const struct expression *json_string_character(struct json_text *json);
const struct expression *json_string_spelling(void *json, const struct expression *chars);

/* Exactly this text, which is UTF-8; without the quotes. */
const struct expression *json_string_literal(struct json_text *json, struct bytes text);

/* "…" around the text of a string. */
const struct expression *json_string_quoted(struct json_text *json, const struct expression *text);

/* A string that is none of these, which are UTF-8, sorted by their bytes, without duplicates. */
const struct expression *json_string_other(struct json_text *json, const struct bytes *names, uint32_t n);

#endif
