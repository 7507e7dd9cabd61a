/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H
#define TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H

/* JSON Schema (draft 2020-12, and what the drafts before it have in common with it) as rules for JSON text.
 *
 * What is made validates against the schema; not all that validates is made (json_text.h). Members come in
 * the order of `properties`; where additionalProperties is not said, only those are made, or, without
 * properties, any.
 *
 *     type (a name or a list)   enum   const   anyOf   oneOf (as anyOf)   allOf (merged)   $ref, $defs
 *     properties   required   additionalProperties
 *     items   prefixItems   minItems   maxItems
 *     minLength   maxLength   pattern   format (date, time, date-time, duration, uuid, email, hostname, ipv4,
 * uri) minimum   maximum   exclusiveMinimum   exclusiveMaximum, with whole numbers
 *
 * Annotations (title, description, default, …) are skipped. Every other keyword is refused by its name and
 * place: an answer never looks as if it had been kept to what it was not. */

#include "text/grammar/json_text.h"

/* Reads the schema into the rules, which are empty. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int json_schema_read(struct bytes text, struct rules *rules, struct error *err);

/* Schemas that stand in other rules, and what they share: white space and strings are made once. */
struct json_schemas {
    struct json_text json;
    uint64_t spent;
    size_t copied;
};
void json_schemas_init(struct json_schemas *schemas, struct rules *rules);

/* The schema that the text begins with, an object of JSON, as an expression; `ret_taken`: its bytes. $ref and
 * bounds on size are its own, but for the work that all of them take together. As json_schema_read. */
int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err);

/* Rules for any JSON object. */
int json_schema_any_object(struct rules *rules, struct error *err);

#endif
