/* SPDX-License-Identifier: MIT */
/* Objects and arrays. Every object with properties is a rule of its own, so that a schema's parts stay small
 * whatever contains them. */

#include <stdlib.h>
#include <string.h>

#include "text/grammar/json_schema/internal.h"

#define MOST_NAME_BYTES 256

/* An object as it is being made: members in their order. */
struct members {
    const struct expression **items; /* [n] `"name": value` */
    bool *required;                  /* [n] */
    struct bytes *names; /* [n_names], of the JSON text of names that could be spelled otherwise */
    uint32_t n, n_names;
    const struct expression *other; /* any further member; NULL: there are none */
};

static bool is_required(const json_t *schema, const char *name)
{
    const json_t *required = json_object_get(schema, "required");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *one = json_string_value(json_array_get(required, i));
        if (one && strcmp(one, name) == 0)
            return true;
    }
    return false;
}

static int compare_names(const void *a, const void *b)
{
    const struct bytes *x = a, *y = b;
    int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);
    return order != 0 ? order : x->len < y->len ? -1 : x->len > y->len;
}

static bool add_member(struct schema_reader *reader, struct members *members, const char *name,
                       const json_t *schema, bool required)
{
    struct rules *rules = reader->rules;
    if (strlen(name) > MOST_NAME_BYTES) {
        schema_refuse(reader, "a name of more than %d bytes is not supported", MOST_NAME_BYTES);
        return false;
    }
    if (json_is_false(schema) && !required)
        return true;
    json_t *key = json_string(name);
    char *text = key ? json_dumps(key, JSON_ENCODE_ANY) : NULL;
    const struct expression *value = text ? schema_below(reader, schema, name) : NULL;
    const struct expression *member =
        value ? json_text_member(&reader->json, expression_text(rules, text), value) : NULL;
    json_decref(key);
    free(text);
    members->items[members->n] = member;
    members->required[members->n++] = required;
    return member != NULL;
}

/* Names that a further member must not have; those with escapes are never spelled so. */
static void note_name(struct members *members, const char *name)
{
    struct bytes text = bytes_of_string(name);
    for (size_t i = 0; i < text.len; i++)
        if ((uint8_t)name[i] < ' ' || name[i] == '"' || name[i] == '\\')
            return;
    members->names[members->n_names++] = text;
}

/* Members that are required and not described are as additionalProperties says. */
static bool add_undescribed(struct schema_reader *reader, struct members *members, const json_t *schema,
                            const json_t *additional)
{
    const json_t *required = json_object_get(schema, "required");
    const json_t *properties = json_object_get(schema, "properties");
    for (size_t i = 0; i < json_array_size(required); i++) {
        const char *name = json_string_value(json_array_get(required, i));
        bool again = false;
        if (!name) {
            schema_refuse(reader, "required has an entry that is not a string");
            return false;
        }
        for (size_t j = 0; j < i && !again; j++) {
            const char *before = json_string_value(json_array_get(required, j));
            again = before && strcmp(before, name) == 0;
        }
        if (again || json_object_get(properties, name))
            continue;
        if (json_is_false(additional)) {
            schema_refuse(reader, "\"%.60s\" is required but not an allowed property", name);
            return false;
        }
        note_name(members, name);
        if (!add_member(reader, members, name, additional ? additional : json_true(), true))
            return false;
    }
    return true;
}

/* What stands between the braces. From the last member to the first: `pick`, that one of the members from i
 * on comes next, and what may follow that; `behind`, what may follow when a member before i was there. Each
 * is made once, however many ways lead to it. */
static const struct expression *members_of(struct schema_reader *reader, const struct members *members)
{
    struct rules *rules = reader->rules;
    struct json_text *json = &reader->json;
    const struct expression *behind = expression_empty(rules), *pick = NULL;
    bool must = false; /* one from i on is required */
    if (members->other) {
        const struct expression *next = json_text_next_item(json, members->other);
        behind = expression_shared(rules, expression_repeat(rules, next, 0, GRAMMAR_UNBOUNDED));
        pick = expression_then(rules, members->other, behind);
    }
    for (uint32_t i = members->n; i-- > 0 && behind;) {
        const struct expression *this = expression_then(rules, members->items[i], behind);
        must |= members->required[i];
        pick =
            expression_shared(rules, pick && !members->required[i] ? expression_or(rules, this, pick) : this);
        behind = json_text_next_item(json, pick);
        behind = expression_shared(rules, must ? behind : expression_optional(rules, behind));
    }
    if (!pick)
        return behind;
    return must ? pick : expression_optional(rules, pick);
}

static const struct expression *object_of(struct schema_reader *reader, struct members *members)
{
    uint32_t rule = rules_add(reader->rules, "object");
    if (rule == UINT32_MAX)
        return schema_refuse(reader, "too many objects");
    const struct expression *body = json_text_bracketed(&reader->json, "{", members_of(reader, members), "}");
    reader->rules->items[rule].body = body;
    reader->rules->items[rule].apart = true;
    return body ? expression_rule(reader->rules, rule) : NULL;
}

