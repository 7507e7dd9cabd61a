/* SPDX-License-Identifier: MIT */
/* Assertions: what a schema says of a value without other schemas about it. A keyword that is about a type
 * says nothing of values of other types; in a closed reading it says that the value is of that type, as
 * people mean it who leave `type` out. */

#include <math.h>
#include <string.h>

#include "text/grammar/json_schema/shapes.h"

/* ---- type, enum, const ---- */

static bool read_type(struct schema_reader *reader, const json_t *type, uint32_t *types, bool *any_number)
{
    static const struct {
        const char *name;
        uint32_t type;
    } names[] = {{"null", TYPE_NULL},     {"boolean", TYPE_FALSE | TYPE_TRUE},
                 {"number", TYPE_NUMBER}, {"integer", TYPE_NUMBER},
                 {"string", TYPE_STRING}, {"array", TYPE_ARRAY},
                 {"object", TYPE_OBJECT}};
    const char *name = json_string_value(type);
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0) {
            *types |= names[i].type;
            *any_number |= strcmp(name, "number") == 0;
            return true;
        }
    if (name)
        schema_refuse(reader, "unknown type \"%.40s\"", name);
    else
        schema_refuse(reader, "type is neither a string nor an array of strings");
    return false;
}

static bool read_types(struct schema_reader *reader, const json_t *type, struct shape *shape)
{
    uint32_t types = 0;
    bool any_number = false, read = true;
    for (size_t i = 0; i < json_array_size(type) && read; i++)
        read = read_type(reader, json_array_get(type, i), &types, &any_number);
    if (!json_is_array(type) || json_array_size(type) == 0)
        read = read_type(reader, type, &types, &any_number);
    shape->types = types;
    if (read && (types & TYPE_NUMBER) && !any_number)
        read = shape_push(reader, &shape->numbers, &(struct atom){.kind = ATOM_INTEGER}, sizeof(struct atom));
    return read && schema_spend(reader, json_array_size(type));
}

static bool read_values(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    const json_t *list = json_object_get(schema, "enum"), *one = json_object_get(schema, "const");
    if (list && !json_is_array(list)) {
        schema_refuse(reader, "enum is not an array");
        return false;
    }
    shape->listed = list;
    if (!one)
        return true;
    if (list) {
        bool there = false;
        for (size_t i = 0; i < json_array_size(list) && !there; i++)
            there = json_values_equal(json_array_get(list, i), one);
        if (!there || !schema_spend(reader, json_array_size(list))) {
            shape->types = 0;
            return reader->code == 0;
        }
    }
    shape->listed = schema_keep(reader, json_pack("[O]", one));
    return shape->listed != NULL;
}

/* ---- strings, numbers ---- */

static bool read_strings(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    static const struct {
        const char *keyword;
        enum atom_kind kind;
    } keywords[] = {{"minLength", ATOM_MIN_LENGTH},
                    {"maxLength", ATOM_MAX_LENGTH},
                    {"pattern", ATOM_PATTERN},
                    {"format", ATOM_FORMAT}};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const json_t *value = json_object_get(schema, keywords[i].keyword);
        uint32_t count;
        if (!value)
            continue;
        if (i >= 2 && !json_is_string(value)) {
            schema_refuse(reader, "%s is not a string", keywords[i].keyword);
            return false;
        }
        if (i < 2 && !schema_count(reader, schema, keywords[i].keyword, GRAMMAR_MOST_REPEATS, 0, &count))
            return false;
        if (i == 0 && count == 0)
            continue;
        if (!shape_push(reader, &shape->strings, &(struct atom){.kind = keywords[i].kind, .value = value},
                        sizeof(struct atom)))
            return false;
    }
    return true;
}

static bool read_numbers(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    static const struct {
        const char *keyword;
        enum atom_kind kind;
    } keywords[] = {{"minimum", ATOM_MINIMUM},
                    {"maximum", ATOM_MAXIMUM},
                    {"exclusiveMinimum", ATOM_EXCLUSIVE_MINIMUM},
                    {"exclusiveMaximum", ATOM_EXCLUSIVE_MAXIMUM},
                    {"multipleOf", ATOM_MULTIPLE}};
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++) {
        const json_t *value = json_object_get(schema, keywords[i].keyword);
        if (!value)
            continue;
        if (!json_is_number(value)) {
            schema_refuse(reader, "%s is not a number", keywords[i].keyword);
            return false;
        }
        if (keywords[i].kind == ATOM_MULTIPLE && json_number_value(value) <= 0) {
            schema_refuse(reader, "multipleOf is not above 0");
            return false;
        }
        if (!shape_push(reader, &shape->numbers, &(struct atom){.kind = keywords[i].kind, .value = value},
                        sizeof(struct atom)))
            return false;
    }
    return true;
}

