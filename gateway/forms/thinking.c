/* SPDX-License-Identifier: MIT */
/* See thinking.h. Thoughts are part of the answer's text. Ollama's and Anthropic's parameters ask for them in
 * a field of their own, which is not supported, so turning thinking on is always refused. */

#include "gateway/forms/thinking.h"

#include <string.h>

static int refuse_thoughts(const char *path, const char *asked, struct refusal *refusal)
{
    return refuse(refusal, 400, "unsupported_parameter", path,
                  "%s: %s is not supported: thinking is not separated from the answer", path, asked);
}

int thinking_ollama(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    struct parameters *parameters = into;
    if (json_is_true(value) || json_is_string(value))
        return refuse_thoughts(path, json_is_true(value) ? "true" : "a level", refusal);
    if (!json_is_false(value))
        return refuse_value(refusal, path, "%s is %s, not a boolean", path, json_in_kind(value));
    parameters->without_thinking = row->key;
    return 0;
}

int thinking_effort(void *into, const struct json_row *row, const char *path, json_t *value,
                    struct refusal *refusal)
{
    static const char *const efforts[] = {"none", "minimal", "low", "medium", "high", "xhigh"};
    struct parameters *parameters = into;
    const char *effort = json_string_value(value);
    size_t i = 0;
    while (effort && i < sizeof efforts / sizeof *efforts && strcmp(efforts[i], effort) != 0)
        i++;
    if (!effort || i == sizeof efforts / sizeof *efforts)
        return refuse_value(refusal, path, "%s is not one of none, minimal, low, medium, high and xhigh",
                            path);
    if (i == 0)
        parameters->without_thinking = row->key;
    else if (strcmp(effort, "medium") == 0) /* as much as there is where nobody says anything */
        parameters->with_thinking = row->key;
    else
        return refuse(refusal, 400, "unsupported_parameter", path,
                      "%s: \"%s\" is not supported: the amount of thinking cannot be chosen", path, effort);
    return 0;
}

int thinking_anthropic(void *into, const struct json_row *row, const char *path, json_t *value,
                       struct refusal *refusal)
{
    struct parameters *parameters = into;
    const char *type = json_string_value(json_object_get(value, "type"));
    if (!type)
        return refuse_value(refusal, path, "%s is not an object with a type", path);
    if (strcmp(type, "disabled") != 0)
        return refuse(refusal, 400, "unsupported_parameter", path,
                      "%s: the type \"%.40s\" is not supported: thinking is not separated from the answer",
                      path, type);
    parameters->without_thinking = row->key;
    return 0;
}

int thinking_check(const struct parameters *parameters, bool thinks, struct refusal *refusal)
{
    const char *without = parameters->without_thinking, *with = parameters->with_thinking;
    if (without && thinks)
        return refuse(refusal, 400, "unsupported_parameter", without,
                      "%s: this model thinks before it answers; disabling that is not supported", without);
    if (with && !thinks)
        return refuse(refusal, 400, "unsupported_parameter", with,
                      "%s: this model does not think before it answers", with);
    return 0;
}
