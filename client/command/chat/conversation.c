/* SPDX-License-Identifier: MIT */
/* See conversation.h. What a file has that cannot be kept here is an error: nothing of it is dropped
 * silently. */

#include "client/command/chat/conversation.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "client/command/terminal/io.h"
#include "common/files/output_file.h"
#include "common/utf8.h"

static char *copy_of(struct bytes text)
{
    return strndup(text.len > 0 ? text.data : "", text.len);
}

int conversation_add(struct conversation *conversation, const char *role, struct bytes text,
                     struct bytes thought)
{
    if (conversation->n == conversation->cap) {
        const size_t larger = conversation->cap * 2 + 16;
        struct quern_message *moved = realloc(conversation->turns, larger * sizeof *moved);
        if (!moved)
            return -ENOMEM;
        conversation->turns = moved;
        conversation->cap = larger;
    }
    char *content = copy_of(text), *thoughts = thought.len > 0 ? copy_of(thought) : NULL;
    if (!content || (thought.len > 0 && !thoughts)) {
        free(content);
        free(thoughts);
        return -ENOMEM;
    }
    conversation->turns[conversation->n++] =
        (struct quern_message){.role = role, .content = content, .thought = thoughts};
    return 0;
}

static void forget_turn(struct quern_message *turn)
{
    free((char *)turn->content);
    free((char *)turn->thought);
}

void conversation_forget_from(struct conversation *conversation, size_t n)
{
    while (conversation->n > n)
        forget_turn(&conversation->turns[--conversation->n]);
}

int conversation_set_system(struct conversation *conversation, const char *text)
{
    struct quern_message system;
    if (text[0]) { /* at the end first: if that fails, nothing has changed */
        int r = conversation_add(conversation, "system", bytes_of_string(text), (struct bytes){0});
        if (r < 0)
            return r;
        system = conversation->turns[--conversation->n];
    }
    if (conversation->n > 0 && strcmp(conversation->turns[0].role, "system") == 0) {
        forget_turn(&conversation->turns[0]);
        conversation->n--;
        memmove(conversation->turns, conversation->turns + 1, conversation->n * sizeof *conversation->turns);
    }
    if (text[0]) {
        memmove(conversation->turns + 1, conversation->turns, conversation->n * sizeof *conversation->turns);
        conversation->turns[0] = system;
        conversation->n++;
    }
    return 0;
}

void conversation_deinit(struct conversation *conversation)
{
    conversation_forget_from(conversation, 0);
    free(conversation->turns);
    *conversation = (struct conversation){0};
}

/* ---- as a file ---- */

static json_t *json_of(const struct conversation *conversation)
{
    json_t *messages = json_array();
    for (size_t i = 0; i < conversation->n; i++) {
        const struct quern_message *turn = &conversation->turns[i];
        json_t *message = json_pack("{s:s, s:s, s:s*}", "role", turn->role, "content", turn->content,
                                    "reasoning_content", turn->thought);
        if (json_array_append_new(messages, message) != 0) {
            json_decref(messages);
            return NULL;
        }
    }
    return json_pack("{s:o}", "messages", messages);
}

/* JSON is UTF-8, and what was typed may not be. */
static int check_texts(const struct conversation *conversation, struct error *err)
{
    for (size_t i = 0; i < conversation->n; i++) {
        const struct bytes content = bytes_of_string(conversation->turns[i].content);
        if (utf8_valid(content) < content.len)
            return error_set(err, -EILSEQ, "the %s message (messages[%zu]) is not UTF-8",
                             conversation->turns[i].role, i);
    }
    return 0;
}

int conversation_save(const struct conversation *conversation, const char *path, struct error *err)
{
    struct output_file file;
    int r = check_texts(conversation, err);
    if (r < 0)
        return r;
    json_t *json = json_of(conversation);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    json_decref(json);
    if (!text)
        return error_set(err, -ENOMEM, "out of memory");
    r = output_file_open(&file, path, err);
    if (r == 0) {
        r = output_file_write(&file, text, strlen(text), err);
        r = r == 0 ? output_file_write(&file, "\n", 1, err) : r;
        r = r == 0 ? output_file_commit(&file, err) : output_file_discard(&file, r);
    }
    free(text);
    return r;
}

