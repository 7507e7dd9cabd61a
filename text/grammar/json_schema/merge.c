/* SPDX-License-Identifier: MIT */
/* References, and schemas that hold together.
 *
 * Two schemas become one where that is simple: keywords that only one has, that are equal in both, or whose
 * values can be joined (properties, required, types). What would need more is refused by the keyword's name.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "text/grammar/json_schema/internal.h"

#define MOST_MERGED 4096       /* schemas that allOf and others may make */
#define MOST_COPIED (1u << 17) /* entries of theirs */

/* Keeps a new schema as long as the reader lives; NULL without memory, or when there are too many. */
static json_t *keep(struct schema_reader *reader, json_t *schema)
{
    if (schema && json_array_size(reader->merged) < MOST_MERGED &&
        json_array_append_new(reader->merged, schema) == 0)
        return schema;
    schema_refuse(reader, "the schema is too large");
    return NULL;
}

/* Charges what a copy of the schema, and of the lists in it that may grow, takes; false: too much. */
static bool charge(struct schema_reader *reader, const json_t *schema)
{
    reader->copied += 1 + json_object_size(schema) + json_object_size(json_object_get(schema, "properties")) +
                      json_array_size(json_object_get(schema, "required")) +
                      json_array_size(json_object_get(schema, "allOf")) +
                      json_array_size(json_object_get(schema, "type"));
    if (reader->copied > MOST_COPIED)
        schema_refuse(reader, "the schema is too large");
    return reader->copied <= MOST_COPIED;
}

/* ---- references ---- */

/* The next part of a JSON pointer, with ~0 and ~1 made ~ and /. */
static const char *pointer_part(const char *pointer, char *ret_part, size_t size)
{
    size_t n = 0;
    for (; *pointer && *pointer != '/'; pointer++) {
        char c = *pointer;
        if (c == '~' && (pointer[1] == '0' || pointer[1] == '1'))
            c = *++pointer == '0' ? '~' : '/';
        if (n + 1 < size)
            ret_part[n++] = c;
    }
    ret_part[n] = 0;
    return pointer;
}

const json_t *schema_resolve(struct schema_reader *reader, const char *ref)
{
    const json_t *at = reader->root;
    const char *pointer = ref + 1;
    if (ref[0] != '#' || (pointer[0] && pointer[0] != '/')) {
        schema_refuse(reader, "$ref \"%.80s\" does not point into this schema (#/…)", ref);
        return NULL;
    }
    while (*pointer == '/' && at) {
        char part[256];
        pointer = pointer_part(pointer + 1, part, sizeof part);
        if (json_is_array(at)) {
            uint32_t index;
            at = number_read_u32(part, 0, UINT32_MAX, &index, NULL) < 0 ? NULL : json_array_get(at, index);
        } else {
            at = json_object_get(at, part);
        }
    }
    if (!at)
        schema_refuse(reader, "$ref \"%.80s\" not found in the schema", ref);
    return at;
}

/* ---- merging ---- */

const json_t *schema_without(struct schema_reader *reader, const json_t *schema, const char *keyword)
{
    json_t *copy = charge(reader, schema) ? keep(reader, json_copy((json_t *)schema)) : NULL;
    if (copy)
        json_object_del(copy, keyword);
    return copy;
}

/* Of a property that both have: both hold. */
static json_t *both(json_t *a, json_t *b)
{
    return json_equal(a, b) || json_is_true(b) ? json_incref(a)
           : json_is_true(a)                   ? json_incref(b)
                                               : json_pack("{s:[O,O]}", "allOf", a, b);
}

static json_t *merge_properties(json_t *a, json_t *b)
{
    json_t *merged = json_copy(a), *value;
    const char *key;
    json_object_foreach(b, key, value)
    {
        json_t *other = json_object_get(merged, key);
        json_object_set_new(merged, key, other ? both(other, value) : json_incref(value));
    }
    return merged;
}

static json_t *merge_required(json_t *a, json_t *b)
{
    json_t *merged = json_copy(a);
    json_array_extend(merged, b);
    return merged;
}

