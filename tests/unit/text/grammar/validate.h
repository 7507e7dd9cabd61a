/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_GRAMMAR_VALIDATE_H
#define TESTS_UNIT_TEXT_GRAMMAR_VALIDATE_H

/* JSON Schema the other way round: whether a value is valid, by looking at it, for tests of what grammars
 * make. Knows type, enum, const, anyOf, $ref into $defs, and the keywords of objects, arrays, lengths and
 * bounds. */

#include <stdbool.h>

#include <jansson.h>

bool validate(const json_t *root, const json_t *schema, const json_t *value);

/* The text is JSON and valid. */
bool validate_text(const char *schema, const char *text, size_t len);

#endif
