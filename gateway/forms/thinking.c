/* SPDX-License-Identifier: MIT */
/* See thinking.h. Families say it in their own ways; what is kept of them is whether to think, how much, and
 * for how many tokens. A request that says nothing gets what the template does by itself. */

#include "gateway/forms/thinking.h"

#include <string.h>

int thinking_ollama(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (json_is_string(value))
        return thinking_effort(into, row, path, value, refusal);
    if (!json_is_boolean(value))
        return refuse_value(refusal, path, "%s is %s, not a boolean or a level", path, json_in_kind(value));
    if (json_is_true(value))
        parameters->with_thinking = row->key;
    else
        parameters->without_thinking = row->key;
    return 0;
}

int thinking_effort(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    struct parameters *parameters = into;
    const char *effort = json_string_value(value);
    size_t i = 0;
    while (effort && i < sizeof efforts / sizeof *efforts && strcmp(efforts[i], effort) != 0)
        i++;
    if (!effort || i == sizeof efforts / sizeof *efforts)
        return refuse_value(refusal, path, "%s is not one of none, minimal, low, medium, high, xhigh and max",
                            path);
    if (i == 0) {
        parameters->without_thinking = row->key;
        return 0;
    }
    parameters->effort = efforts[i];
    /* As much as there is where nobody says anything: no reason to refuse a model that does not think. */
    if (strcmp(effort, "medium") != 0)
        parameters->with_thinking = row->key;
    return 0;
}

static int take_budget(struct parameters *parameters, const char *name, const char *path, const json_t *value,
                       struct refusal *refusal)
{
    const json_int_t tokens = json_integer_value(value);
    if (!json_is_integer(value) || tokens < 1 || tokens > INT32_MAX)
        return refuse_value(refusal, path, "%s is not a positive number of tokens", path);
    parameters->budget_name = name;
    parameters->request.has_thinking_budget = true;
    parameters->request.thinking_budget = (uint32_t)tokens;
    return 0;
}

int thinking_anthropic(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    const char *type = json_string_value(json_object_get(value, "type"));
    json_t *budget = json_object_get(value, "budget_tokens");
    if (!type)
        return refuse_value(refusal, path, "%s is not an object with a type", path);
    if (strcmp(type, "disabled") == 0) {
        parameters->without_thinking = row->key;
        return 0;
    }
    if (strcmp(type, "enabled") != 0 && strcmp(type, "adaptive") != 0)
        return refuse_value(refusal, path, "%s: the type \"%.40s\" is not enabled, adaptive or disabled",
                            path, type);
    parameters->with_thinking = row->key;
    return budget ? take_budget(parameters, row->key, "thinking.budget_tokens", budget, refusal) : 0;
}

int thinking_budget(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    parameters->unbounded_thought = json_is_integer(value) && json_integer_value(value) == -1;
    if (parameters->unbounded_thought)
        return 0;
    if (json_is_integer(value) && json_integer_value(value) == 0) {
        parameters->without_thinking = row->key;
        return 0;
    }
    return take_budget(parameters, row->key, path, value, refusal);
}

int thinking_format(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    const char *format = json_string_value(value);
    if (format && strcmp(format, "none") == 0)
        ((struct parameters *)into)->raw_thoughts = true;
    else if (!format || (strcmp(format, "auto") != 0 && strcmp(format, "deepseek") != 0))
        return refuse_value(refusal, path, "%s is not one of none, auto and deepseek", path);
    return 0;
}

int thinking_kwargs(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (!json_is_object(value))
        return refuse_value(refusal, path, "%s is %s, not an object", path, json_in_kind(value));
    parameters->kwargs = parameters_keep_json(parameters, value);
    return parameters->kwargs ? 0 : parameters_out_of_memory(refusal);
}

/* ---- the model's switches ---- */

/* Whether the variables have all of the switch's values. */
static bool is_set(const json_t *variables, const json_t *wanted)
{
    const char *key;
    json_t *value;
    bool all = json_object_size(wanted) > 0;
    json_object_foreach((json_t *)wanted, key, value)
    {
        all &= json_equal(json_object_get(variables, key), value) != 0;
    }
    return all;
}

static bool knows(const char *efforts, const char *effort)
{
    const size_t len = strlen(effort);
    for (const char *at = efforts; (at = strstr(at, effort)); at += len)
        if ((at == efforts || at[-1] == ' ') && (at[len] == ' ' || !at[len]))
            return true;
    return false;
}

