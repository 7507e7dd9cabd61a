/* SPDX-License-Identifier: MIT */
/* A schema is read from the top. What it allows beside its siblings (anyOf, allOf, $ref) is merged with them
 * first, so that what reads a type sees all that is said of it. A place that is named by $ref becomes a rule,
 * entered before it is read: recursion is a rule that names itself. */

#include "text/grammar/json_schema/json_schema.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/internal.h"

enum keyword_kind { ANNOTATION, STRUCTURE, ASSERTION };

/* Every keyword that is not refused. */
static const struct {
    const char *name;
    enum keyword_kind kind;
} keywords[] = {
    {"$schema", ANNOTATION},
    {"$id", ANNOTATION},
    {"$comment", ANNOTATION},
    {"$anchor", ANNOTATION},
    {"$defs", ANNOTATION},
    {"definitions", ANNOTATION},
    {"title", ANNOTATION},
    {"description", ANNOTATION},
    {"default", ANNOTATION},
    {"examples", ANNOTATION},
    {"example", ANNOTATION},
    {"deprecated", ANNOTATION},
    {"readOnly", ANNOTATION},
    {"writeOnly", ANNOTATION},
    {"discriminator", ANNOTATION},
    {"$ref", STRUCTURE},
    {"anyOf", STRUCTURE},
    {"oneOf", STRUCTURE},
    {"allOf", STRUCTURE},
    {"type", ASSERTION},
    {"enum", ASSERTION},
    {"const", ASSERTION},
    {"properties", ASSERTION},
    {"required", ASSERTION},
    {"items", ASSERTION},
    {"prefixItems", ASSERTION},
    {"additionalProperties", ASSERTION},
    {"minItems", ASSERTION},
    {"maxItems", ASSERTION},
    {"minLength", ASSERTION},
    {"maxLength", ASSERTION},
    {"pattern", ASSERTION},
    {"format", ASSERTION},
    {"minimum", ASSERTION},
    {"maximum", ASSERTION},
    {"exclusiveMinimum", ASSERTION},
    {"exclusiveMaximum", ASSERTION},
};

/* Looks at each key; whether there is a STRUCTURE or an ASSERTION. */
static bool check_keywords(struct schema_reader *reader, const json_t *schema, bool *ret_asserts)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        size_t i = 0, n = sizeof keywords / sizeof *keywords;
        while (i < n && strcmp(keywords[i].name, key) != 0)
            i++;
        if (i == n) {
            schema_refuse(reader, "the keyword \"%.60s\" is not supported", key);
            return false;
        }
        *ret_asserts |= keywords[i].kind == ASSERTION;
    }
    return true;
}

/* ---- values that are listed ---- */

static bool is_of_type(const json_t *value, const char *type)
{
    if (strcmp(type, "integer") == 0)
        return json_is_integer(value) ||
               (json_is_real(value) && json_real_value(value) == floor(json_real_value(value)));
    return strcmp(type, json_is_object(value)    ? "object"
                        : json_is_array(value)   ? "array"
                        : json_is_string(value)  ? "string"
                        : json_is_number(value)  ? "number"
                        : json_is_boolean(value) ? "boolean"
                                                 : "null") == 0;
}

static bool type_allows(const json_t *type, const json_t *value)
{
    bool allows = !type;
    for (size_t i = 0; json_is_array(type) && i < json_array_size(type); i++)
        allows |= type_allows(json_array_get(type, i), value);
    return allows || (json_is_string(type) && is_of_type(value, json_string_value(type)));
}

/* With as few digits as say the same number: 3.14 is not 3.1400000000000001. NULL: no memory. */
static char *text_of(const json_t *value)
{
    char *text = NULL;
    bool same = false;
    for (size_t digits = 15; digits <= 17 && !same; digits++) {
        free(text);
        text = json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits));
        json_t *back = text ? json_loads(text, JSON_DECODE_ANY, NULL) : NULL;
        same = !text || json_equal(back, value);
        json_decref(back);
    }
    return text;
}

