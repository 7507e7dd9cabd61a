/* SPDX-License-Identifier: MIT */
/* Chat templates: the variables that a template expects, and the way from its text to ids.
 *
 * The template language itself is jinja/'s. What matters here is who wrote what: everything out of the
 * messages is marked as the user's, the template's own words and the texts of BOS and EOS are not, and the
 * tokenizer then parses control tokens only in the latter. A turn that spells <|im_end|> stays inside its
 * turn. */

#include "text/template/chat_template.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/amount.h"
#include "text/template/jinja/jinja.h"

struct chat_template {
    struct jinja_template *jinja;
    json_t *bos, *eos; /* strings */
};

int chat_template_new(struct bytes source, struct bytes bos, struct bytes eos,
                      struct chat_template **ret_template, struct error *err)
{
    struct chat_template *t = calloc(1, sizeof *t);
    if (!t)
        return error_set(err, -ENOMEM, "not enough memory for the chat template");
    int r = jinja_template_new(source, &t->jinja, err);
    if (r < 0) {
        chat_template_free(t);
        return error_prefix(err, r, "chat template");
    }
    t->bos = json_stringn(bos.data ? bos.data : "", bos.len);
    t->eos = json_stringn(eos.data ? eos.data : "", eos.len);
    if (!t->bos || !t->eos) {
        bool bos_wrong = !t->bos;
        chat_template_free(t);
        return error_set(err, -EINVAL, "the text of the %s token is not UTF-8", bos_wrong ? "BOS" : "EOS");
    }
    *ret_template = t;
    return 0;
}

struct chat_template *chat_template_free(struct chat_template *chat_template)
{
    if (!chat_template)
        return NULL;
    jinja_template_free(chat_template->jinja);
    json_decref(chat_template->bos);
    json_decref(chat_template->eos);
    free(chat_template);
    return NULL;
}

void chat_template_permit_changes(struct chat_template *chat_template)
{
    jinja_template_permit_changes(chat_template->jinja);
}

void chat_text_deinit(struct chat_text *text)
{
    buffer_deinit(&text->text);
    buffer_deinit(&text->from_user);
}

int chat_template_render(const struct chat_template *chat_template, const json_t *messages,
                         const struct chat_context *context, struct chat_text *ret_text, struct error *err)
{
    enum { OURS = 5 };
    size_t n_extra = context->extra ? json_object_size(context->extra) : 0, n = 0;
    char today[64] = "";
    strftime(today, sizeof today, "%d %b %Y", &context->date);
    json_t *date = json_string(today);
    struct jinja_variable *variables = calloc(n_extra + OURS, sizeof *variables);
    int r = -ENOMEM;
    if (!date || !variables) {
        error_set(err, r, "not enough memory for the chat");
        goto out;
    }
    const char *name;
    json_t *value;
    /* Ours come last: `extra` cannot replace them. */
    json_object_foreach((json_t *)context->extra, name, value)
    {
        variables[n++] = (struct jinja_variable){name, value, true};
    }
    variables[n++] = (struct jinja_variable){"messages", messages, true};
    variables[n++] = (struct jinja_variable){
        "add_generation_prompt", context->add_generation_prompt ? json_true() : json_false(), false};
    variables[n++] = (struct jinja_variable){"bos_token", chat_template->bos, false};
    variables[n++] = (struct jinja_variable){"eos_token", chat_template->eos, false};
    if (!context->no_date_string)
        variables[n++] = (struct jinja_variable){"date_string", date, false};
    r = jinja_render(chat_template->jinja, variables, n, &context->date, &ret_text->text,
                     &ret_text->from_user, err);
    if (r == JINJA_E_REFUSED)
        r = CHAT_TEMPLATE_E_REFUSED;
    if (r < 0)
        error_prefix(err, r, "chat template");
out:
    free(variables);
    json_decref(date);
    return r;
}