/* The template's word for an effort: that, or the nearest that it knows. */
static const char *word_for(const char *efforts, const char *effort)
{
    static const char *const nearest[][4] = {
        {"minimal", "minimal", "low", NULL}, {"low", "low", "minimal", "medium"},
        {"medium", "medium", NULL, NULL},    {"high", "high", "max", "xhigh"},
        {"xhigh", "xhigh", "max", "high"},   {"max", "max", "xhigh", "high"}};
    for (size_t i = 0; i < sizeof nearest / sizeof *nearest; i++)
        for (size_t j = 1; j < 4 && strcmp(nearest[i][0], effort) == 0; j++)
            if (nearest[i][j] && knows(efforts, nearest[i][j]))
                return nearest[i][j];
    return NULL;
}

static int refuse_switch(const char *param, const char *what, struct refusal *refusal)
{
    return refuse(refusal, 400, "unsupported_parameter", param, "%s: %s", param, what);
}

/* The gateway's default, where the request says nothing of a budget, nor that there shall be no thought. One
 * of 0 leaves alone who asks for a thought. */
static void use_default(struct parameters *parameters, const struct dialect_thoughts *thoughts,
                        const json_t *variables)
{
    const bool said =
        parameters->budget_name || parameters->unbounded_thought || parameters->without_thinking;
    if (!parameters->has_default_budget || !parameters->request.messages || !thoughts->known || said ||
        is_set(variables, thoughts->switch_off))
        return;
    if (parameters->default_budget > 0) {
        parameters->request.has_thinking_budget = true;
        parameters->request.thinking_budget = parameters->default_budget;
    } else if (!parameters->with_thinking && !is_set(variables, thoughts->switch_on)) {
        parameters->without_thinking = "thinking_budget";
    }
}

/* A budget that nobody could keep; -1 and 0 are no such. */
static int check_budget(const struct parameters *parameters, const struct dialect_thoughts *thoughts,
                        struct refusal *refusal)
{
    if (!parameters->budget_name || parameters->without_thinking || thoughts->known ||
        !parameters->request.messages)
        return 0;
    return refuse(refusal, 400, "unsupported_parameter", parameters->budget_name,
                  "%s: unknown how this model ends a thought: %s", parameters->budget_name,
                  thoughts->reason[0] ? thoughts->reason : "it has no chat template");
}

/* Puts into the variables what switches thinking on or off. Where the template has no switch for the latter,
 * thoughts are closed as soon as they are opened; so they are in a prompt that is sent as it is, for which
 * the model's dialect is not read here. */
static int apply(struct parameters *parameters, const struct dialect_thoughts *thoughts, json_t *variables,
                 struct refusal *refusal)
{
    const char *with = parameters->with_thinking, *without = parameters->without_thinking;
    int r = 0;
    if (without && thoughts->switch_off) {
        r = json_object_update_missing(variables, thoughts->switch_off);
    } else if (without && (thoughts->known || !parameters->request.messages)) {
        parameters->request.has_thinking_budget = true;
        parameters->request.thinking_budget = 0;
    }
    if (with && !without && !thoughts->known && !thoughts->switch_on && !thoughts->effort_key[0])
        return refuse_switch(with, "this model does not think before it answers", refusal);
    if (with && !without && thoughts->switch_on)
        r |= json_object_update_missing(variables, thoughts->switch_on);
    const char *word = parameters->effort ? word_for(thoughts->efforts, parameters->effort) : NULL;
    if (word && !without && thoughts->effort_key[0])
        r |= json_object_set_new(variables, thoughts->effort_key, json_string(word));
    if (parameters->request.has_thinking_budget && thoughts->budget_key[0] &&
        !json_object_get(variables, thoughts->budget_key))
        r |= json_object_set_new(variables, thoughts->budget_key,
                                 json_integer(parameters->request.thinking_budget));
    return r == 0 ? 0 : parameters_out_of_memory(refusal);
}

int thinking_set(struct parameters *parameters, const struct model_dialect *dialect, struct refusal *refusal)
{
    const struct dialect_thoughts *thoughts = &dialect->thoughts;
    json_t *variables = parameters->kwargs ? json_loads(parameters->kwargs, 0, NULL) : json_object();
    if (!variables)
        return parameters_out_of_memory(refusal);
    int r = check_budget(parameters, thoughts, refusal);
    use_default(parameters, thoughts, variables);
    if (r == 0)
        r = apply(parameters, thoughts, variables, refusal);
    const bool off = parameters->without_thinking || is_set(variables, thoughts->switch_off),
               on = parameters->with_thinking || is_set(variables, thoughts->switch_on);
    parameters->start = off ? (int)thoughts->off : on ? (int)thoughts->on : (int)thoughts->usual;
    if (r == 0 && json_object_size(variables) > 0 && parameters->request.messages) {
        parameters->request.template_kwargs = parameters_keep_json(parameters, variables);
        r = parameters->request.template_kwargs ? 0 : parameters_out_of_memory(refusal);
    }
    json_decref(variables);
    return r;
}
