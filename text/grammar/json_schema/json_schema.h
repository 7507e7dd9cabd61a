/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H
#define TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H

/* JSON Schema (draft 2020-12, and what earlier drafts share with it) as rules for JSON text.
 *
 * All output validates against the schema, but not all valid JSON can be generated (json_text.h). Members
 * come in the order of `properties`. Without additionalProperties only those are generated; without
 * properties too, any member.
 *
 *     type (a name or a list)   enum   const   anyOf   oneOf (as anyOf)   allOf (merged)   $ref, $defs
 *     properties   required   additionalProperties
 *     items   prefixItems   minItems   maxItems
 *     minLength   maxLength   pattern   format (date, time, date-time, duration, uuid, email, hostname, ipv4,
 * uri) minimum   maximum   exclusiveMinimum   exclusiveMaximum, with whole numbers
 *
 * Annotations (title, description, default, …) are skipped. Any other keyword is rejected with an error that
 * names it and its place, rather than ignored. */

#include "text/grammar/json_text.h"

/* Reads the schema into the rules, which are empty. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int json_schema_read(struct bytes text, struct rules *rules, struct error *err);

/* Schemas embedded in other rules. They share white space and strings, which are built once. */
struct json_schemas {
    struct json_text json;
    uint64_t spent;
    size_t copied;
};
void json_schemas_init(struct json_schemas *schemas, struct rules *rules);

/* The schema at the start of the text, a JSON object, as an expression; `ret_taken`: its bytes. $ref and
 * size limits are per schema; the limit on work is for all together. Returns as json_schema_read. */
int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err);

/* Rules for any JSON object. */
int json_schema_any_object(struct rules *rules, struct error *err);

#endif
