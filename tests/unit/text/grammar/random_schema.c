/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/grammar/random_schema.h"

#include <stdlib.h>

unsigned random_seed;

int random_dice(int n)
{
    return rand_r(&random_seed) / 7 % n;
}

static json_t *random_schema(int depth);

static json_t *random_object(int depth)
{
    static const char *const names[] = {"a", "ab", "größe", "x y", "q\"", "abc"};
    json_t *schema = json_pack("{s:s,s:{}}", "type", "object", "properties"), *required = json_array();
    for (int i = random_dice(3); i < 6; i += 1 + random_dice(3)) {
        json_object_set_new(json_object_get(schema, "properties"), names[i], random_schema(depth - 1));
        if (random_dice(2))
            json_array_append_new(required, json_string(names[i]));
    }
    json_object_set_new(schema, "required", required);
    /* Said always: what is left open is valid, and not made. */
    json_object_set_new(schema, "additionalProperties",
                        random_dice(2) ? json_false() : random_schema(depth - 1));
    return schema;
}

static json_t *random_array(int depth)
{
    json_t *schema = json_pack("{s:s,s:o}", "type", "array", "items", random_schema(depth - 1));
    int least = random_dice(3);
    if (random_dice(3) == 0)
        json_object_set_new(schema, "prefixItems",
                            json_pack("[o,o]", random_schema(0), random_schema(depth - 1)));
    if (random_dice(2))
        json_object_set_new(schema, "minItems", json_integer(least));
    if (random_dice(2))
        json_object_set_new(schema, "maxItems", json_integer(least + random_dice(3)));
    return schema;
}

static json_t *random_scalar(void)
{
    int least = random_dice(200) - 100;
    switch (random_dice(8)) {
    case 0:
        return json_pack("{s:s,s:i,s:i}", "type", "integer", "minimum", least, "maximum",
                         least + random_dice(120));
    case 1:
        return json_pack("{s:s,s:i}", "type", "number", random_dice(2) ? "minimum" : "maximum", least);
    case 2:
        return json_pack("{s:s,s:i,s:i}", "type", "string", "minLength", random_dice(3), "maxLength",
                         3 + random_dice(4));
    case 3:
        return json_pack("{s:[s,i,n,s]}", "enum", "a", 17, "ab\"c");
    case 4:
        return json_pack("{s:[s,s]}", "type", "null", "boolean");
    case 5:
        return json_pack("{s:b}", "const", random_dice(2));
    case 6:
        return json_pack("{s:s}", "type", "integer");
    default:
        return json_pack("{s:s}", "type", "string");
    }
}

static json_t *random_schema(int depth)
{
    int kind = depth > 0 ? random_dice(6) : 5;
    if (kind < 2)
        return random_object(depth);
    if (kind == 2)
        return random_array(depth);
    if (kind == 3)
        return json_pack("{s:[o,o]}", "anyOf", random_schema(depth - 1), random_schema(depth - 1));
    if (kind == 4)
        return json_pack("{s:s}", "$ref", random_dice(2) ? "#/$defs/list" : "#/$defs/leaf");
    return random_scalar();
}

json_t *random_schema_root(void)
{
    json_t *schema = random_schema(3);
    /* Lists in lists, and something small. */
    json_object_set_new(schema, "$defs",
                        json_pack("{s:{s:s,s:{s:[{s:s},o]},s:i},s:o}", "list", "type", "array", "items",
                                  "anyOf", "$ref", "#/$defs/list", random_scalar(), "maxItems", 2, "leaf",
                                  random_scalar()));
    return schema;
}
