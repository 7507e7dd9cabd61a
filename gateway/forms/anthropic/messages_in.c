/* SPDX-License-Identifier: MIT */
/* See messages_in.h.
 *
 *   assistant: text, tool_use …       one message with the text and the calls
 *   user: tool_result …, text         a message with the role tool for each result, then the text
 *
 * The list has room for a message for each block and one more. */

#include "gateway/forms/anthropic/messages_in.h"

#include <stdio.h>
#include <string.h>

#include "gateway/forms/conversation.h"
#include "gateway/tools/tools.h"

#define MAX_MESSAGES 4096

/* A message under way. */
struct reading {
    struct parameters *parameters;
    struct quern_message *messages; /* [n] so far */
    size_t n;
    const char *thought;   /* of the message under way; NULL: none */
    json_t *texts, *calls; /* blocks of text; calls in OpenAI's form */
};

static const char *type_of(const json_t *block)
{
    const char *type = json_string_value(json_object_get(block, "type"));
    return type ? type : "";
}

static int take_call(struct reading *reading, const char *path, json_t *block, struct refusal *refusal)
{
    json_t *name = json_object_get(block, "name"), *id = json_object_get(block, "id");
    json_t *input = json_object_get(block, "input");
    if (!json_is_string(name) || !json_is_string(id) || !json_is_object(input))
        return refuse_value(refusal, path, "%s: a tool_use has an id, a name and an input", path);
    json_t *call = json_pack("{s:O, s:s, s:{s:O, s:O}}", "id", id, "type", "function", "function", "name",
                             name, "arguments", input);
    return call && json_array_append_new(reading->calls, call) == 0 ? 0 : parameters_out_of_memory(refusal);
}

/* The last one of a message counts: it stands before the text and the calls. */
static int take_thought(struct reading *reading, const char *path, json_t *block, struct refusal *refusal)
{
    json_t *thought = json_object_get(block, "thinking");
    if (!json_is_string(thought))
        return refuse_value(refusal, path, "%s: a thinking block has a text", path);
    reading->thought = parameters_keep(reading->parameters, thought);
    return reading->thought ? 0 : parameters_out_of_memory(refusal);
}

static int take_result(struct reading *reading, const char *path, json_t *block, struct refusal *refusal)
{
    struct quern_message *message = &reading->messages[reading->n++];
    json_t *content = json_object_get(block, "content");
    *message = (struct quern_message){.role = "tool", .content = ""};
    const json_t *id = json_object_get(block, "tool_use_id");
    if (!json_is_string(id))
        return refuse_value(refusal, path, "%s: a tool_result has a tool_use_id", path);
    message->tool_call_id = parameters_keep(reading->parameters, id);
    if (!message->tool_call_id)
        return parameters_out_of_memory(refusal);
    if (!content || json_is_null(content))
        return 0;
    return conversation_content(reading->parameters, path, content, &message->content, refusal);
}

static int take_blocks(struct reading *reading, const char *path, json_t *blocks, bool assistant,
                       struct refusal *refusal)
{
    int r = 0;
    for (size_t i = 0; i < json_array_size(blocks) && r == 0; i++) {
        char where[64];
        json_t *block = json_array_get(blocks, i);
        snprintf(where, sizeof where, "%.40s[%zu]", path, i);
        if (assistant && strcmp(type_of(block), "tool_use") == 0)
            r = take_call(reading, where, block, refusal);
        else if (assistant && strcmp(type_of(block), "thinking") == 0)
            r = take_thought(reading, where, block, refusal);
        else if (assistant && strcmp(type_of(block), "redacted_thinking") == 0)
            continue; /* nobody here can read it */
        else if (!assistant && strcmp(type_of(block), "tool_result") == 0)
            r = take_result(reading, where, block, refusal);
        else if (json_array_append(reading->texts, block) < 0) /* what is no text is refused there */
            r = parameters_out_of_memory(refusal);
    }
    return r;
}

static int take_message(struct reading *reading, const char *path, json_t *object, struct refusal *refusal)
{
    static const struct json_row known[] = {
        {"role", json_in_ignore, NULL, 0}, {"content", json_in_ignore, NULL, 0}, {0}};
    if (json_in_take(NULL, known, path, object, refusal) != 0)
        return REFUSED;
    const char *role = json_string_value(json_object_get(object, "role")), *text = "";
    json_t *content = json_object_get(object, "content");
    char where[80];
    bool assistant = role && strcmp(role, "assistant") == 0;
    if (!assistant && (!role || strcmp(role, "user") != 0)) {
        snprintf(where, sizeof where, "%s.role", path);
        return refuse_value(refusal, where, "%s is neither user nor assistant", where);
    }
    snprintf(where, sizeof where, "%s.content", path);
    if (json_is_array(content) && json_array_size(content) == 0)
        return refuse_value(refusal, where, "%s is empty", where);
    size_t before = reading->n;
    json_array_clear(reading->texts);
    json_array_clear(reading->calls);
    reading->thought = NULL;
    int r = json_is_array(content) ? take_blocks(reading, where, content, assistant, refusal) : 0;
    if (r == 0)
        r = conversation_content(reading->parameters, where,
                                 json_is_array(content) ? reading->texts : content, &text, refusal);
    bool results_only = reading->n > before && !text[0];
    if (r != 0 || results_only)
        return r;
    struct quern_message *message = &reading->messages[reading->n++];
    *message = (struct quern_message){
        .role = assistant ? "assistant" : "user", .content = text, .thought = reading->thought};
    if (json_array_size(reading->calls) > 0)
        message->tool_calls = parameters_keep_json(reading->parameters, reading->calls);
    return json_array_size(reading->calls) > 0 && !message->tool_calls ? parameters_out_of_memory(refusal)
                                                                       : 0;
}

/* Most messages that the array can become; 0 and a refusal where it is none. */
static size_t room_for(const char *path, json_t *value, struct refusal *refusal)
{
    size_t n = json_array_size(value), room = n;
    if (!json_is_array(value) || n == 0) {
        refuse_value(refusal, path, "%s is %s, not an array of messages", path,
                     json_is_array(value) ? "empty" : json_in_kind(value));
        return 0;
    }
    for (size_t i = 0; i < n; i++)
        room += json_array_size(json_object_get(json_array_get(value, i), "content"));
    if (room <= MAX_MESSAGES)
        return room;
    refuse_value(refusal, path, "%s has %zu messages and blocks; at most %d are allowed", path, room,
                 MAX_MESSAGES);
    return 0;
}

int messages_take(void *into, const struct json_row *row, const char *path, json_t *value,
                  struct refusal *refusal)
{
    struct reading reading = {.parameters = into, .texts = json_array(), .calls = json_array()};
    size_t room = room_for(path, value, refusal);
    int r = room > 0 ? 0 : REFUSED;
    if (r == 0)
        reading.messages = parameters_memory(into, room, sizeof *reading.messages);
    if (r == 0 && (!reading.messages || !reading.texts || !reading.calls))
        r = parameters_out_of_memory(refusal);
    for (size_t i = 0; i < json_array_size(value) && r == 0; i++) {
        char where[64];
        json_t *object = json_array_get(value, i);
        snprintf(where, sizeof where, "%.24s[%zu]", path, i);
        r = json_is_object(object)
                ? take_message(&reading, where, object, refusal)
                : refuse_value(refusal, where, "%s is %s, not an object", where, json_in_kind(object));
    }
    json_decref(reading.texts);
    json_decref(reading.calls);
    reading.parameters->request.messages = reading.messages;
    reading.parameters->request.n_messages = reading.n;
    return r;
}