int chat_template_add_old_names(json_t *variables, const struct tm *date)
{
    char today[64] = "";
    const json_t *tools = json_object_get(variables, "tools");
    char *functions = tools ? json_dumps(tools, JSON_INDENT(4)) : strdup("");
    strftime(today, sizeof today, "%b %d %Y %H:%M:%S GMT", date);
    const bool good = functions && json_object_set_new(variables, "functions", json_string(functions)) == 0 &&
                      json_object_set_new(variables, "datetime", json_string(today)) == 0;
    free(functions);
    return good ? 0 : -ENOMEM;
}

/* Bytes of JSON that are to be an array of objects. `what` names it in the reason. */
static int objects_of(struct bytes text, const char *what, json_t **ret_array, struct error *err)
{
    json_error_t error;
    json_t *array = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error), *object;
    size_t at;
    bool good = json_is_array(array);
    json_array_foreach(array, at, object)
    {
        good = good && json_is_object(object);
    }
    if (good) {
        *ret_array = array;
        return 0;
    }
    bool parsed = array != NULL;
    json_decref(array);
    return parsed ? error_set(err, -EINVAL, "the %s: not an array of objects", what)
                  : error_set(err, -EINVAL, "the %s: not JSON: %s", what, error.text);
}

/* Arguments that are the text of an object become that object: templates write it out as JSON again. Or the
 * other way round, for templates that take the text. */
static void read_arguments(json_t *call, bool as_text)
{
    json_t *function = json_object_get(call, "function");
    json_t *arguments = json_object_get(function, "arguments");
    if (as_text && json_is_object(arguments)) {
        char *text = json_dumps(arguments, 0);
        json_object_set_new(function, "arguments", text ? json_string(text) : NULL);
        free(text);
    } else if (!as_text && json_is_string(arguments)) {
        json_t *object = json_loads(json_string_value(arguments), JSON_REJECT_DUPLICATES, NULL);
        if (json_is_object(object))
            json_object_set(function, "arguments", object);
        json_decref(object);
    }
}

/* Sets a member that is there. False: it is not UTF-8, or out of memory. */
static bool set_text(json_t *turn, const char *key, struct bytes text)
{
    return text.len == 0 || json_object_set_new(turn, key, json_stringn(text.data, text.len)) == 0;
}

static int set_calls(json_t *turn, struct bytes calls, bool as_text, size_t i, struct error *err)
{
    json_t *array = NULL, *call;
    size_t at;
    if (calls.len == 0)
        return 0;
    char what[48];
    snprintf(what, sizeof what, "tool_calls of message %zu", i);
    int r = objects_of(calls, what, &array, err);
    if (r != 0)
        return r;
    json_array_foreach(array, at, call)
    {
        read_arguments(call, as_text);
    }
    return json_object_set_new(turn, "tool_calls", array) == 0
               ? 0
               : error_set(err, -ENOMEM, "not enough memory for the chat");
}

/* A part of a content: {"type": TYPE, MEMBER: text}; `key` is "…:TYPE:MEMBER". */
static json_t *thought_part(const char *key, json_t *thought)
{
    const char *type = strchr(key, ':') + 1, *member = strchr(type, ':');
    json_t *part = member ? json_pack("{s:o}", "type", json_stringn(type, (size_t)(member - type))) : NULL;
    if (part)
        json_object_set(part, member + 1, thought);
    return part;
}

/* Puts the thought where the template takes it. False: it is not UTF-8, or out of memory. */
static bool set_thought(json_t *turn, const char *key, struct bytes text)
{
    if (text.len == 0 || !key || !key[0])
        return true;
    json_t *thought = json_stringn(text.data, text.len), *content = json_object_get(turn, "content"), *whole;
    bool good = thought != NULL;
    if (good && !strchr(key, ':')) {
        good = json_object_set(turn, key, thought) == 0;
    } else if (good) {
        const bool blocks = strncmp(key, "blocks:", 7) == 0;
        whole = json_pack("[o, {s:s, s:O}]", thought_part(key, thought), "type", blocks ? "response" : "text",
                          "text", content);
        if (blocks)
            whole = json_pack("{s:o}", "blocks", whole);
        good = json_object_set_new(turn, "content", whole) == 0;
    }
    json_decref(thought);
    return good;
}

