/* SPDX-License-Identifier: MIT */
/* See tool_grammar.h. What the grammar is made of is call_grammar.h's; what is decided here is whether there
 * is one, and what it holds the answer to. */

#include "gateway/tools/tool_grammar.h"

#include <string.h>

#include "gateway/json/json_out.h"
#include "text/dialect/call_grammar.h"

/* ---- whether there is to be one ---- */

static bool is_needed(const struct parameters *parameters)
{
    bool needed = parameters->tool_use == TOOLS_REQUIRED || parameters->one_call;
    for (size_t i = 0; i < parameters->n_tools; i++)
        needed |= parameters->tools[i].strict || parameters->tools[i].barred;
    return needed;
}

/* A tool whose arguments are held to a schema has one that is of objects. */
static int check_schemas(const struct parameters *parameters, struct refusal *refusal)
{
    for (size_t i = 0; i < parameters->n_tools; i++) {
        const struct offered_tool *tool = &parameters->tools[i];
        bool held = !tool->barred && (tool->strict || parameters->tool_use == TOOLS_REQUIRED);
        if (held && !tool->schema)
            return refuse_value(refusal, "tools",
                                "tools[%zu]: the schema of \"%.64s\" does not describe an object", i,
                                tool->name);
    }
    return 0;
}

/* JSON that is asked for beside the tools, as a schema; NULL: none is. */
static int find_content(const struct parameters *parameters, const char **ret_schema, struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    *ret_schema = NULL;
    if (!request->grammar || parameters->tool_use == TOOLS_REQUIRED)
        return 0;
    if (request->grammar_kind == QUERN_JSON) {
        *ret_schema = "{\"type\":\"object\"}";
        return 0;
    }
    if (!parameters->schema_is_object)
        return refuse_value(refusal, "tools", "tools: a schema given with tools must describe a JSON object");
    *ret_schema = request->grammar;
    return 0;
}

/* The tools for the grammar, in the parameters' memory, with their schemas parsed, which the array then
 * holds. NULL: no memory. */
static struct grammar_tool *tools_of(struct parameters *parameters, json_t *schemas)
{
    struct grammar_tool *tools = parameters_memory(parameters, parameters->n_tools, sizeof *tools);
    for (size_t i = 0; i < parameters->n_tools && tools; i++) {
        const struct offered_tool *tool = &parameters->tools[i];
        json_t *schema = tool->schema ? json_loads(tool->schema, 0, NULL) : json_object();
        if (json_array_append_new(schemas, schema) < 0)
            return NULL;
        tools[i] = (struct grammar_tool){.name = tool->name,
                                         .schema = schema,
                                         .held = tool->strict || parameters->tool_use == TOOLS_REQUIRED,
                                         .barred = tool->barred};
    }
    return tools;
}

/* Makes the grammar's text the request's. */
static int keep_grammar(struct parameters *parameters, const struct buffer *gbnf, struct refusal *refusal)
{
    char *text = parameters_memory(parameters, gbnf->len + 1, 1);
    if (!text)
        return parameters_out_of_memory(refusal);
    memcpy(text, gbnf->data, gbnf->len);
    parameters->request.grammar = text;
    parameters->request.grammar_kind = QUERN_GBNF;
    return 0;
}

int tool_grammar_set(struct parameters *parameters, const struct model_dialect *dialect,
                     struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    struct call_grammar grammar = {.dialect = dialect,
                                   .n = parameters->n_tools,
                                   .forced = parameters->tool_use == TOOLS_REQUIRED,
                                   .one_call = parameters->one_call,
                                   .thoughts = true,
                                   .inside_thought = parameters->start == DIALECT_START_THOUGHT};
    struct buffer gbnf = {0};
    struct error err = {0};
    bool json =
        request->grammar && (request->grammar_kind == QUERN_JSON || request->grammar_kind == QUERN_SCHEMA);
    if (!json && !is_needed(parameters))
        return 0;
    if (request->grammar && !json)
        return refuse_value(refusal, "tools", "tools: not supported together with a grammar");
    if (check_schemas(parameters, refusal) != 0 || find_content(parameters, &grammar.content, refusal) != 0)
        return REFUSED;
    json_t *schemas = json_array();
    grammar.tools = schemas ? tools_of(parameters, schemas) : NULL;
    int r = grammar.tools ? call_grammar_write(&grammar, &gbnf, &err) : -1;
    json_decref(schemas);
    if (r == 0)
        r = keep_grammar(parameters, &gbnf, refusal);
    else
        r = err.text[0] ? refuse_value(refusal, "tools", "tools: %s", err.text)
                        : parameters_out_of_memory(refusal);
    buffer_deinit(&gbnf);
    return r;
}

int tool_grammar_after_thought(struct parameters *parameters, const struct model_dialect *dialect,
                               struct refusal *refusal)
{
    const struct quern_request *request = &parameters->request;
    const bool json = request->grammar_kind == QUERN_JSON || request->grammar_kind == QUERN_SCHEMA;
    struct buffer gbnf = {0};
    struct error err = {0};
    if (!request->grammar || request->tools || parameters->start != DIALECT_START_THOUGHT)
        return 0;
    if (!json) { /* there is no thought, and none to end */
        parameters->start = DIALECT_START_TEXT;
        parameters->request.has_thinking_budget = false;
        return 0;
    }
    const char *schema = request->grammar_kind == QUERN_JSON ? "{\"type\":\"object\"}" : request->grammar;
    int r = call_grammar_write_after_thought(dialect, schema, &gbnf, &err) == 0
                ? keep_grammar(parameters, &gbnf, refusal)
                : parameters_out_of_memory(refusal);
    buffer_deinit(&gbnf);
    return r;
}
