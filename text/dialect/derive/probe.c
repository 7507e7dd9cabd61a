/* SPDX-License-Identifier: MIT */
/* See probe.h. */

#include "text/dialect/derive/probe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MOST_RENDERS 160
#define MOST_TEXT    (1u << 20)

static json_t *tool(const char *name)
{
    return json_pack(
        "{s:s, s:{s:s, s:s, s:{s:s, s:{s:{s:s,s:s}, s:{s:s,s:s}, s:{s:s,s:s}, s:{s:s,s:s}}, s:[s]}}}", "type",
        "function", "function", "name", name, "description", "A tool", "parameters", "type", "object",
        "properties", PROBE_ONE, "type", "string", "description", "A text", PROBE_TWO, "type", "string",
        "description", "A text", PROBE_NUM, "type", "number", "description", "A number", PROBE_FLAG, "type",
        "boolean", "description", "A flag", "required", PROBE_ONE);
}

int probe_init(struct probe *probe, const struct chat_template *chat_template)
{
    *probe = (struct probe){.chat_template = chat_template};
    probe->tools = json_pack("[o, o]", tool(PROBE_FIRST), tool(PROBE_SECOND));
    return probe->tools ? 0 : -ENOMEM;
}

void probe_deinit(struct probe *probe)
{
    json_decref(probe->tools);
    *probe = (struct probe){0};
}

json_t *probe_user(void)
{
    return json_pack("{s:s, s:s}", "role", "user", "content", PROBE_ASKS);
}

json_t *probe_assistant(const char *content)
{
    return json_pack("{s:s, s:s?}", "role", "assistant", "content", content);
}

json_t *probe_result(void)
{
    return json_pack("{s:s, s:s, s:s, s:s}", "role", "tool", "tool_call_id", PROBE_ID_1, "name", PROBE_FIRST,
                     "content", PROBE_RETURNS);
}

void probe_add_call(const struct probe *probe, json_t *message, const char *name, const char *id,
                    json_t *arguments)
{
    json_t *calls = json_object_get(message, "tool_calls");
    if (probe->null_content && json_string_length(json_object_get(message, "content")) == 0)
        json_object_set_new(message, "content", json_null());
    if (!calls) {
        calls = json_array();
        json_object_set_new(message, "tool_calls", calls);
    }
    if (probe->text_arguments && arguments) {
        char *text = json_dumps(arguments, 0);
        json_decref(arguments);
        arguments = text ? json_string(text) : NULL;
        free(text);
    }
    json_array_append_new(calls, json_pack("{s:s, s:s, s:{s:s, s:o}}", "id", id, "type", "function",
                                           "function", "name", name, "arguments", arguments));
}

json_t *probe_conversation(json_t *first, json_t *second, json_t *third)
{
    json_t *messages = json_array();
    json_t *const given[] = {first, second, third};
    for (size_t i = 0; i < 3 && given[i]; i++)
        json_array_append_new(messages, given[i]);
    return messages;
}

int probe_render(struct probe *probe, json_t *messages, struct probe_manner manner, char **ret_text)
{
    struct chat_text text = {0};
    struct chat_context context = {.add_generation_prompt = manner.prompt,
                                   .date = {.tm_year = 126, .tm_mday = 1}};
    json_t *extra = manner.more ? json_copy((json_t *)manner.more) : json_object();
    int r = messages && extra ? 0 : -ENOMEM;
    if (r == 0 && manner.tools)
        r = json_object_set(extra, "tools", probe->tools) == 0 ? 0 : -ENOMEM;
    if (r == 0 && ++probe->n_renders > MOST_RENDERS)
        r = error_set(&probe->last, -EMSGSIZE, "the template needs too many probes");
    if (r == 0)
        r = chat_template_add_old_names(extra, &context.date);
    context.extra = extra;
    if (r == 0)
        r = chat_template_render(probe->chat_template, messages, &context, &text, &probe->last);
    if (r == 0 && text.text.len > MOST_TEXT)
        r = error_set(&probe->last, -EMSGSIZE, "the template's output is too long");
    if (r == 0)
        r = buffer_append(&text.text, "", 1);
    if (r == 0) {
        *ret_text = (char *)text.text.data;
        text.text = (struct buffer){0};
    }
    chat_text_deinit(&text);
    json_decref(extra);
    json_decref(messages);
    return r;
}

struct span probe_behind(const char *text)
{
    const struct span all = span_of(text), asks = span_of(PROBE_ASKS);
    const size_t at = span_find_last(all, asks);
    return at < all.len ? span_from(all, at + asks.len) : all;
}
