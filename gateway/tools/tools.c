/* SPDX-License-Identifier: MIT */
/* See tools.h. Templates are written for complete tools: a description that is left out is empty, parameters
 * that are left out are an object without properties. */

#include "gateway/tools/tools.h"

#include <stdio.h>
#include <string.h>

#define MAX_TOOLS      128
#define MAX_NAME_BYTES 64

static int check_name(const char *path, const json_t *name, struct refusal *refusal)
{
    const char *text = json_string_value(name);
    size_t len = text ? json_string_length(name) : 0;
    bool good = len > 0 && len <= MAX_NAME_BYTES;
    for (size_t i = 0; i < len && good; i++)
        good = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= 'A' && text[i] <= 'Z') ||
               (text[i] >= '0' && text[i] <= '9') || strchr("_-.", text[i]);
    return good ? 0
                : refuse_value(refusal, path, "%s is not a name of up to %d letters, digits, _, - and .",
                               path, MAX_NAME_BYTES);
}

/* A tool in OpenAI's form, a new reference, or NULL: no memory. The values may be NULL: left out. */
static json_t *make_tool(json_t *name, json_t *description, json_t *parameters)
{
    json_t *function = json_object();
    bool good =
        function && json_object_set(function, "name", name) == 0 &&
        (description ? json_object_set(function, "description", description)
                     : json_object_set_new(function, "description", json_string(""))) == 0 &&
        (parameters ? json_object_set(function, "parameters", parameters)
                    : json_object_set_new(function, "parameters",
                                          json_pack("{s:s, s:{}}", "type", "object", "properties"))) == 0;
    json_t *tool = good ? json_pack("{s:s, s:O}", "type", "function", "function", function) : NULL;
    json_decref(function);
    return tool;
}

/* Looks at one and adds it. `given` has name, description, strict and the schema under the key
 * `schema`. */
static int add_tool(const char *path, const json_t *given, const char *schema, json_t *into,
                    struct refusal *refusal)
{
    json_t *description = json_object_get(given, "description"), *parameters = json_object_get(given, schema);
    const json_t *strict = json_object_get(given, "strict");
    char where[80];
    snprintf(where, sizeof where, "%s.name", path);
    if (check_name(where, json_object_get(given, "name"), refusal) != 0)
        return REFUSED;
    if (json_is_null(description))
        description = NULL;
    if (json_is_null(parameters))
        parameters = NULL;
    if (description && !json_is_string(description))
        return refuse_value(refusal, path, "%s.description is %s, not a string", path,
                            json_in_kind(description));
    if (strict && !json_is_boolean(strict) && !json_is_null(strict))
        return refuse_value(refusal, path, "%s.strict is %s, not true or false", path, json_in_kind(strict));
    if (parameters && !json_is_object(parameters))
        return refuse_value(refusal, path, "%s.%s is %s, not an object", path, schema,
                            json_in_kind(parameters));
    json_t *tool = make_tool(json_object_get(given, "name"), description, parameters);
    if (!tool || json_array_append_new(into, tool) < 0)
        return parameters_out_of_memory(refusal);
    return 0;
}

/* The tool inside an entry of a family's array; NULL and a refusal. */
typedef const json_t *find_tool(const char *path, const json_t *entry, struct refusal *refusal);

static const json_t *function_of(const char *path, const json_t *entry, struct refusal *refusal)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *function = json_object_get(entry, "function");
    if (type && strcmp(type, "function") != 0) {
        refuse(refusal, 400, "unsupported_parameter", path,
               "%s: tools of the type \"%.40s\" are not supported, only \"function\"", path, type);
        return NULL;
    }
    if (!json_is_object(function))
        refuse_value(refusal, path, "%s has no function", path);
    return json_is_object(function) ? function : NULL;
}

static const json_t *itself(const char *path, const json_t *entry, struct refusal *refusal)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    if (type && strcmp(type, "custom") != 0) {
        refuse(refusal, 400, "unsupported_parameter", path,
               "%s: tools of the type \"%.40s\" are not supported, only client tools", path, type);
        return NULL;
    }
    return entry;
}

/* The schema of a tool's arguments as it is where they are held to it: of an object, and without members
 * where no member is described. NULL in ret_schema: it is one of something else. 0 or REFUSED. */