/* ---- arrays ---- */

static bool push_items(struct schema_reader *reader, struct shape *shape, uint32_t first, uint32_t last,
                       const json_t *schema)
{
    return shape_push(reader, &shape->items,
                      &(struct items){.first = first, .last = last, .claim = {schema, false}, .marks = true},
                      sizeof(struct items));
}

static bool read_contains(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    const json_t *value = json_object_get(schema, "contains");
    struct contains contains = {.claim = {value, false}, .marks = true};
    if (!schema_count(reader, schema, "minContains", GRAMMAR_MOST_REPEATS, 1, &contains.least) ||
        !schema_count(reader, schema, "maxContains", GRAMMAR_MOST_REPEATS, GRAMMAR_UNBOUNDED, &contains.most))
        return false;
    if (contains.least > contains.most)
        shape->types &= ~(uint32_t)TYPE_ARRAY;
    return !value || shape_push(reader, &shape->contains, &contains, sizeof contains);
}

static bool read_items(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    const json_t *items = json_object_get(schema, "items"), *prefix = json_object_get(schema, "prefixItems");
    const json_t *unique = json_object_get(schema, "uniqueItems");
    const size_t n = json_array_size(prefix);
    if (prefix && !json_is_array(prefix)) {
        schema_refuse(reader, "prefixItems is not an array of schemas");
        return false;
    }
    if (json_is_array(items)) {
        schema_refuse(reader, "items is an array; use prefixItems (JSON Schema 2020-12)");
        return false;
    }
    if (n > SCHEMA_MOST_NAMES) { /* each is an expression within that of the one before */
        schema_refuse(reader, "more than %u prefixItems are not supported", SCHEMA_MOST_NAMES);
        return false;
    }
    if (unique && !json_is_boolean(unique)) {
        schema_refuse(reader, "uniqueItems is neither true nor false");
        return false;
    }
    shape->unique = json_is_true(unique);
    if (items && !push_items(reader, shape, (uint32_t)n, UINT32_MAX, items))
        return false;
    for (uint32_t i = (uint32_t)n; i-- > 0;)
        if (!push_items(reader, shape, i, i, json_array_get(prefix, i)))
            return false;
    if (!schema_count(reader, schema, "minItems", GRAMMAR_MOST_REPEATS, 0, &shape->min_items) ||
        !schema_count(reader, schema, "maxItems", GRAMMAR_MOST_REPEATS, GRAMMAR_UNBOUNDED, &shape->max_items))
        return false;
    if (shape->min_items > shape->max_items)
        shape->types &= ~(uint32_t)TYPE_ARRAY;
    return read_contains(reader, schema, shape);
}

/* ---- objects ---- */

static bool read_required(struct schema_reader *reader, const json_t *required, struct shape *shape)
{
    if (required && !json_is_array(required)) {
        schema_refuse(reader, "required is not an array of strings");
        return false;
    }
    if (json_array_size(required) > SCHEMA_MOST_NAMES) {
        schema_refuse(reader, "more than %u required properties are not supported", SCHEMA_MOST_NAMES);
        return false;
    }
    for (size_t i = json_array_size(required); i-- > 0;) {
        const json_t *name = json_array_get(required, i);
        if (!json_is_string(name)) {
            schema_refuse(reader, "required has an entry that is not a string");
            return false;
        }
        if (strlen(json_string_value(name)) != json_string_length(name)) {
            schema_refuse(reader, "a name with a NUL character is not supported");
            return false;
        }
        if (!shape_push(reader, &shape->required, &(struct name){.name = json_string_value(name)},
                        sizeof(struct name)))
            return false;
    }
    return true;
}

/* As OpenAI has it: every property is required, and no others are allowed. */
static bool is_strict(struct schema_reader *reader, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required");
    const char *name;
    json_t *value;
    if (!json_is_false(json_object_get(schema, "additionalProperties")) ||
        json_object_get(schema, "patternProperties") ||
        !schema_spend(reader, (uint64_t)json_object_size(properties) * json_array_size(required)))
        return false;
    json_object_foreach((json_t *)properties, name, value)
    {
        bool there = false;
        for (size_t i = 0; i < json_array_size(required) && !there; i++)
            there = strcmp(json_string_value(json_array_get(required, i)), name) == 0;
        if (!there)
            return false;
    }
    return true;
}