/* The literal for a role, or NULL. */
static const char *role_of(const json_t *message)
{
    static const char *const roles[] = {"system", "user", "assistant"};
    const char *role = json_string_value(json_object_get(message, "role"));
    for (size_t i = 0; role && i < sizeof roles / sizeof *roles; i++)
        if (strcmp(role, roles[i]) == 0)
            return roles[i];
    return NULL;
}

/* A member that the file may have and a conversation on a terminal does not; NULL: none. */
static const char *foreign_member(const json_t *message)
{
    static const char *const names[] = {"tool_calls", "calls", "files", "images"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const json_t *value = json_object_get(message, names[i]);
        if (value && !json_is_null(value) && !(json_is_array(value) && json_array_size(value) == 0))
            return names[i];
    }
    return NULL;
}

static struct bytes text_of(const json_t *string)
{
    return (struct bytes){json_string_value(string), json_string_length(string)};
}

static int load_message(struct conversation *conversation, const json_t *message, size_t i, struct error *err)
{
    const char *role = role_of(message), *foreign = foreign_member(message);
    const json_t *content = json_object_get(message, "content"),
                 *thought = json_object_get(message, "reasoning_content");
    if (!thought)
        thought = json_object_get(message, "thought"); /* as the page calls it */
    if (!role)
        return error_set(err, -EINVAL, "messages[%zu].role is not system, user or assistant", i);
    if (foreign)
        return error_set(err, -EINVAL, "messages[%zu] has %s, which quern chat does not support", i, foreign);
    if (!json_is_string(content))
        return error_set(err, -EINVAL, "messages[%zu].content is not a string", i);
    if (thought && !json_is_null(thought) && !json_is_string(thought))
        return error_set(err, -EINVAL, "messages[%zu]: the thought is not a string", i);
    if (strcmp(role, "system") == 0 && i > 0)
        return error_set(err, -EINVAL, "messages[%zu].role is system; only the first can be", i);
    if (conversation_add(conversation, role, text_of(content),
                         json_is_string(thought) ? text_of(thought) : (struct bytes){0}) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    return 0;
}

static int load_messages(struct conversation *conversation, const json_t *json, struct error *err)
{
    const json_t *messages = json_is_object(json) ? json_object_get(json, "messages") : json;
    int r = 0;
    if (!json_is_array(messages))
        return error_set(err, -EINVAL, "has no array \"messages\"");
    const size_t n = json_array_size(messages);
    for (size_t i = 0; i < n && r == 0; i++)
        r = load_message(conversation, json_array_get(messages, i), i, err);
    if (r == 0 && n > 0 && strcmp(conversation->turns[n - 1].role, "user") == 0)
        r = error_set(err, -EINVAL, "messages[%zu] is a user message without an answer", n - 1);
    return r;
}

int conversation_load(struct conversation *conversation, const char *path, struct error *err)
{
    struct conversation loaded = {0};
    struct buffer text = {0};
    json_error_t said;
    int r = io_read_file(path, CONVERSATION_MAX_BYTES, &text, err);
    if (r < 0) {
        buffer_deinit(&text);
        return r;
    }
    json_t *json = json_loadb((const char *)text.data, text.len, 0, &said);
    buffer_deinit(&text);
    if (json)
        r = load_messages(&loaded, json, err);
    else
        r = error_set(err, -EINVAL, "line %d: %.120s", said.line, said.text);
    json_decref(json);
    if (r < 0) {
        conversation_deinit(&loaded);
        return error_prefix(err, r, "%.200s", path);
    }
    conversation_deinit(conversation);
    *conversation = loaded;
    return 0;
}