static int keep_schema(struct parameters *parameters, const json_t *given, const char **ret_schema,
                       struct refusal *refusal)
{
    static const char *const structure[] = {"$ref", "allOf", "anyOf", "oneOf", "additionalProperties"};
    json_t *schema = given ? json_copy((json_t *)given) : json_pack("{s:{}}", "properties");
    const json_t *type = json_object_get(schema, "type"), *properties = json_object_get(schema, "properties");
    bool object = !type || (json_is_string(type) && strcmp(json_string_value(type), "object") == 0);
    bool empty = json_is_object(properties) && json_object_size(properties) == 0;
    for (size_t i = 0; i < json_array_size(type); i++) {
        const char *one = json_string_value(json_array_get(type, i));
        object |= one && strcmp(one, "object") == 0;
    }
    for (size_t i = 0; i < sizeof structure / sizeof *structure; i++)
        empty &= !json_object_get(schema, structure[i]);
    bool good = schema && json_object_set_new(schema, "type", json_string("object")) == 0 &&
                (!empty || json_object_set_new(schema, "additionalProperties", json_false()) == 0);
    *ret_schema = good && object ? parameters_keep_json(parameters, schema) : NULL;
    json_decref(schema);
    return good && (*ret_schema || !object) ? 0 : parameters_out_of_memory(refusal);
}

/* A tool that was put together, for those who look for calls of it, or hold them to something. */
static int keep_tool(struct parameters *parameters, const json_t *given, const char *schema,
                     struct offered_tool *ret_tool, struct refusal *refusal)
{
    const json_t *parameters_schema = json_object_get(given, schema);
    ret_tool->name = parameters_keep(parameters, json_object_get(given, "name"));
    if (!ret_tool->name)
        return parameters_out_of_memory(refusal);
    ret_tool->strict = json_is_true(json_object_get(given, "strict"));
    return keep_schema(parameters, json_is_object(parameters_schema) ? parameters_schema : NULL,
                       &ret_tool->schema, refusal);
}

static int take_tools(struct parameters *parameters, const char *path, json_t *value, find_tool *find,
                      const char *schema, struct refusal *refusal)
{
    size_t n = json_array_size(value);
    int r = 0;
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array", path, json_in_kind(value));
    if (n > MAX_TOOLS)
        return refuse_value(refusal, path, "%s has %zu tools; at most %d are allowed", path, n, MAX_TOOLS);
    if (n == 0)
        return 0;
    json_t *tools = json_array();
    struct offered_tool *kept = parameters_memory(parameters, n, sizeof *kept);
    if (!tools || !kept)
        r = parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n && r == 0; i++) {
        char where[64];
        snprintf(where, sizeof where, "%s[%zu]", path, i);
        const json_t *tool = find(where, json_array_get(value, i), refusal);
        r = tool ? add_tool(where, tool, schema, tools, refusal) : REFUSED;
        if (r == 0)
            r = keep_tool(parameters, tool, schema, &kept[i], refusal);
    }
    if (r == 0) {
        parameters->tools = kept;
        parameters->n_tools = n;
        parameters->request.tools = parameters_keep_json(parameters, tools);
        r = parameters->request.tools ? 0 : parameters_out_of_memory(refusal);
    }
    json_decref(tools);
    return r;
}

int tools_take(void *into, const struct json_row *row, const char *path, json_t *value,
               struct refusal *refusal)
{
    return take_tools(into, path, value, function_of, "parameters", refusal);
}

int tools_take_anthropic(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    return take_tools(into, path, value, itself, "input_schema", refusal);
}

int tools_take_calls(struct parameters *parameters, const char *path, json_t *value, const char **ret_calls,
                     struct refusal *refusal)
{
    if (!json_is_array(value))
        return refuse_value(refusal, path, "%s is %s, not an array", path, json_in_kind(value));
    for (size_t i = 0; i < json_array_size(value); i++) {
        char where[96];
        snprintf(where, sizeof where, "%s[%zu].function", path, i);
        const json_t *function = json_object_get(json_array_get(value, i), "function");
        const json_t *arguments = json_object_get(function, "arguments");
        if (!json_is_string(json_object_get(function, "name")))
            return refuse_value(refusal, where, "%s has no name", where);
        if (!json_is_string(arguments) && !json_is_object(arguments))
            return refuse_value(refusal, where, "%s.arguments is neither a string nor an object", where);
    }
    if (json_array_size(value) == 0)
        return 0;
    *ret_calls = parameters_keep_json(parameters, value);
    return *ret_calls ? 0 : parameters_out_of_memory(refusal);
}
