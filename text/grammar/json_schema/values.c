/* SPDX-License-Identifier: MIT */
/* Values of JSON as such: whether two are the same, and a schema that one alone satisfies. */

#include "text/grammar/json_schema/shapes.h"

static bool objects_equal(const json_t *a, const json_t *b)
{
    const char *key;
    json_t *value;
    if (json_object_size(a) != json_object_size(b))
        return false;
    json_object_foreach((json_t *)a, key, value)
    {
        const json_t *other = json_object_get(b, key);
        if (!other || !json_values_equal(value, other))
            return false;
    }
    return true;
}

bool json_values_equal(const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b))
        return json_is_integer(a) && json_is_integer(b) ? json_integer_value(a) == json_integer_value(b)
                                                        : json_number_value(a) == json_number_value(b);
    if (json_typeof(a) != json_typeof(b))
        return false;
    if (json_is_object(a))
        return objects_equal(a, b);
    if (!json_is_array(a))
        return json_equal(a, b);
    for (size_t i = 0; i < json_array_size(a); i++)
        if (i >= json_array_size(b) || !json_values_equal(json_array_get(a, i), json_array_get(b, i)))
            return false;
    return json_array_size(a) == json_array_size(b);
}

const json_t *schema_of_value(struct schema_reader *reader, const json_t *value)
{
    const char *key;
    json_t *below;
    if (json_is_array(value)) {
        json_t *items = json_array();
        for (size_t i = 0; i < json_array_size(value); i++)
            if (json_array_append_new(items, json_pack("{s:O}", "const", json_array_get(value, i))) != 0)
                schema_no_memory(reader);
        return schema_keep(reader, json_pack("{s:s,s:o,s:i,s:b}", "type", "array", "prefixItems", items,
                                             "minItems", (int)json_array_size(value), "items", 0));
    }
    json_t *properties = json_object();
    json_object_foreach((json_t *)value, key, below)
    {
        if (json_object_set_new(properties, key, json_pack("{s:O}", "const", below)) != 0)
            schema_no_memory(reader);
    }
    return schema_keep(reader,
                       json_pack("{s:s,s:o,s:i,s:b}", "type", "object", "properties", properties,
                                 "minProperties", (int)json_object_size(value), "additionalProperties", 0));
}