static bool type_has(const json_t *type, const char *name)
{
    for (size_t i = 0; json_is_array(type) && i < json_array_size(type); i++)
        if (type_has(json_array_get(type, i), name))
            return true;
    const char *own = json_string_value(type);
    return own && (strcmp(own, name) == 0 || (strcmp(own, "number") == 0 && strcmp(name, "integer") == 0));
}

/* The types that both have; NULL: none. */
static json_t *merge_types(const json_t *a, const json_t *b)
{
    static const char *const names[] = {"object", "array", "string", "number", "integer", "boolean", "null"};
    json_t *merged = json_array();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (type_has(a, names[i]) && type_has(b, names[i]) &&
            !(strcmp(names[i], "integer") == 0 && type_has(merged, "number")))
            json_array_append_new(merged, json_string(names[i]));
    if (json_array_size(merged) > 0)
        return merged;
    json_decref(merged);
    return NULL;
}

/* What a keyword becomes that both schemas have with different values; NULL: that is not known here. */
static json_t *merge_values(const char *key, json_t *a, json_t *b)
{
    static const char *const words[] = {"title",       "description", "default",      "examples",
                                        "example",     "$comment",    "deprecated",   "readOnly",
                                        "writeOnly",   "$id",         "$schema",      "$defs",
                                        "definitions", "$anchor",     "discriminator"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(key, words[i]) == 0)
            return json_incref(a);
    if (strcmp(key, "properties") == 0 && json_is_object(a) && json_is_object(b))
        return merge_properties(a, b);
    if (strcmp(key, "required") == 0 && json_is_array(a) && json_is_array(b))
        return merge_required(a, b);
    if (strcmp(key, "allOf") == 0 && json_is_array(a) && json_is_array(b))
        return merge_required(a, b);
    if (strcmp(key, "type") == 0)
        return merge_types(a, b);
    return NULL;
}

/* additionalProperties is about the properties beside it, so it cannot be said of those of another schema. */
static bool closes_over(const json_t *closed, const json_t *other)
{
    const json_t *additional = json_object_get(closed, "additionalProperties");
    const json_t *own = json_object_get(closed, "properties");
    const char *key;
    json_t *value;
    if (!additional || json_is_true(additional))
        return false;
    json_object_foreach(json_object_get(other, "properties"), key, value)
    {
        if (!json_object_get(own, key))
            return true;
    }
    return false;
}

const json_t *schema_merge(struct schema_reader *reader, const json_t *a, const json_t *b)
{
    if (json_is_true(b))
        return a;
    if (!json_is_object(b) || !json_is_object(a)) {
        schema_refuse(reader, "a schema combined with others is not an object");
        return NULL;
    }
    const char *ref = json_string_value(json_object_get(b, "$ref"));
    if (ref && !json_object_get(a, "$ref")) { /* the target's own keywords, and what stands beside the ref */
        const json_t *target = schema_resolve(reader, ref), *beside = schema_without(reader, b, "$ref");
        if (++reader->depth > SCHEMA_MOST_DEPTH)
            schema_refuse(reader, "circular $ref");
        const json_t *whole = target && beside && reader->code == 0 ? schema_merge(reader, a, beside) : NULL;
        const json_t *merged = whole ? schema_merge(reader, whole, target) : NULL;
        reader->depth--;
        return merged;
    }
    if (closes_over(a, b) || closes_over(b, a)) {
        schema_refuse(reader,
                      "additionalProperties is not supported where other schemas have properties too");
        return NULL;
    }
    if (!charge(reader, a) || !charge(reader, b))
        return NULL;
    json_t *merged = keep(reader, json_copy((json_t *)a)), *value;
    const char *key;
    json_object_foreach(merged ? (json_t *)b : NULL, key, value)
    {
        json_t *own = json_object_get(merged, key);
        json_t *joined = !own || json_equal(own, value) ? json_incref(value) : merge_values(key, own, value);
        if (!joined || json_object_set_new(merged, key, joined) != 0) {
            schema_refuse(reader, "%.60s applies twice to one value, which is not supported", key);
            return NULL;
        }
    }
    return merged;
}
