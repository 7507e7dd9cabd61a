/* SPDX-License-Identifier: MIT */
#ifndef TEXT_DIALECT_TOOL_SCHEMA_H
#define TEXT_DIALECT_TOOL_SCHEMA_H

/* What the schema of a tool's arguments says of one of them: enough to tell a text from other values where a
 * model writes both without quotes. */

#include <jansson.h>

/* The kinds (literal.h) that a parameter may have; KIND_ANY where the schema does not say. `schema` may be
 * NULL. */
unsigned tool_schema_kinds(const json_t *schema, const char *parameter);

/* The same of a schema inside `root`, in which it looks up what is referred to. */
unsigned tool_schema_kinds_of(const json_t *root, const json_t *schema);

/* What a schema is once references are followed; NULL: it refers to nothing, or too deep. */
const json_t *tool_schema_resolve(const json_t *root, const json_t *schema);

#endif