static int turn_of(const struct chat_conversation *conversation, size_t i, json_t **ret_turn,
                   struct error *err)
{
    const struct chat_turn *from = &conversation->turns[i];
    json_t *turn = json_object();
    static const struct bytes none = {"", 0};
    json_t *role = json_stringn(from->role.len ? from->role.data : none.data, from->role.len);
    json_t *content = json_stringn(from->content.len ? from->content.data : none.data, from->content.len);
    int r = 0;
    if (!role || !content)
        r = error_set(err, -EILSEQ, "the %s of message %zu is not UTF-8", role ? "content" : "role", i);
    else if (!turn || json_object_set(turn, "role", role) < 0 ||
             json_object_set(turn, "content", content) < 0)
        r = error_set(err, -ENOMEM, "not enough memory for the chat");
    else if (!set_text(turn, "name", from->name) || !set_text(turn, "tool_call_id", from->tool_call_id))
        r = error_set(err, -EILSEQ, "a name of message %zu is not UTF-8", i);
    else if (!set_thought(turn, conversation->thought_key, from->thought))
        r = error_set(err, -EILSEQ, "the thought of message %zu is not UTF-8", i);
    else
        r = set_calls(turn, from->tool_calls, conversation->text_arguments, i, err);
    json_decref(role);
    json_decref(content);
    if (r == 0)
        *ret_turn = turn;
    else
        json_decref(turn);
    return r;
}

/* Turns that only call have no content: null, or "", for templates that add strings and ask first for none.
 */
static bool set_contents_of_calls(json_t *messages, bool null)
{
    json_t *turn;
    size_t i;
    bool any = false;
    json_array_foreach(messages, i, turn)
    {
        const json_t *content = json_object_get(turn, "content");
        if (!json_object_get(turn, "tool_calls") || json_string_length(content) > 0 ||
            json_is_array(content) || json_is_object(content))
            continue;
        any = true;
        json_object_set_new(turn, "content", null ? json_null() : json_string(""));
    }
    return any;
}

static int messages_of(const struct chat_conversation *conversation, json_t **ret_messages, struct error *err)
{
    json_t *messages = json_array();
    int r = messages ? 0 : error_set(err, -ENOMEM, "not enough memory for the chat");
    for (size_t i = 0; i < conversation->n && r == 0; i++) {
        json_t *turn = NULL;
        r = turn_of(conversation, i, &turn, err);
        if (r == 0 && json_array_append_new(messages, turn) < 0)
            r = error_set(err, -ENOMEM, "not enough memory for the chat");
    }
    if (r == 0)
        *ret_messages = messages;
    else
        json_decref(messages);
    return r;
}

/* The variables besides: an object. */
static int extra_of(const struct chat_conversation *conversation, const struct tm *date, json_t **ret_extra,
                    struct error *err)
{
    const struct bytes given = conversation->variables;
    json_t *array = NULL, *extra = given.len > 0
                                       ? json_loadb(given.data, given.len, JSON_REJECT_DUPLICATES, NULL)
                                       : json_object();
    int r = 0;
    if (given.len > 0 && !json_is_object(extra))
        r = error_set(err, -EINVAL, "template_kwargs: not an object of JSON");
    if (r == 0 && conversation->tools.len > 0)
        r = objects_of(conversation->tools, "tools", &array, err);
    const bool tools = json_array_size(array) > 0;
    if (r == 0 && (!extra || (tools && json_object_set(extra, "tools", array) < 0) ||
                   chat_template_add_old_names(extra, date) < 0))
        r = error_set(err, -ENOMEM, "not enough memory for the chat");
    json_decref(array);
    if (r == 0)
        *ret_extra = extra;
    else
        json_decref(extra);
    return r;
}

