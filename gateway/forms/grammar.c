/* SPDX-License-Identifier: MIT */
/* A schema is passed on as text, with its keys in the order in which they came: that is the order of the
 * answer's. */

#include "gateway/forms/grammar.h"

#include <string.h>

static int set_grammar(struct parameters *parameters, const char *path, enum quern_grammar kind,
                       const char *text, struct refusal *refusal)
{
    if (parameters->request.grammar)
        return refuse_value(refusal, path, "%s: the request already has a grammar", path);
    parameters->request.grammar = text;
    parameters->request.grammar_kind = kind;
    return 0;
}

static int take_text(struct parameters *parameters, const char *path, enum quern_grammar kind, json_t *value,
                     struct refusal *refusal)
{
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) == 0)
        return refuse_value(refusal, path, "%s is empty", path);
    const char *text = parameters_keep(parameters, value);
    return text ? set_grammar(parameters, path, kind, text, refusal) : parameters_out_of_memory(refusal);
}

int grammar_gbnf(void *into, const struct json_row *row, const char *path, json_t *value,
                 struct refusal *refusal)
{
    return take_text(into, path, QUERN_GBNF, value, refusal);
}

int grammar_regex(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    return take_text(into, path, QUERN_REGEX, value, refusal);
}

int grammar_schema(void *into, const struct json_row *row, const char *path, json_t *value,
                   struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (json_is_string(value)) {
        json_t *schema = json_loads(json_string_value(value), 0, NULL);
        parameters->schema_is_object = json_is_object(schema);
        json_decref(schema);
        return take_text(into, path, QUERN_SCHEMA, value, refusal);
    }
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not a schema", path, json_in_kind(value));
    const char *text = parameters_keep_json(parameters, value);
    parameters->schema_is_object = true;
    return text ? set_grammar(parameters, path, QUERN_SCHEMA, text, refusal)
                : parameters_out_of_memory(refusal);
}

int grammar_format(void *into, const struct json_row *row, const char *path, json_t *value,
                   struct refusal *refusal)
{
    if (json_is_string(value) && json_string_length(value) == 0)
        return 0; /* Ollama's own clients say so when nothing is asked for */
    if (!json_is_string(value)) {
        struct parameters *parameters = into;
        parameters->schema_is_closed = true; /* as Ollama reads it */
        return grammar_schema(into, row, path, value, refusal);
    }
    if (strcmp(json_string_value(value), "json") != 0)
        return refuse_value(refusal, path, "%s is neither \"json\" nor a schema", path);
    return set_grammar(into, path, QUERN_JSON, "", refusal);
}

/* ---- OpenAI ---- */

static const struct json_row schema_rows[] = {
    {"name", json_in_ignore, NULL, 0},   {"description", json_in_ignore, NULL, 0},
    {"strict", json_in_ignore, NULL, 0}, /* take_json_schema */
    {"schema", grammar_schema, NULL, 0}, {0},
};

static int take_json_schema(void *into, const struct json_row *row, const char *path, json_t *value,
                            struct refusal *refusal)
{
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
    if (!json_object_get(value, "schema") || json_is_null(json_object_get(value, "schema")))
        return refuse_value(refusal, path, "%s has no schema", path);
    struct parameters *parameters = into;
    parameters->schema_is_closed = json_is_true(json_object_get(value, "strict"));
    return json_in_take(into, schema_rows, path, value, refusal);
}

static const struct json_row response_format_rows[] = {
    {"type", json_in_ignore, NULL, 0},
    {"json_schema", take_json_schema, NULL, 0},
    {"schema", grammar_schema, NULL, 0}, /* llama-server's, beside json_object */
    {0},
};

int grammar_response_format(void *into, const struct json_row *row, const char *path, json_t *value,
                            struct refusal *refusal)
{
    struct parameters *parameters = into;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!json_is_object(value) || !type)
        return refuse_value(refusal, path, "%s is not an object with a type", path);
    if (strcmp(type, "text") == 0)
        return 0;
    bool schema = strcmp(type, "json_schema") == 0;
    if (!schema && strcmp(type, "json_object") != 0)
        return refuse_value(refusal, path,
                            "%s: the type \"%.40s\" is not one of text, json_object and json_schema", path,
                            type);
    if (schema && !json_is_object(json_object_get(value, "json_schema")))
        return refuse_value(refusal, path, "%s has no json_schema", path);
    const char *before = parameters->request.grammar;
    if (json_in_take(into, response_format_rows, path, value, refusal) != 0)
        return REFUSED;
    return parameters->request.grammar != before ? 0 : set_grammar(parameters, path, QUERN_JSON, "", refusal);
}

/* ---- vLLM ---- */

static const struct json_row structured_outputs_rows[] = {
    {"json", grammar_schema, NULL, 0},
    {"regex", grammar_regex, NULL, 0},
    {"grammar", grammar_gbnf, NULL, 0},
    {0},
};

int grammar_structured_outputs(void *into, const struct json_row *row, const char *path, json_t *value,
                               struct refusal *refusal)
{
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
    return json_in_take(into, structured_outputs_rows, path, value, refusal);
}

/* ---- closed schemas ---- */

int grammar_close(struct parameters *parameters, struct refusal *refusal)
{
    static const char head[] = "root ::= %json ";
    struct quern_request *request = &parameters->request;
    if (!request->grammar || request->grammar_kind != QUERN_SCHEMA || !parameters->schema_is_closed ||
        !parameters->schema_is_object)
        return 0;
    const size_t len = strlen(request->grammar);
    char *text = parameters_memory(parameters, sizeof head + len, 1);
    if (!text)
        return parameters_out_of_memory(refusal);
    memcpy(text, head, sizeof head - 1);
    memcpy(text + sizeof head - 1, request->grammar, len + 1);
    request->grammar = text;
    request->grammar_kind = QUERN_GBNF;
    return 0;
}
