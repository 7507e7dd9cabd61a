/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/grammar/validate.h"

#include <check.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

static bool has_type(const char *type, const json_t *value)
{
    if (strcmp(type, "integer") == 0)
        return json_is_number(value) && json_number_value(value) == floor(json_number_value(value));
    return strcmp(type, "object") == 0    ? json_is_object(value)
           : strcmp(type, "array") == 0   ? json_is_array(value)
           : strcmp(type, "string") == 0  ? json_is_string(value)
           : strcmp(type, "number") == 0  ? json_is_number(value)
           : strcmp(type, "boolean") == 0 ? json_is_boolean(value)
                                          : json_is_null(value);
}

static bool type_is(const json_t *type, const json_t *value)
{
    bool is = !type || (json_is_string(type) && has_type(json_string_value(type), value));
    for (size_t i = 0; i < json_array_size(type); i++)
        is |= has_type(json_string_value(json_array_get(type, i)), value);
    return is;
}

static bool is_among(const json_t *list, const json_t *value)
{
    for (size_t i = 0; i < json_array_size(list); i++)
        if (json_equal(json_array_get(list, i), value))
            return true;
    return !list;
}

static bool bounded(const json_t *schema, const char *least, const char *most, double number)
{
    const json_t *low = json_object_get(schema, least), *high = json_object_get(schema, most);
    return (!low || number >= json_number_value(low)) && (!high || number <= json_number_value(high));
}

static size_t characters(const json_t *string)
{
    const char *s = json_string_value(string);
    size_t n = 0;
    for (; *s; s++)
        n += ((uint8_t)*s & 0xc0) != 0x80;
    return n;
}

static bool validate_object(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required");
    const json_t *additional = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *member;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i))))
            return false;
    json_object_foreach((json_t *)value, key, member)
    {
        const json_t *own = json_object_get(properties, key);
        own = own ? own : additional;
        if (own && !validate(root, own, member))
            return false;
    }
    return true;
}

static bool validate_array(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *prefix = json_object_get(schema, "prefixItems"), *items = json_object_get(schema, "items");
    for (size_t i = 0; i < json_array_size(value); i++) {
        const json_t *own = i < json_array_size(prefix) ? json_array_get(prefix, i) : items;
        if (own && !validate(root, own, json_array_get(value, i)))
            return false;
    }
    return bounded(schema, "minItems", "maxItems", (double)json_array_size(value));
}

bool validate(const json_t *root, const json_t *schema, const json_t *value)
{
    const json_t *ref = json_object_get(schema, "$ref"), *any = json_object_get(schema, "anyOf");
    const json_t *one = json_object_get(schema, "const");
    if (json_is_boolean(schema))
        return json_is_true(schema);
    if (ref) {
        ck_assert(strncmp(json_string_value(ref), "#/$defs/", 8) == 0);
        return validate(root, json_object_get(json_object_get(root, "$defs"), json_string_value(ref) + 8),
                        value);
    }
    bool valid = !any;
    for (size_t i = 0; i < json_array_size(any); i++)
        valid |= validate(root, json_array_get(any, i), value);
    valid = valid && type_is(json_object_get(schema, "type"), value) &&
            is_among(json_object_get(schema, "enum"), value) && (!one || json_equal(one, value));
    if (json_is_object(value))
        return valid && validate_object(root, schema, value);
    if (json_is_array(value))
        return valid && validate_array(root, schema, value);
    if (json_is_string(value))
        return valid && bounded(schema, "minLength", "maxLength", (double)characters(value));
    if (json_is_number(value))
        return valid && bounded(schema, "minimum", "maximum", json_number_value(value));
    return valid;
}

bool validate_text(const char *schema, const char *text, size_t len)
{
    json_error_t err;
    json_t *rules = json_loads(schema, JSON_DECODE_ANY, NULL);
    json_t *value =
        json_loadb(text, len, JSON_DECODE_ANY, &err); /* names that are not described may repeat */
    ck_assert_ptr_nonnull(rules);
    bool valid = value && validate(rules, rules, value);
    json_decref(rules);
    json_decref(value);
    return valid;
}
