/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_STRINGS_H
#define TEXT_GRAMMAR_JSON_STRINGS_H

/* Strings of JSON as expressions, with the ways in which JSON spells a character: as it is; control
 * characters, the quote and the backslash behind a backslash; what is not ASCII also as \uXXXX, which many
 * writers of JSON do. \u0000 and halves of surrogate pairs are in no string, but in literals. */

#include "text/grammar/json_text.h"

const struct expression *json_string_any(struct json_text *json); /* any string, all escapes that there are */

/* One character of any, or of a set (an EXPRESSION_CHARS). The second is for regex.h and automaton.h too:
 * `json` is the struct json_text. */
const struct expression *json_string_character(struct json_text *json);
const struct expression *json_string_spelling(void *json, const struct expression *chars);

/* Exactly this text, which is UTF-8; without the quotes. */
const struct expression *json_string_literal(struct json_text *json, struct bytes text);

/* "…" around the text of a string. */
const struct expression *json_string_quoted(struct json_text *json, const struct expression *text);

/* A string that is none of these, all of them UTF-8 and sorted by their bytes, each once. */
const struct expression *json_string_other(struct json_text *json, const struct bytes *names, uint32_t n);

#endif