static bool read_members(struct schema_reader *reader, const json_t *schema, struct shape *shape)
{
    struct group group = {.properties = json_object_get(schema, "properties"),
                          .patterns = json_object_get(schema, "patternProperties"),
                          .additional = json_object_get(schema, "additionalProperties"),
                          .marks = true};
    const json_t *names = json_object_get(schema, "propertyNames");
    if ((group.properties && !json_is_object(group.properties)) ||
        (group.patterns && !json_is_object(group.patterns))) {
        schema_refuse(reader, "%s is not an object",
                      group.properties && !json_is_object(group.properties) ? "properties"
                                                                            : "patternProperties");
        return false;
    }
    if (group.additional && !json_is_boolean(group.additional) && !json_is_object(group.additional)) {
        schema_refuse(reader, "additionalProperties is not a schema");
        return false;
    }
    if (json_object_size(group.properties) > SCHEMA_MOST_NAMES) {
        schema_refuse(reader, "more than %u properties are not supported", SCHEMA_MOST_NAMES);
        return false;
    }
    if ((group.properties || group.patterns || group.additional) &&
        !shape_push(reader, &shape->groups, &group, sizeof group))
        return false;
    if (names &&
        !shape_push(reader, &shape->names, &(struct names){.claim = {names, false}}, sizeof(struct names)))
        return false;
    if (!schema_count(reader, schema, "minProperties", GRAMMAR_MOST_REPEATS, 0, &shape->min_members) ||
        !schema_count(reader, schema, "maxProperties", GRAMMAR_MOST_REPEATS, GRAMMAR_UNBOUNDED,
                      &shape->max_members))
        return false;
    if (shape->min_members > shape->max_members)
        shape->types &= ~(uint32_t)TYPE_OBJECT;
    if (!read_required(reader, json_object_get(schema, "required"), shape))
        return false;
    shape->strict = is_strict(reader, schema);
    return reader->code == 0;
}

/* ---- all of it ---- */

/* The type that the keywords are about, when none is said; TYPE_ALL: they are about none. */
static uint32_t implied_type(const json_t *schema)
{
    static const struct {
        const char *keyword;
        uint32_t type;
    } of[] = {{"properties", TYPE_OBJECT},
              {"required", TYPE_OBJECT},
              {"additionalProperties", TYPE_OBJECT},
              {"patternProperties", TYPE_OBJECT},
              {"propertyNames", TYPE_OBJECT},
              {"minProperties", TYPE_OBJECT},
              {"maxProperties", TYPE_OBJECT},
              {"items", TYPE_ARRAY},
              {"prefixItems", TYPE_ARRAY},
              {"contains", TYPE_ARRAY},
              {"minItems", TYPE_ARRAY},
              {"maxItems", TYPE_ARRAY},
              {"uniqueItems", TYPE_ARRAY},
              {"minLength", TYPE_STRING},
              {"maxLength", TYPE_STRING},
              {"pattern", TYPE_STRING},
              {"format", TYPE_STRING},
              {"minimum", TYPE_NUMBER},
              {"maximum", TYPE_NUMBER},
              {"exclusiveMinimum", TYPE_NUMBER},
              {"exclusiveMaximum", TYPE_NUMBER},
              {"multipleOf", TYPE_NUMBER}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++)
        if (json_object_get(schema, of[i].keyword))
            return of[i].type;
    return TYPE_ALL;
}

bool schema_assertions(struct schema_reader *reader, const json_t *schema, struct shape *ret_shape)
{
    const json_t *type = json_object_get(schema, "type");
    struct shape shape = shape_any();
    if (type && !read_types(reader, type, &shape))
        return false;
    if (!type && reader->closed && !json_object_get(schema, "enum") && !json_object_get(schema, "const"))
        shape.types = implied_type(schema);
    if (!read_values(reader, schema, &shape) || !read_strings(reader, schema, &shape) ||
        !read_numbers(reader, schema, &shape) || !read_items(reader, schema, &shape) ||
        !read_members(reader, schema, &shape))
        return false;
    *ret_shape = shape;
    return true;
}
