/* SPDX-License-Identifier: MIT */
#ifndef WORKER_GRAMMAR_JSON_SCHEMA_H
#define WORKER_GRAMMAR_JSON_SCHEMA_H

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

#include "worker/grammar/expression.h"

/* Reads the schema into the rules, which are empty. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int json_schema_read(struct bytes text, struct rules *rules, struct error *err);

/* Rules for any JSON object. */
int json_schema_any_object(struct rules *rules, struct error *err);

#endif
