/* SPDX-License-Identifier: MIT */
/* See conversation.h. All texts are kept in the arena; parts of one are joined there. */

#include "gateway/forms/conversation.h"

#include <stdio.h>
#include <string.h>

#include "gateway/tools/tools.h"

#define MAX_MESSAGES   4096
#define MAX_NAME_BYTES 128 /* as the protocol has them */

/* The text of a part of a content, or NULL and a refusal. */
static const json_t *text_of_part(const char *path, const json_t *part, struct refusal *refusal)
{
    const char *type = json_string_value(json_object_get(part, "type"));
    const json_t *text = json_object_get(part, "text");
    if (!type) {
        refuse_value(refusal, path, "%s is not an object with a type", path);
        return NULL;
    }
    if (strcmp(type, "text") != 0) {
        refuse(refusal, 400, "unsupported_parameter", path,
               "%s: content of the type \"%.40s\" is not supported, "
               "only \"text\"",
               path, type);
        return NULL;
    }
    if (!json_is_string(text)) {
        refuse_value(refusal, path, "%s.text is not a string", path);
        return NULL;
    }
    return text;
}

static int join_parts(struct parameters *parameters, const char *path, json_t *parts, const char **ret_text,
                      struct refusal *refusal)
{
    size_t len = 0, at = 0, n = json_array_size(parts);
    for (size_t i = 0; i < n; i++) {
        char where[sizeof refusal->param];
        snprintf(where, sizeof where, "%s[%zu]", path, i);
        const json_t *text = text_of_part(where, json_array_get(parts, i), refusal);
        if (!text)
            return REFUSED;
        len += json_string_length(text);
    }
    char *joined = parameters_memory(parameters, len + 1, 1);
    if (!joined)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        const json_t *text = json_object_get(json_array_get(parts, i), "text");
        memcpy(joined + at, json_string_value(text), json_string_length(text));
        at += json_string_length(text);
    }
    *ret_text = joined;
    return 0;
}

int conversation_content(struct parameters *parameters, const char *path, json_t *value,
                         const char **ret_text, struct refusal *refusal)
{
    if (json_is_array(value))
        return join_parts(parameters, path, value, ret_text, refusal);
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string or an array of parts", path,
                            value ? json_in_kind(value) : "missing");
    *ret_text = parameters_keep(parameters, value);
    return *ret_text ? 0 : parameters_out_of_memory(refusal);
}

/* One message on its way into the list. */
struct message_in {
    struct parameters *parameters;
    struct quern_message *message;
};

static int take_role(void *into, const struct json_row *row, const char *path, json_t *value,
                     struct refusal *refusal)
{
    static const char *const roles[][2] = {{"system", "system"},
                                           {"developer", "system"},
                                           {"user", "user"},
                                           {"assistant", "assistant"},
                                           {"tool", "tool"}};
    struct message_in *message = into;
    const char *role = json_string_value(value);
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i][0]) == 0) {
            message->message->role = roles[i][1];
            return 0;
        }
    return refuse_value(refusal, path, "%s is not one of system, developer, user, assistant and tool", path);
}

static int take_content(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    struct message_in *message = into;
    if (json_is_array(value) && json_array_size(value) == 0)
        return 0; /* the same as none */
    return conversation_content(message->parameters, path, value, &message->message->content, refusal);
}

static int take_text(void *into, const struct json_row *row, const char *path, json_t *value,
                     struct refusal *refusal)
{
    struct message_in *message = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    if (json_string_length(value) > MAX_NAME_BYTES)
        return refuse_value(refusal, path, "%s has %zu bytes; at most %d are allowed", path,
                            json_string_length(value), MAX_NAME_BYTES);
    const char *kept = parameters_keep(message->parameters, value);
    *(const char **)((char *)message->message + row->offset) = kept;
    return kept ? 0 : parameters_out_of_memory(refusal);
}

/* What the assistant thought before an earlier answer, under any of its names. */
static int take_thought(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    struct message_in *message = into;
    if (!json_is_string(value))
        return refuse_value(refusal, path, "%s is %s, not a string", path, json_in_kind(value));
    message->message->thought = parameters_keep(message->parameters, value);
    return message->message->thought ? 0 : parameters_out_of_memory(refusal);
}

static int take_tool_calls(void *into, const struct json_row *row, const char *path, json_t *value,
                           struct refusal *refusal)
{
    struct message_in *message = into;
    return tools_take_calls(message->parameters, path, value, &message->message->tool_calls, refusal);
}

static const struct json_row message_rows[] = {
    {"role", take_role, NULL, 0},
    {"content", take_content, NULL, 0},
    {"name", take_text, NULL, offsetof(struct quern_message, name)},
    {"tool_call_id", take_text, NULL, offsetof(struct quern_message, tool_call_id)},
    {"tool_name", take_text, NULL, offsetof(struct quern_message, name)},
    {"refusal", json_in_ignore, NULL, 0},
    {"annotations", json_in_ignore, NULL, 0},
    {"reasoning_content", take_thought, NULL, 0},
    {"reasoning", take_thought, NULL, 0},
    {"thinking", take_thought, NULL, 0},
    {"audio", json_in_unsupported, NULL, 0},
    {"images", json_in_unsupported, NULL, 0},
    {"tool_calls", take_tool_calls, NULL, 0},
    {"function_call", json_in_unsupported, NULL, 0},
    {0},
};

/* Every message needs content, except an assistant's that calls tools: its content is "" if left out. */
static int check_content(struct quern_message *message, const char *path, struct refusal *refusal)
{
    char where[sizeof refusal->param];
    if (message->content)
        return 0;
    message->content = "";
    if (message->tool_calls && strcmp(message->role, "assistant") == 0)
        return 0;
    snprintf(where, sizeof where, "%s.content", path);
    return refuse_value(refusal, where, "%s is missing: a message of the role \"%s\" needs one", where,
                        message->role);
}

int conversation_messages(void *into, const struct json_row *row, const char *path, json_t *value,
                          struct refusal *refusal)
{
    struct parameters *parameters = into;
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n == 0)
        return refuse_value(refusal, path, "%s is %s, not an array of messages", path,
                            json_is_array(value) ? "empty" : json_in_kind(value));
    if (n > MAX_MESSAGES)
        return refuse_value(refusal, path, "%s has %zu messages; at most %d are allowed", path, n,
                            MAX_MESSAGES);
    struct quern_message *messages = parameters_memory(parameters, n, sizeof *messages);
    if (!messages)
        return parameters_out_of_memory(refusal);
    for (size_t i = 0; i < n; i++) {
        char where[64];
        struct message_in message = {parameters, &messages[i]};
        json_t *object = json_array_get(value, i);
        snprintf(where, sizeof where, "%s[%zu]", path, i);
        if (!json_is_object(object))
            return refuse_value(refusal, where, "%s is %s, not an object", where, json_in_kind(object));
        if (json_in_take(&message, message_rows, where, object, refusal) != 0)
            return REFUSED;
        if (!messages[i].role)
            return refuse_value(refusal, where, "%s has no role", where);
        if (check_content(&messages[i], where, refusal) != 0)
            return REFUSED;
    }
    parameters->request.messages = messages;
    parameters->request.n_messages = n;
    return 0;
}

int conversation_system(void *into, const struct json_row *row, const char *path, json_t *value,
                        struct refusal *refusal)
{
    struct parameters *parameters = into;
    return conversation_content(parameters, path, value, &parameters->system, refusal);
}
