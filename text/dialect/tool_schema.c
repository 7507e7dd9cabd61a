/* SPDX-License-Identifier: MIT */
/* See tool_schema.h. */

#include "text/dialect/tool_schema.h"

#include <string.h>

#include "text/dialect/literal.h"

#define MOST_DEPTH     8
#define MOST_LOOKED_AT 4096 /* schemas, for one answer: a schema that refers to itself has no end */

static unsigned kind_of_name(const char *name)
{
    static const struct {
        const char *name;
        unsigned kind;
    } names[] = {{"string", KIND_TEXT},  {"number", KIND_NUMBER}, {"integer", KIND_NUMBER},
                 {"boolean", KIND_FLAG}, {"null", KIND_NULL},     {"object", KIND_OBJECT},
                 {"array", KIND_ARRAY}};
    for (size_t i = 0; name && i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i].name) == 0)
            return names[i].kind;
    return 0;
}

static unsigned kind_of_value(const json_t *value)
{
    switch (json_typeof(value)) {
    case JSON_STRING:
        return KIND_TEXT;
    case JSON_OBJECT:
        return KIND_OBJECT;
    case JSON_ARRAY:
        return KIND_ARRAY;
    case JSON_NULL:
        return KIND_NULL;
    case JSON_TRUE:
    case JSON_FALSE:
        return KIND_FLAG;
    default:
        return KIND_NUMBER;
    }
}

const json_t *tool_schema_resolve(const json_t *root, const json_t *schema)
{
    for (int depth = 0; depth < MOST_DEPTH; depth++) {
        const char *at = json_string_value(json_object_get(schema, "$ref"));
        if (!at)
            return schema;
        if (strcmp(at, "#") == 0)
            return root;
        if (at[0] != '#')
            return NULL;
        schema = root;
        for (at++; *at == '/' && schema;) {
            char name[256];
            size_t n = 0;
            for (at++; *at && *at != '/' && n < sizeof name - 1; at++) {
                if (at[0] == '~' && (at[1] == '0' || at[1] == '1'))
                    name[n++] = *++at == '0' ? '~' : '/';
                else
                    name[n++] = *at;
            }
            name[n] = 0;
            schema = json_object_get(schema, name);
        }
        if (!schema)
            return NULL;
    }
    return NULL;
}

static unsigned kinds(const json_t *root, const json_t *schema, int depth, int *left);

/* Of any of these, or of all. */
static unsigned kinds_of_list(const json_t *root, const json_t *list, bool all, int depth, int *left)
{
    unsigned set = all ? KIND_ANY : 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const unsigned one = kinds(root, json_array_get(list, i), depth, left);
        set = all ? set & one : set | one;
    }
    return set;
}

static unsigned kinds(const json_t *root, const json_t *schema, int depth, int *left)
{
    static const char *const unions[] = {"anyOf", "oneOf"};
    unsigned set = KIND_ANY;
    schema = tool_schema_resolve(root, schema);
    if (!json_is_object(schema) || depth > MOST_DEPTH || --*left < 0)
        return KIND_ANY;
    const json_t *type = json_object_get(schema, "type"), *values = json_object_get(schema, "enum"),
                 *value = json_object_get(schema, "const");
    unsigned some = 0;
    for (size_t i = 0; i < json_array_size(type); i++)
        some |= kind_of_name(json_string_value(json_array_get(type, i)));
    some |= kind_of_name(json_string_value(type));
    set &= some ? some : KIND_ANY;
    some = value ? kind_of_value(value) : 0;
    for (size_t i = 0; i < json_array_size(values); i++)
        some |= kind_of_value(json_array_get(values, i));
    set &= some ? some : KIND_ANY;
    for (size_t i = 0; i < 2; i++)
        if (json_array_size(json_object_get(schema, unions[i])) > 0)
            set &= kinds_of_list(root, json_object_get(schema, unions[i]), false, depth + 1, left);
    if (json_array_size(json_object_get(schema, "allOf")) > 0)
        set &= kinds_of_list(root, json_object_get(schema, "allOf"), true, depth + 1, left);
    return set ? set : KIND_ANY;
}

unsigned tool_schema_kinds_of(const json_t *root, const json_t *schema)
{
    int left = MOST_LOOKED_AT;
    return kinds(root, schema, 0, &left);
}

unsigned tool_schema_kinds(const json_t *schema, const char *parameter)
{
    const json_t *root = schema;
    schema = tool_schema_resolve(root, schema);
    const json_t *member = json_object_get(json_object_get(schema, "properties"), parameter);
    return member ? tool_schema_kinds_of(root, member) : KIND_ANY;
}