static const struct expression *literal_value(struct schema_reader *reader, const json_t *value)
{
    char *text = text_of(value);
    const struct expression *literal = text ? expression_text(reader->rules, text) : NULL;
    free(text);
    return literal;
}

/* enum and const, of the types that `type` allows. */
static const struct expression *listed(struct schema_reader *reader, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    const json_t *type = json_object_get(schema, "type");
    struct expression_list choices = {0};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
            if (strcmp(keywords[i].name, key) == 0 && keywords[i].kind == ASSERTION &&
                strcmp(key, "enum") != 0 && strcmp(key, "const") != 0 && strcmp(key, "type") != 0)
                return schema_refuse(reader, "%s beside enum or const is not supported", key);
    }
    if (list && !json_is_array(list))
        return schema_refuse(reader, "enum is not an array");
    if (!schema_spend(reader, (1 + (uint64_t)json_array_size(list)) * (1 + json_array_size(type))))
        return NULL;
    for (size_t i = 0; list && i < json_array_size(list); i++) {
        value = json_array_get(list, i);
        if (type_allows(type, value) && (!one || json_equal(value, one)))
            expression_push(reader->rules, &choices, literal_value(reader, value));
    }
    if (!list && type_allows(type, one))
        expression_push(reader->rules, &choices, literal_value(reader, one));
    if (choices.n == 0 && !choices.failed)
        return schema_refuse(reader, "no value of enum or const is possible");
    return expression_choice(reader->rules, &choices);
}

/* ---- types ---- */

static const struct expression *of_type(struct schema_reader *reader, const json_t *schema, const char *type)
{
    if (strcmp(type, "object") == 0)
        return schema_object(reader, schema);
    if (strcmp(type, "array") == 0)
        return schema_array(reader, schema);
    if (strcmp(type, "string") == 0)
        return schema_string(reader, schema);
    if (strcmp(type, "number") == 0 || strcmp(type, "integer") == 0)
        return schema_number(reader, schema, type[0] == 'i');
    if (strcmp(type, "null") == 0)
        return expression_text(reader->rules, "null");
    if (strcmp(type, "boolean") == 0)
        return expression_or(reader->rules, expression_text(reader->rules, "true"),
                             expression_text(reader->rules, "false"));
    return schema_refuse(reader, "unknown type \"%.40s\"", type);
}

/* The type that the keywords are about, when none is said; NULL: they are about none. */
static const char *implied_type(const json_t *schema)
{
    static const char *const of[][2] = {
        {"properties", "object"}, {"required", "object"},         {"additionalProperties", "object"},
        {"items", "array"},       {"prefixItems", "array"},       {"minItems", "array"},
        {"maxItems", "array"},    {"minLength", "string"},        {"maxLength", "string"},
        {"pattern", "string"},    {"format", "string"},           {"minimum", "number"},
        {"maximum", "number"},    {"exclusiveMinimum", "number"}, {"exclusiveMaximum", "number"}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (json_object_get(schema, of[i][0]))
            return of[i][1];
    return NULL;
}

static const struct expression *of_types(struct schema_reader *reader, const json_t *schema)
{
    const json_t *type = json_object_get(schema, "type");
    struct expression_list choices = {0};
    if (!type) {
        const char *implied = implied_type(schema);
        return implied ? of_type(reader, schema, implied) : json_text_value(&reader->json);
    }
    if (json_is_string(type))
        return of_type(reader, schema, json_string_value(type));
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *name = json_string_value(json_array_get(type, i));
        expression_push(reader->rules, &choices, name ? of_type(reader, schema, name) : NULL);
    }
    if (!json_is_array(type) || json_array_size(type) == 0 || (choices.failed && reader->code == 0))
        return schema_refuse(reader, "type is neither a string nor an array of strings");
    return expression_choice(reader->rules, &choices);
}

/* ---- alternatives, references ---- */

static const struct expression *read_schema(struct schema_reader *reader, const json_t *schema);