/* The ids of a rendered chat, BOS before them where it belongs and is not yet. */
static int encode_text(const struct tokenizer *tokenizer, const struct chat_text *text, struct ids *ret_ids,
                       struct error *err)
{
    struct ids ids = {0};
    int r = tokenizer_encode_mixed(tokenizer, (struct bytes){text->text.data, text->text.len},
                                   text->from_user.data, TOKENIZER_PARSE_SPECIAL, &ids);
    size_t n_before = ret_ids->len;
    int32_t bos = tokenizer_bos(tokenizer);
    if (r == 0 && tokenizer_adds_bos(tokenizer) && (ids.len == 0 || ids.data[0] != bos))
        r = ids_push(ret_ids, bos);
    if (r == 0)
        r = ids_append(ret_ids, ids.data, ids.len);
    if (r < 0) {
        ret_ids->len = n_before;
        error_set(err, r, "the text of the chat cannot be tokenized: %s", strerror(-r));
    }
    ids_deinit(&ids);
    return r;
}

static int render(const struct chat_template *chat_template, json_t *messages,
                  const struct chat_context *context, struct chat_text *ret_text, struct error *err)
{
    bool null = set_contents_of_calls(messages, true);
    int r = chat_template_render(chat_template, messages, context, ret_text, err);
    if (r != -EINVAL || !null)
        return r;
    chat_text_deinit(ret_text);
    *ret_text = (struct chat_text){0};
    set_contents_of_calls(messages, false);
    return chat_template_render(chat_template, messages, context, ret_text, err);
}

#define MOST_BEHIND 2048 /* bytes that a template may put behind the last turn's text */

/* Where the last turn begins in what was rendered: behind what the turns before it make by themselves. */
static size_t begin_of_turn(const struct chat_template *chat_template, const json_t *messages,
                            const struct chat_context *context, const struct chat_text *text)
{
    json_t *before = json_copy((json_t *)messages);
    struct chat_text other = {0};
    struct error unused = {0};
    size_t same = 0;
    if (before && json_array_remove(before, json_array_size(before) - 1) == 0 &&
        json_array_size(before) > 0 && render(chat_template, before, context, &other, &unused) == 0)
        while (same < other.text.len && same < text->text.len &&
               other.text.data[same] == text->text.data[same])
            same++;
    chat_text_deinit(&other);
    json_decref(before);
    return same;
}

/* Where the last turn's text ends in what was rendered: 0 where it does not stand there as it is. */
static size_t end_of_turn(const struct chat_text *text, size_t begin, struct bytes content)
{
    const size_t len = text->text.len;
    if (content.len == 0 || content.len > len - begin)
        return 0;
    for (size_t behind = 0; behind <= len - begin - content.len && behind <= MOST_BEHIND; behind++) {
        size_t at = len - behind - content.len;
        if (text->from_user.data[at] && text->from_user.data[at + content.len - 1] &&
            memcmp(text->text.data + at, content.data, content.len) == 0)
            return at + content.len;
    }
    return 0;
}

static struct bytes trimmed(struct bytes text)
{
    const char *at = text.data;
    while (text.len > 0 && strchr(" \t\r\n", at[text.len - 1]))
        text.len--;
    for (; text.len > 0 && strchr(" \t\r\n", *at); at++)
        text.len--;
    return (struct bytes){at, text.len};
}

/* Renders what is to go on after the last turn: up to its text, whatever closes it; where the template has
 * changed that text, as a new turn that begins with it. */
