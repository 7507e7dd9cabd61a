/* SPDX-License-Identifier: MIT */
#ifndef TEXT_GRAMMAR_JSON_SCHEMA_INTERNAL_H
#define TEXT_GRAMMAR_JSON_SCHEMA_INTERNAL_H

/* What the parts of json_schema.c share. A function for a part returns the expression, or NULL with
 * reader->code set: GRAMMAR_E_INVALID with the reason, or -ENOMEM. */

#include <jansson.h>

#include "text/grammar/json_text.h"

#define SCHEMA_MOST_DEPTH 64   /* of nested schemas */
#define SCHEMA_MOST_REFS  1024 /* of places that $ref points to */
#define SCHEMA_MOST_NAMES 2048 /* of properties of an object, and of those required */

struct schema_reader {
    struct rules *rules;
    struct json_text json;
    json_t *root;
    struct error *err;
    int code;
    uint32_t depth;
    char path[256]; /* the current place, as a JSON pointer; truncated to fit */
    struct {
        const json_t *schema;
        uint32_t rule;
    } refs[SCHEMA_MOST_REFS]; /* [n_refs] */
    uint32_t n_refs;
    size_t copied;  /* entries of objects that were copied to merge schemas */
    uint64_t spent; /* schema_spend */
    json_t *merged; /* an array that owns the schemas made for allOf */
};

/* Sets why the schema here is rejected; returns NULL. */
const struct expression *schema_refuse(struct schema_reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Charges for comparing lists of values, types and names; false if the schema is rejected. */
bool schema_spend(struct schema_reader *reader, uint64_t steps);

/* A schema one level below the current place. */
const struct expression *schema_below(struct schema_reader *reader, const json_t *schema, const char *key);

/* The schema that a $ref points to, or NULL (merge.c). */
const json_t *schema_resolve(struct schema_reader *reader, const char *ref);
/* Both schemas merged into one, which the reader owns; NULL if they cannot be. */
const json_t *schema_merge(struct schema_reader *reader, const json_t *a, const json_t *b);
/* A copy of the schema without a keyword, which the reader owns; or NULL. */
const json_t *schema_without(struct schema_reader *reader, const json_t *schema, const char *keyword);

/* The whole number ≥ 0 of a keyword, or `missing`. False if it is rejected. */
bool schema_count(struct schema_reader *reader, const json_t *schema, const char *keyword, uint32_t missing,
                  uint32_t *ret_count);

/* By type; null and boolean are literals. */
const struct expression *schema_object(struct schema_reader *reader, const json_t *schema);
const struct expression *schema_array(struct schema_reader *reader, const json_t *schema);
const struct expression *schema_string(struct schema_reader *reader, const json_t *schema);
const struct expression *schema_number(struct schema_reader *reader, const json_t *schema, bool integer);

#endif
