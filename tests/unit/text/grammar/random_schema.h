/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_TEXT_GRAMMAR_RANDOM_SCHEMA_H
#define TESTS_UNIT_TEXT_GRAMMAR_RANDOM_SCHEMA_H

/* Random JSON Schemas of the keywords that validate.h supports. Every object sets additionalProperties:
 * properties that a schema leaves open are valid, but no grammar generates them. */

#include <jansson.h>

extern unsigned random_seed;

int random_dice(int n); /* 0 … n − 1 */

json_t *random_schema_root(void);

#endif
