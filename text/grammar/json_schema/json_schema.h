/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H
#define TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H

/* JSON Schema (draft 2020-12, and what the drafts before it have in common with it) as rules for JSON text.
 *
 * What is made validates against the schema; not all that validates is made (json_text.h, json_strings.h).
 * Members come in any order, and others where the schema leaves that open; where all are required and no
 * others allowed, as in OpenAI's strict schemas, they come in the order of `properties`. A keyword says
 * nothing of values of other types than its own. keywords.c has the list of keywords; these are kept with
 * limits:
 *
 *     not, oneOf, if     where the opposite can be said of the value as a whole: by types, values, bounds,
 *                        patterns, named members, items; oneOf only if its alternatives are not apart already
 *     uniqueItems        where items have listed values (enum, const, boolean, null)
 *     $ref               within the document, by $id, $anchor and JSON pointers; $dynamicRef where the name
 * is the document's only one unevaluated*       with what is evaluated in every alternative by itself
 *     patternProperties  up to 8 of one object
 *     format             those of formats.c
 *     pattern            as regex.h
 *     minProperties      names that are not in `properties` may repeat, as JSON has it, and count each time
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
 * bounds on size are its own, but for the work that all of them take together. It is read as closed: members
 * come in the order of `properties`, others only where additionalProperties or patternProperties says so or
 * no properties are described, no items behind prefixItems, and keywords imply the type that they are about.
 * So a model that calls a tool writes the arguments that the tool describes. As json_schema_read. */
int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err);

/* Rules for any JSON object. */
int json_schema_any_object(struct rules *rules, struct error *err);

#endif
