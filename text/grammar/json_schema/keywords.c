/* SPDX-License-Identifier: MIT */
/* Every keyword that is not refused, and what stands under it. */

#include <string.h>

#include "text/grammar/json_schema/internal.h"

static const struct keyword {
    const char *name;
    enum keyword_schemas schemas;
} keywords[] = {
    /* Annotations: they say nothing of what is valid. */
    {"$schema", KEYWORD_NO_SCHEMA},
    {"$vocabulary", KEYWORD_NO_SCHEMA},
    {"$id", KEYWORD_NO_SCHEMA},
    {"$comment", KEYWORD_NO_SCHEMA},
    {"$anchor", KEYWORD_NO_SCHEMA},
    {"$dynamicAnchor", KEYWORD_NO_SCHEMA},
    {"$defs", KEYWORD_MAP},
    {"definitions", KEYWORD_MAP},
    {"title", KEYWORD_NO_SCHEMA},
    {"description", KEYWORD_NO_SCHEMA},
    {"default", KEYWORD_NO_SCHEMA},
    {"examples", KEYWORD_NO_SCHEMA},
    {"example", KEYWORD_NO_SCHEMA},
    {"deprecated", KEYWORD_NO_SCHEMA},
    {"readOnly", KEYWORD_NO_SCHEMA},
    {"writeOnly", KEYWORD_NO_SCHEMA},
    {"discriminator", KEYWORD_NO_SCHEMA},
    {"contentEncoding", KEYWORD_NO_SCHEMA},
    {"contentMediaType", KEYWORD_NO_SCHEMA},
    {"contentSchema", KEYWORD_SCHEMA},
    /* Schemas about the same value. */
    {"$ref", KEYWORD_NO_SCHEMA},
    {"$dynamicRef", KEYWORD_NO_SCHEMA},
    {"allOf", KEYWORD_LIST},
    {"anyOf", KEYWORD_LIST},
    {"oneOf", KEYWORD_LIST},
    {"not", KEYWORD_SCHEMA},
    {"if", KEYWORD_SCHEMA},
    {"then", KEYWORD_SCHEMA},
    {"else", KEYWORD_SCHEMA},
    {"dependentRequired", KEYWORD_NO_SCHEMA},
    {"dependentSchemas", KEYWORD_MAP},
    {"dependencies", KEYWORD_MAP},
    {"unevaluatedItems", KEYWORD_SCHEMA},
    {"unevaluatedProperties", KEYWORD_SCHEMA},
    /* Assertions. */
    {"type", KEYWORD_NO_SCHEMA},
    {"enum", KEYWORD_NO_SCHEMA},
    {"const", KEYWORD_NO_SCHEMA},
    {"properties", KEYWORD_MAP},
    {"patternProperties", KEYWORD_MAP},
    {"additionalProperties", KEYWORD_SCHEMA},
    {"propertyNames", KEYWORD_SCHEMA},
    {"required", KEYWORD_NO_SCHEMA},
    {"minProperties", KEYWORD_NO_SCHEMA},
    {"maxProperties", KEYWORD_NO_SCHEMA},
    {"items", KEYWORD_SCHEMA},
    {"prefixItems", KEYWORD_LIST},
    {"contains", KEYWORD_SCHEMA},
    {"minContains", KEYWORD_NO_SCHEMA},
    {"maxContains", KEYWORD_NO_SCHEMA},
    {"minItems", KEYWORD_NO_SCHEMA},
    {"maxItems", KEYWORD_NO_SCHEMA},
    {"uniqueItems", KEYWORD_NO_SCHEMA},
    {"minLength", KEYWORD_NO_SCHEMA},
    {"maxLength", KEYWORD_NO_SCHEMA},
    {"pattern", KEYWORD_NO_SCHEMA},
    {"format", KEYWORD_NO_SCHEMA},
    {"minimum", KEYWORD_NO_SCHEMA},
    {"maximum", KEYWORD_NO_SCHEMA},
    {"exclusiveMinimum", KEYWORD_NO_SCHEMA},
    {"exclusiveMaximum", KEYWORD_NO_SCHEMA},
    {"multipleOf", KEYWORD_NO_SCHEMA},
};

static const struct keyword *find(const char *name)
{
    for (size_t i = 0; i < sizeof keywords / sizeof *keywords; i++)
        if (strcmp(keywords[i].name, name) == 0)
            return &keywords[i];
    return NULL;
}

enum keyword_schemas schema_keyword_schemas(const char *name)
{
    const struct keyword *keyword = find(name);
    return keyword ? keyword->schemas : KEYWORD_NO_SCHEMA;
}

bool schema_keywords_check(struct schema_reader *reader, const json_t *schema)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)schema, key, value)
    {
        if (!find(key)) {
            schema_refuse(reader, "the keyword \"%.60s\" is not supported", key);
            return false;
        }
    }
    return true;
}