/* anyOf or oneOf: each alternative, with what stands beside it. */
static const struct expression *alternatives(struct schema_reader *reader, const json_t *schema,
                                             const char *keyword)
{
    const json_t *list = json_object_get(schema, keyword);
    const json_t *beside = schema_without(reader, schema, keyword);
    struct expression_list choices = {0};
    bool asserts = false;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return schema_refuse(reader, "%s is not an array of schemas", keyword);
    if (!beside || !check_keywords(reader, beside, &asserts))
        return NULL;
    asserts |= json_object_get(beside, "$ref") || json_object_get(beside, "allOf") ||
               json_object_get(beside, "anyOf") || json_object_get(beside, "oneOf");
    for (size_t i = 0; i < json_array_size(list) && reader->code == 0; i++) {
        char key[32];
        snprintf(key, sizeof key, "%s/%zu", keyword, i);
        const json_t *one = json_array_get(list, i);
        if (json_is_false(one))
            continue;
        if (asserts)
            one = schema_merge(reader, beside, one);
        expression_push(reader->rules, &choices, one ? schema_below(reader, one, key) : NULL);
    }
    if (choices.n == 0 && !choices.failed)
        return schema_refuse(reader, "no alternative of %s can match", keyword);
    return expression_choice(reader->rules, &choices);
}

/* A place that is named: its rule, which is made with its first mention. */
static const struct expression *reference(struct schema_reader *reader, const char *ref)
{
    const json_t *schema = schema_resolve(reader, ref);
    if (!schema)
        return NULL;
    for (uint32_t i = 0; i < reader->n_refs; i++)
        if (reader->refs[i].schema == schema)
            return expression_rule(reader->rules, reader->refs[i].rule);
    uint32_t rule = rules_add(reader->rules, ref);
    if (reader->n_refs == SCHEMA_MOST_REFS || rule == UINT32_MAX)
        return schema_refuse(reader, "$ref names more than %u places", SCHEMA_MOST_REFS);
    reader->refs[reader->n_refs].schema = schema;
    reader->refs[reader->n_refs++].rule = rule;
    char path[sizeof reader->path];
    memcpy(path, reader->path, sizeof path);
    snprintf(reader->path, sizeof reader->path, "%.200s", ref + 1);
    const struct expression *body = read_schema(reader, schema);
    memcpy(reader->path, path, sizeof path);
    reader->rules->items[rule].body = body;
    return body ? expression_rule(reader->rules, rule) : NULL;
}

static const struct expression *with_reference(struct schema_reader *reader, const json_t *schema,
                                               bool asserts)
{
    const char *ref = json_string_value(json_object_get(schema, "$ref"));
    if (!ref)
        return schema_refuse(reader, "$ref is not a string");
    const json_t *beside = schema_without(reader, schema, "$ref");
    asserts |= json_object_get(schema, "allOf") || json_object_get(schema, "anyOf") ||
               json_object_get(schema, "oneOf");
    if (!asserts || !beside)
        return beside ? reference(reader, ref) : NULL;
    const json_t *target = schema_resolve(reader, ref);
    const json_t *merged = target ? schema_merge(reader, beside, target) : NULL;
    return merged ? read_schema(reader, merged) : NULL;
}

static const struct expression *all_of(struct schema_reader *reader, const json_t *schema)
{
    const json_t *list = json_object_get(schema, "allOf");
    const json_t *merged = schema_without(reader, schema, "allOf");
    if (!json_is_array(list))
        return schema_refuse(reader, "allOf is not an array of schemas");
    for (size_t i = 0; i < json_array_size(list) && merged; i++)
        merged = schema_merge(reader, merged, json_array_get(list, i));
    return merged ? read_schema(reader, merged) : NULL;
}

static const struct expression *read_object(struct schema_reader *reader, const json_t *schema)
{
    bool asserts = false;
    if (!check_keywords(reader, schema, &asserts))
        return NULL;
    if (json_object_get(schema, "$ref"))
        return with_reference(reader, schema, asserts);
    if (json_object_get(schema, "allOf"))
        return all_of(reader, schema);
    if (json_object_get(schema, "anyOf"))
        return alternatives(reader, schema, "anyOf");
    if (json_object_get(schema, "oneOf"))
        return alternatives(reader, schema, "oneOf");
    if (json_object_get(schema, "enum") || json_object_get(schema, "const"))
        return listed(reader, schema);
    return of_types(reader, schema);
}

