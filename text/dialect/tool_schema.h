/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_TOOL_SCHEMA_H
#define TEXT_DIALECT_TOOL_SCHEMA_H

/* The types that a tool's schema allows for a parameter: enough to distinguish texts from other values if a
 * model writes both without quotes. */

#include <jansson.h>

/* The kinds (literal.h) that a parameter may have; KIND_ANY if the schema does not restrict them. `schema`
 * may be NULL. */
unsigned tool_schema_kinds(const json_t *schema, const char *parameter);

/* The same for a schema inside `root`, which is searched for references. */
unsigned tool_schema_kinds_of(const json_t *root, const json_t *schema);

/* The schema after following references; NULL: a reference is broken, or they nest too deep. */
const json_t *tool_schema_resolve(const json_t *root, const json_t *schema);

#endif
