/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H
#define TEXT_GRAMMAR_JSON_SCHEMA_JSON_SCHEMA_H

/* JSON Schema (draft 2020-12, and the compatible parts of earlier drafts) as rules for JSON text.
 *
 * Generated texts validate against the schema; not every valid text can be generated (json_text.h,
 * json_strings.h). Members come in any order, and other members are possible unless the schema forbids them.
 * If all are required and no others allowed, as in OpenAI's strict schemas, they come in the order of
 * `properties`. A keyword does not restrict values of other types. keywords.c has the list of keywords; these
 * have limits:
 *
 *     not, oneOf, if     only if the opposite can be expressed for the value as a whole: by types, values,
 *                        bounds, patterns, named members, items; oneOf without overlaps has no limit
 *     uniqueItems        only for items with listed values (enum, const, boolean, null)
 *     $ref               within the document, by $id, $anchor and JSON pointers; $dynamicRef if its name is
 *                        unique in the document
 *     unevaluated…       with what each alternative evaluates separately
 *     patternProperties  up to 8 of one object
 *     format             those of formats.c
 *     pattern            as regex.h
 *     minProperties      names that are not in `properties` may repeat, as in JSON, and count each time
 *
 * Annotations (title, description, default, …) are skipped. Every other keyword is rejected with its name and
 * place, so no schema is enforced only in part. */

#include "text/grammar/json_text.h"

/* Reads the schema into the rules, which are empty. 0, GRAMMAR_E_INVALID with the reason, -ENOMEM. */
int json_schema_read(struct bytes text, struct rules *rules, struct error *err);

/* State shared by schemas embedded in other rules: white space and strings are built once. */
struct json_schemas {
    struct json_text json;
    uint64_t spent;
    size_t copied;
};
void json_schemas_init(struct json_schemas *schemas, struct rules *rules);

/* The schema at the beginning of the text, a JSON object, as an expression; *ret_taken: its bytes. Its $refs
 * and bounds on size are separate from those of other schemas; only the work is bounded in common. It is read
 * as closed: members come in the order of `properties`, others only if additionalProperties or
 * patternProperties allows them or no properties are described, no items follow prefixItems, and keywords
 * imply their type. So a model that calls a tool writes the arguments that the tool describes. Results as
 * json_schema_read. */
int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err);

/* Rules for any JSON object. */
int json_schema_any_object(struct rules *rules, struct error *err);

#endif