static const struct expression *read_schema(struct schema_reader *reader, const json_t *schema)
{
    if (json_is_true(schema))
        return json_text_value(&reader->json);
    if (json_is_false(schema))
        return schema_refuse(reader, "the schema false allows nothing");
    if (!json_is_object(schema))
        return schema_refuse(reader, "a schema must be an object, true or false");
    if (reader->depth == SCHEMA_MOST_DEPTH)
        return schema_refuse(reader, "schemas nested more than %u deep", SCHEMA_MOST_DEPTH);
    reader->depth++;
    const struct expression *expression = read_object(reader, schema);
    reader->depth--;
    if (!expression && reader->code == 0)
        schema_refuse(reader, "the schema is too large");
    return expression;
}

const struct expression *schema_below(struct schema_reader *reader, const json_t *schema, const char *key)
{
    size_t len = strlen(reader->path);
    snprintf(reader->path + len, sizeof reader->path - len, "/%s", key);
    const struct expression *expression = read_schema(reader, schema);
    reader->path[len] = 0;
    return expression;
}

/* ---- all of it ---- */

static int finish(struct schema_reader *reader, const struct expression *body)
{
    struct rules *rules = reader->rules;
    if (reader->code != 0)
        return reader->code;
    rules->root = rules_add(rules, "root");
    if (!body || rules->root == UINT32_MAX)
        return error_set(reader->err, GRAMMAR_E_INVALID, "schema: too large");
    rules->items[rules->root].body = body;
    return 0;
}

/* Reads the text, by these flags of jansson's beside its own. NULL with the code. */
static const struct expression *read_text(struct schema_reader *reader, struct bytes text, size_t flags,
                                          size_t *ret_taken)
{
    json_error_t reason;
    reader->root = json_loadb(text.data, text.len, flags | JSON_REJECT_DUPLICATES, &reason);
    reader->merged = json_array();
    if (!reader->merged || (!reader->root && json_error_code(&reason) == json_error_out_of_memory))
        reader->code = -ENOMEM;
    else if (!reader->root)
        reader->code =
            error_set(reader->err, GRAMMAR_E_INVALID, "schema: line %d: %s", reason.line, reason.text);
    const struct expression *body = reader->code == 0 ? read_schema(reader, reader->root) : NULL;
    if (reader->root)
        *ret_taken = (size_t)reason.position;
    json_decref(reader->root);
    json_decref(reader->merged);
    return body;
}

int json_schema_read(struct bytes text, struct rules *rules, struct error *err)
{
    size_t taken;
    struct schema_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    reader->rules = rules;
    reader->err = err;
    json_text_init(&reader->json, rules);
    int r = finish(reader, read_text(reader, text, JSON_DECODE_ANY, &taken));
    free(reader);
    return r;
}

void json_schemas_init(struct json_schemas *schemas, struct rules *rules)
{
    *schemas = (struct json_schemas){0};
    json_text_init(&schemas->json, rules);
}

int json_schema_embed(struct json_schemas *schemas, struct bytes text, size_t *ret_taken,
                      const struct expression **ret_expression, struct error *err)
{
    struct schema_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return -ENOMEM;
    reader->rules = schemas->json.rules;
    reader->err = err;
    reader->json = schemas->json;
    reader->spent = schemas->spent;
    reader->copied = schemas->copied;
    *ret_expression = read_text(reader, text, JSON_DISABLE_EOF_CHECK, ret_taken);
    *schemas = (struct json_schemas){reader->json, reader->spent, reader->copied};
    int r = reader->code;
    free(reader);
    return r;
}

int json_schema_any_object(struct rules *rules, struct error *err)
{
    struct schema_reader reader = {.rules = rules, .err = err};
    json_text_init(&reader.json, rules);
    return finish(&reader, json_text_object(&reader.json));
}