static const struct expression *further_member(struct schema_reader *reader, struct members *members,
                                               const json_t *additional)
{
    struct json_text *json = &reader->json;
    const struct expression *value = json_is_object(additional)
                                         ? schema_below(reader, additional, "additionalProperties")
                                         : json_text_value(json);
    if (!value)
        return NULL;
    qsort(members->names, members->n_names, sizeof *members->names, compare_names);
    return json_text_member(json,
                            members->n_names ? json_text_other_string(json, members->names, members->n_names)
                                             : json_text_string(json),
                            value);
}

const struct expression *schema_object(struct schema_reader *reader, const json_t *schema)
{
    const json_t *properties = json_object_get(schema, "properties");
    const json_t *required = json_object_get(schema, "required");
    const json_t *additional = json_object_get(schema, "additionalProperties");
    size_t most = json_object_size(properties) + json_array_size(required) + 1;
    struct members members = {0};
    const char *name;
    json_t *value;
    if (properties && !json_is_object(properties))
        return schema_refuse(reader, "properties is not an object");
    if (required && !json_is_array(required))
        return schema_refuse(reader, "required is not an array of strings");
    if (additional && !json_is_boolean(additional) && !json_is_object(additional))
        return schema_refuse(reader, "additionalProperties is not a schema");
    if (json_object_size(properties) > SCHEMA_MOST_NAMES || json_array_size(required) > SCHEMA_MOST_NAMES)
        return schema_refuse(reader, "more than %u properties are not supported", SCHEMA_MOST_NAMES);
    if (!schema_spend(reader, (uint64_t)json_array_size(required) *
                                  (json_object_size(properties) + json_array_size(required))))
        return NULL;
    members.items = arena_take(&reader->rules->arena, most, sizeof *members.items);
    members.required = arena_take(&reader->rules->arena, most, sizeof *members.required);
    members.names = arena_take(&reader->rules->arena, most, sizeof *members.names);
    if (!members.items || !members.required || !members.names)
        return NULL;
    json_object_foreach((json_t *)properties, name, value)
    {
        note_name(&members, name);
        if (!add_member(reader, &members, name, value, is_required(schema, name)))
            return NULL;
    }
    if (!add_undescribed(reader, &members, schema, additional))
        return NULL;
    bool open = additional ? !json_is_false(additional) : json_object_size(properties) == 0;
    if (open && !(members.other = further_member(reader, &members, additional)))
        return NULL;
    return object_of(reader, &members);
}

/* ---- arrays ---- */

/* An array as it is being made: its first items, then all others. */
struct array {
    const json_t *prefix; /* NULL: none */
    const struct expression *other;
    uint32_t least, most;
};

/* Items from i on, of which the first has no comma before it. */
static const struct expression *items_from(struct schema_reader *reader, const struct array *array)
{
    struct rules *rules = reader->rules;
    struct json_text *json = &reader->json;
    uint32_t n = (uint32_t)json_array_size(array->prefix);
    n = n < array->most ? n : array->most;
    const struct expression *rest = expression_empty(rules);
    if (array->other && array->most > n) {
        uint32_t least = array->least > n ? array->least - n : 0;
        uint32_t most = array->most == GRAMMAR_UNBOUNDED ? array->most : array->most - n;
        rest = n == 0 ? json_text_items(json, array->other, least, most)
                      : expression_repeat(rules, json_text_next_item(json, array->other), least, most);
    }
    for (uint32_t i = n; i-- > 0 && rest;) {
        const struct expression *item = schema_below(reader, json_array_get(array->prefix, i), "prefixItems");
        if (!item)
            return NULL;
        rest = expression_then(rules, i == 0 ? item : json_text_next_item(json, item), rest);
        if (i >= array->least)
            rest = expression_optional(rules, rest);
    }
    return rest;
}

const struct expression *schema_array(struct schema_reader *reader, const json_t *schema)
{
    const json_t *items = json_object_get(schema, "items");
    struct array array = {.prefix = json_object_get(schema, "prefixItems")};
    if (!schema_count(reader, schema, "minItems", 0, &array.least) ||
        !schema_count(reader, schema, "maxItems", GRAMMAR_UNBOUNDED, &array.most))
        return NULL;
    if (array.prefix && !json_is_array(array.prefix))
        return schema_refuse(reader, "prefixItems is not an array of schemas");
    if (json_is_array(items))
        return schema_refuse(reader, "items is an array; use prefixItems (JSON Schema 2020-12)");
    size_t n = json_array_size(array.prefix);
    if (n > SCHEMA_MOST_NAMES) /* each is an expression within that of the one before */
        return schema_refuse(reader, "more than %u prefixItems are not supported", SCHEMA_MOST_NAMES);
    /* Beyond a prefix nothing is made that nothing is said of, unless there have to be more. */
    if (json_is_object(items) || (json_is_true(items)))
        array.other = schema_below(reader, items, "items");
    else if (!items && (n == 0 || array.least > n))
        array.other = json_text_value(&reader->json);
    if (reader->code != 0)
        return NULL;
    if (array.least > array.most || (!array.other && array.least > n))
        return schema_refuse(reader, "no array can have minItems items");
    uint32_t rule = rules_add(reader->rules, "array");
    if (rule == UINT32_MAX)
        return schema_refuse(reader, "too many arrays");
    const struct expression *body = json_text_bracketed(&reader->json, "[", items_from(reader, &array), "]");
    reader->rules->items[rule].body = body;
    reader->rules->items[rule].apart = true;
    return body ? expression_rule(reader->rules, rule) : NULL;
}
