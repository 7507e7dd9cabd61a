/* SPDX-License-Identifier: MIT */
/* See tool_choice.h. The choice may stand before the tools that it names, so its names are looked up when
 * both are there. Which are not to be called is said to the model by a grammar only: it is told of all tools.
 */

#include "gateway/tools/tool_choice.h"

#include <stdio.h>
#include <string.h>

static int refuse_choice(const char *path, struct refusal *refusal)
{
    return refuse(refusal, 400, "unsupported_parameter", path,
                  "%s must be none, auto, required (any) or one tool by its name", path);
}

/* "none", "auto" or what the family calls required. */
static int take_mode(struct parameters *parameters, const char *path, const char *mode, const char *required,
                     struct refusal *refusal)
{
    if (mode && strcmp(mode, required) == 0)
        parameters->tool_use = TOOLS_REQUIRED;
    else if (mode && strcmp(mode, "none") == 0)
        parameters->tool_use = TOOLS_NONE;
    else if (!mode || strcmp(mode, "auto") != 0)
        return refuse_choice(path, refusal);
    return 0;
}

/* ---- OpenAI ---- */

/* The name in {"type": "function", "function": {"name": …}}, or NULL. */
static const json_t *function_name(const json_t *entry)
{
    const char *type = json_string_value(json_object_get(entry, "type"));
    const json_t *name = json_object_get(json_object_get(entry, "function"), "name");
    return type && strcmp(type, "function") == 0 && json_is_string(name) ? name : NULL;
}

static int take_allowed(struct parameters *parameters, const char *path, const json_t *allowed,
                        struct refusal *refusal)
{
    const json_t *tools = json_object_get(allowed, "tools");
    const char *mode = json_string_value(json_object_get(allowed, "mode"));
    if (!json_is_array(tools) || json_array_size(tools) == 0 || !mode || strcmp(mode, "none") == 0)
        return refuse_value(refusal, path, "%s: allowed_tools needs tools and a mode, auto or required",
                            path);
    const size_t n = json_array_size(tools);
    const char **names = parameters_memory(parameters, n, sizeof *names);
    if (!names)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        const json_t *name = function_name(json_array_get(tools, i));
        if (!name)
            return refuse_value(refusal, path, "%s.tools[%zu] does not name a function", path, i);
        names[i] = parameters_keep(parameters, name);
        if (!names[i])
            return parameters_out_of_memory(refusal);
    }
    parameters->allowed_tools = names;
    parameters->n_allowed = n;
    return take_mode(parameters, path, mode, "required", refusal);
}

int tool_choice_openai(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (json_is_string(value))
        return take_mode(parameters, path, json_string_value(value), "required", refusal);
    if (type && strcmp(type, "allowed_tools") == 0)
        return take_allowed(parameters, "tool_choice.allowed_tools", json_object_get(value, "allowed_tools"),
                            refusal);
    const json_t *name = function_name(value);
    if (!type || strcmp(type, "function") != 0)
        return refuse_choice(path, refusal);
    if (!name)
        return refuse_value(refusal, path, "%s.function has no name", path);
    parameters->tool_use = TOOLS_REQUIRED;
    parameters->named_tool = parameters_keep(parameters, name);
    parameters->one_call = true; /* that function, and once */
    return parameters->named_tool ? 0 : parameters_out_of_memory(refusal);
}

int tool_choice_parallel(void *into, const struct json_row *row, const char *path, json_t *value,
                         struct refusal *refusal)
{
    if (!json_is_boolean(value))
        return refuse_value(refusal, path, "%s is %s, not true or false", path, json_in_kind(value));
    if (json_is_false(value))
        ((struct parameters *)into)->one_call = true;
    return 0;
}

/* ---- Anthropic ---- */

static int take_name(void *into, const struct json_row *row, const char *path, json_t *value,
                     struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    parameters->named_tool = parameters_keep(parameters, value);
    return parameters->named_tool ? 0 : parameters_out_of_memory(refusal);
}

static const struct json_row anthropic_rows[] = {
    {"type", json_in_ignore, NULL, 0},
    {"name", take_name, NULL, 0},
    {"disable_parallel_tool_use", json_in_bool, NULL, offsetof(struct parameters, one_call)},
    {0},
};

int tool_choice_anthropic(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!json_is_object(value) || !type)
        return refuse_value(refusal, path, "%s is not an object with a type", path);
    if (json_in_take(into, anthropic_rows, path, value, refusal) != 0)
        return REFUSED;
    bool one = strcmp(type, "tool") == 0;
    if (one != (parameters->named_tool != NULL))
        return refuse_value(refusal, path, "%s: only the type \"tool\" takes a name", path);
    return take_mode(parameters, path, one ? "any" : type, "any", refusal);
}

/* ---- all of it ---- */

static struct offered_tool *find(const struct parameters *parameters, const char *name)
{
    for (size_t i = 0; i < parameters->n_tools; i++)
        if (strcmp(parameters->tools[i].name, name) == 0)
            return &parameters->tools[i];
    return NULL;
}

static int allow(const struct parameters *parameters, const char *name, struct refusal *refusal)
{
    struct offered_tool *tool = find(parameters, name);
    if (!tool)
        return refuse_value(refusal, "tool_choice", "tool_choice: no tool is named \"%.64s\"", name);
    tool->barred = false;
    return 0;
}

int tool_choice_finish(struct parameters *parameters, struct refusal *refusal)
{
    int r = 0;
    if (parameters->tool_use == TOOLS_NONE)
        return 0;
    bool chosen = parameters->named_tool || parameters->allowed_tools;
    if ((parameters->tool_use == TOOLS_REQUIRED || chosen) && parameters->n_tools == 0)
        return refuse_value(refusal, "tool_choice", "tool_choice: the request has no tools");
    for (size_t i = 0; i < parameters->n_tools && chosen; i++)
        parameters->tools[i].barred = true;
    if (parameters->named_tool)
        r = allow(parameters, parameters->named_tool, refusal);
    for (size_t i = 0; i < parameters->n_allowed && r == 0; i++)
        r = allow(parameters, parameters->allowed_tools[i], refusal);
    return r;
}
