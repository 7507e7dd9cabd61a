/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_GRAMMAR_VALIDATE_H
#define TESTS_UNIT_TEXT_GRAMMAR_VALIDATE_H

/* A JSON Schema validator, for tests of the output of grammars. Supports type, enum, const, anyOf, $ref into
 * $defs, and the keywords of objects, arrays, lengths and bounds. */

#include <stdbool.h>

#include <jansson.h>

bool validate(const json_t *root, const json_t *schema, const json_t *value);

/* Whether the text is JSON and valid. */
bool validate_text(const char *schema, const char *text, size_t len);

#endif