static int render_open(const struct chat_template *chat_template, json_t *messages, struct bytes content,
                       struct chat_context *context, struct chat_text *ret_text, struct error *err)
{
    size_t end = 0;
    context->add_generation_prompt = false;
    int r = content.len > 0 ? render(chat_template, messages, context, ret_text, err) : 0;
    if (r == 0 && content.len > 0) {
        size_t begin = begin_of_turn(chat_template, messages, context, ret_text);
        end = end_of_turn(ret_text, begin, content);
        if (end == 0)
            end = end_of_turn(ret_text, begin, trimmed(content));
    }
    if (r != 0 || end > 0) {
        ret_text->text.len = ret_text->from_user.len = r == 0 ? end : 0;
        return r;
    }
    chat_text_deinit(ret_text);
    *ret_text = (struct chat_text){0};
    context->add_generation_prompt = true;
    json_array_remove(messages, json_array_size(messages) - 1);
    r = render(chat_template, messages, context, ret_text, err);
    if (r == 0)
        r = buffer_append(&ret_text->text, content.data, content.len);
    if (r == 0)
        r = buffer_reserve(&ret_text->from_user, content.len + 1);
    if (r < 0)
        return err->text[0] ? r : error_set(err, r, "not enough memory for the chat");
    memset(ret_text->from_user.data + ret_text->from_user.len, 1, content.len);
    ret_text->from_user.len += content.len;
    return 0;
}

/* Sets *ret_text, also where it fails. */
static int write_turns(const struct chat_template *chat_template,
                       const struct chat_conversation *conversation, size_t most, struct chat_text *ret_text,
                       struct error *err)
{
    struct chat_context context = {.add_generation_prompt = true};
    json_t *messages = NULL, *extra = NULL;
    time_t now = time(NULL);
    localtime_r(&now, &context.date);
    *ret_text = (struct chat_text){0};
    int r = messages_of(conversation, &messages, err);
    if (r == 0)
        r = extra_of(conversation, &context.date, &extra, err);
    context.extra = extra;
    if (r == 0 && conversation->continue_last && conversation->n > 0)
        r = render_open(chat_template, messages, conversation->turns[conversation->n - 1].content, &context,
                        ret_text, err);
    else if (r == 0)
        r = render(chat_template, messages, &context, ret_text, err);
    if (r == 0 && ret_text->text.len > most)
        r = error_set(err, -E2BIG, "the conversation has %s; at most %s fit",
                      amount_of_bytes(ret_text->text.len).text, amount_of_bytes(most).text);
    json_decref(messages);
    json_decref(extra);
    return r;
}

static bool has_thoughts(const struct chat_conversation *conversation)
{
    bool any = false;
    for (size_t i = 0; i < conversation->n; i++)
        any |= conversation->turns[i].thought.len > 0;
    return any && conversation->thought_key && conversation->thought_key[0];
}

static int write_conversation(const struct chat_template *chat_template,
                              const struct chat_conversation *conversation, size_t most,
                              struct chat_text *ret_text, struct error *err)
{
    struct chat_text text;
    int r = write_turns(chat_template, conversation, most, &text, err);
    if ((r == -EINVAL || r == CHAT_TEMPLATE_E_REFUSED) && has_thoughts(conversation)) {
        struct chat_conversation without = *conversation;
        without.thought_key = NULL;
        chat_text_deinit(&text);
        r = write_turns(chat_template, &without, most, &text, err);
    }
    if (r == 0)
        *ret_text = text;
    else
        chat_text_deinit(&text);
    return r;
}

int chat_template_encode(const struct chat_template *chat_template, const struct tokenizer *tokenizer,
                         const struct chat_conversation *conversation, size_t most, struct ids *ret_ids,
                         struct buffer *ret_text, struct error *err)
{
    struct chat_text text;
    int r = write_conversation(chat_template, conversation, most, &text, err);
    if (r != 0)
        return r;
    r = encode_text(tokenizer, &text, ret_ids, err);
    if (r == 0 && ret_text)
        r = buffer_append(ret_text, text.text.data, text.text.len);
    chat_text_deinit(&text);
    return r;
}
