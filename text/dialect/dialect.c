/* SPDX-License-Identifier: MIT */
/* See dialect.h. The texts of a dialect are a table, by which they are copied, written and read: JSON has
 * what is not empty. */

#include "text/dialect/dialect.h"

#include <errno.h>
#include <string.h>

struct text_row {
    const char *key;
    size_t offset;
};
struct flag_row {
    const char *key;
    size_t offset;
};

#define CALL(member)    offsetof(struct model_dialect, calls.member)
#define THOUGHT(member) offsetof(struct model_dialect, thoughts.member)

static const struct text_row call_texts[] = {
    {"open", CALL(open)},           {"head", CALL(head)},
    {"middle", CALL(middle)},       {"tail", CALL(tail)},
    {"close", CALL(close)},         {"before_key", CALL(before_key)},
    {"to_text", CALL(to_text)},     {"behind_text", CALL(behind_text)},
    {"to_other", CALL(to_other)},   {"behind_other", CALL(behind_other)},
    {"separator", CALL(separator)},
};
/* NULL where there is none. */
static const struct text_row call_options[] = {
    {"between", CALL(between)},
    {"name_key", CALL(name_key)},
    {"arguments_key", CALL(arguments_key)},
};
static const struct flag_row call_flags[] = {
    {"quoted", CALL(quoted)}, {"python", CALL(python)},
    {"cdata", CALL(cdata)},   {"text_arguments", CALL(text_arguments)},
    {"untold", CALL(untold)},
};
static const struct text_row thought_texts[] = {
    {"open", THOUGHT(open)},       {"close", THOUGHT(close)},
    {"key", THOUGHT(key)},         {"effort_key", THOUGHT(effort_key)},
    {"efforts", THOUGHT(efforts)}, {"budget_key", THOUGHT(budget_key)},
    {"end", THOUGHT(end)},
};
static const struct text_row content_texts[] = {
    {"open", offsetof(struct model_dialect, content_open)},
    {"close", offsetof(struct model_dialect, content_close)},
};
static const struct text_row starts[] = {
    {"usual", THOUGHT(usual)},
    {"on", THOUGHT(on)},
    {"off", THOUGHT(off)},
};

#define N(table) (sizeof(table) / sizeof *(table))

static const char **text_at(const struct model_dialect *dialect, size_t offset)
{
    return (const char **)((char *)dialect + offset);
}

static void clear(struct model_dialect *dialect, const struct text_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++)
        *text_at(dialect, rows[i].offset) = "";
}

void dialect_init(struct model_dialect *dialect)
{
    *dialect = (struct model_dialect){0};
    clear(dialect, call_texts, N(call_texts));
    clear(dialect, thought_texts, N(thought_texts));
    clear(dialect, content_texts, N(content_texts));
    dialect->calls.reason = dialect->thoughts.reason = "";
}

void dialect_deinit(struct model_dialect *dialect)
{
    json_decref(dialect->thoughts.switch_on);
    json_decref(dialect->thoughts.switch_off);
    arena_deinit(&dialect->arena);
    *dialect = (struct model_dialect){0};
}

const char *dialect_keep(struct model_dialect *dialect, struct bytes text)
{
    char *copy = arena_take(&dialect->arena, text.len + 1, 1);
    if (copy && text.len > 0)
        memcpy(copy, text.data, text.len);
    return copy;
}

/* ---- writing ---- */

/* False: no memory, or a text is not UTF-8. */
static bool write_texts(const struct model_dialect *dialect, const struct text_row *rows, size_t n,
                        json_t *into)
{
    for (size_t i = 0; i < n; i++) {
        const char *text = *text_at(dialect, rows[i].offset);
        if (text && text[0] && json_object_set_new(into, rows[i].key, json_string(text)) < 0)
            return false;
    }
    return true;
}

static json_t *write_calls(const struct model_dialect *dialect)
{
    const struct dialect_calls *calls = &dialect->calls;
    json_t *json = json_object();
    if (!json)
        return NULL;
    if (!calls->known) {
        if (json_object_set_new(json, "unknown", json_string(calls->reason)) == 0)
            return json;
        json_decref(json);
        return NULL;
    }
    bool good =
        json_object_set_new(json, "arguments",
                            json_string(calls->arguments == DIALECT_JSON ? "json" : "members")) == 0 &&
        write_texts(dialect, call_texts, N(call_texts), json);
    for (size_t i = 0; i < N(call_options) && good; i++) {
        const char *text = *text_at(dialect, call_options[i].offset);
        good = !text || json_object_set_new(json, call_options[i].key, json_string(text)) == 0;
    }
    for (size_t i = 0; i < N(call_flags) && good; i++)
        if (*(const bool *)((const char *)dialect + call_flags[i].offset))
            good = json_object_set_new(json, call_flags[i].key, json_true()) == 0;
    if (good)
        return json;
    json_decref(json);
    return NULL;
}

static json_t *write_thoughts(const struct model_dialect *dialect)
{
    static const char *const names[] = {"text", "thought"};
    const struct dialect_thoughts *thoughts = &dialect->thoughts;
    json_t *json = json_object();
    if (!json)
        return NULL;
    if (!thoughts->known) {
        if (json_object_set_new(json, "unknown", json_string(thoughts->reason)) == 0)
            return json;
        json_decref(json);
        return NULL;
    }
    bool good = write_texts(dialect, thought_texts, N(thought_texts), json);
    for (size_t i = 0; i < N(starts) && good; i++) {
        enum dialect_start start = *(const enum dialect_start *)((const char *)dialect + starts[i].offset);
        good = json_object_set_new(json, starts[i].key, json_string(names[start])) == 0;
    }
    if (good && thoughts->switch_on)
        good = json_object_set(json, "switch_on", thoughts->switch_on) == 0;
    if (good && thoughts->switch_off)
        good = json_object_set(json, "switch_off", thoughts->switch_off) == 0;
    if (good)
        return json;
    json_decref(json);
    return NULL;
}

json_t *dialect_write(const struct model_dialect *dialect)
{
    json_t *calls = write_calls(dialect), *thoughts = write_thoughts(dialect), *content = json_object();
    bool good =
        calls && thoughts && content && write_texts(dialect, content_texts, N(content_texts), content);
    json_t *json = good ? json_pack("{s:O, s:O}", "calls", calls, "thoughts", thoughts) : NULL;
    if (json && json_object_size(content) > 0 && json_object_set(json, "content", content) < 0) {
        json_decref(json);
        json = NULL;
    }
    json_decref(calls);
    json_decref(thoughts);
    json_decref(content);
    return json;
}

/* ---- reading ---- */

static int read_texts(struct model_dialect *dialect, const struct text_row *rows, size_t n,
                      const json_t *from, struct error *err)
{
    for (size_t i = 0; i < n; i++) {
        const json_t *value = json_object_get(from, rows[i].key);
        if (!value)
            continue;
        if (!json_is_string(value))
            return error_set(err, -EINVAL, "dialect: %s is not a string", rows[i].key);
        const char *kept =
            dialect_keep(dialect, (struct bytes){json_string_value(value), json_string_length(value)});
        if (!kept)
            return error_set(err, -ENOMEM, "not enough memory for the dialect");
        *text_at(dialect, rows[i].offset) = kept;
    }
    return 0;
}

static int read_reason(struct model_dialect *dialect, const json_t *from, bool *ret_known,
                       const char **ret_reason)
{
    const json_t *unknown = json_object_get(from, "unknown");
    *ret_known = json_is_object(from) && !unknown;
    if (!json_is_string(unknown))
        return 0;
    *ret_reason =
        dialect_keep(dialect, (struct bytes){json_string_value(unknown), json_string_length(unknown)});
    return *ret_reason ? 0 : -ENOMEM;
}

static void read_starts(struct model_dialect *dialect, const json_t *from)
{
    for (size_t i = 0; i < N(starts); i++) {
        const char *name = json_string_value(json_object_get(from, starts[i].key));
        *(enum dialect_start *)((char *)dialect + starts[i].offset) =
            name && strcmp(name, "thought") == 0 ? DIALECT_START_THOUGHT : DIALECT_START_TEXT;
    }
}

static int read_object(struct model_dialect *dialect, const json_t *json, struct error *err)
{
    const json_t *calls = json_object_get(json, "calls"), *thoughts = json_object_get(json, "thoughts");
    const char *arguments = json_string_value(json_object_get(calls, "arguments"));
    int r = read_texts(dialect, call_texts, N(call_texts), calls, err);
    if (r == 0)
        r = read_texts(dialect, call_options, N(call_options), calls, err);
    if (r == 0)
        r = read_texts(dialect, thought_texts, N(thought_texts), thoughts, err);
    if (r == 0)
        r = read_texts(dialect, content_texts, N(content_texts), json_object_get(json, "content"), err);
    if (r != 0)
        return r;
    for (size_t i = 0; i < N(call_flags); i++)
        *(bool *)((char *)dialect + call_flags[i].offset) =
            json_is_true(json_object_get(calls, call_flags[i].key));
    dialect->calls.arguments =
        arguments && strcmp(arguments, "members") == 0 ? DIALECT_MEMBERS : DIALECT_JSON;
    read_starts(dialect, thoughts);
    json_t *on = json_object_get(thoughts, "switch_on"), *off = json_object_get(thoughts, "switch_off");
    dialect->thoughts.switch_on = json_is_object(on) ? json_incref(on) : NULL;
    dialect->thoughts.switch_off = json_is_object(off) ? json_incref(off) : NULL;
    if (read_reason(dialect, calls, &dialect->calls.known, &dialect->calls.reason) < 0 ||
        read_reason(dialect, thoughts, &dialect->thoughts.known, &dialect->thoughts.reason) < 0)
        return error_set(err, -ENOMEM, "not enough memory for the dialect");
    return 0;
}

/* In a text of a call. */
static size_t count_places(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += *text == DIALECT_NAME || *text == DIALECT_ID || *text == DIALECT_INDEX;
    return n;
}

int dialect_check(const struct model_dialect *dialect, struct error *err)
{
    const struct dialect_calls *calls = &dialect->calls;
    const size_t places = count_places(calls->open) + count_places(calls->head) +
                          count_places(calls->middle) + count_places(calls->tail);
    if (dialect->thoughts.known && !dialect->thoughts.close[0])
        return error_set(err, -EINVAL, "dialect: the end of thoughts (close) is empty");
    if (dialect->thoughts.known && dialect->thoughts.end[0] &&
        !strstr(dialect->thoughts.end, dialect->thoughts.close))
        return error_set(err, -EINVAL, "dialect: the end of a thought (end) does not contain its close");
    if (!calls->known)
        return 0;
    if (!calls->name_key != !calls->arguments_key)
        return error_set(err, -EINVAL, "dialect: name_key and arguments_key must be given together");
    if (calls->name_key && !strchr(calls->head, '{'))
        return error_set(err, -EINVAL, "dialect: the head of a call that is a JSON object has no \"{\"");
    if (places > DIALECT_MOST_PLACES)
        return error_set(
            err, -EINVAL,
            "dialect: a call has %zu placeholders for names, ids and numbers; at most %d are allowed", places,
            DIALECT_MOST_PLACES);
    return 0;
}

int dialect_read(struct bytes text, struct model_dialect *dialect, struct error *err)
{
    json_error_t error;
    if (text.len > DIALECT_MOST_BYTES)
        return error_set(err, -EINVAL, "dialect: more than %d bytes", DIALECT_MOST_BYTES);
    json_t *json = json_loadb(text.data, text.len, JSON_REJECT_DUPLICATES, &error);
    if (!json_is_object(json)) {
        bool parsed = json != NULL;
        json_decref(json);
        return parsed ? error_set(err, -EINVAL, "dialect: not an object")
                      : error_set(err, -EINVAL, "dialect: not JSON: %s", error.text);
    }
    int r = read_object(dialect, json, err);
    json_decref(json);
    return r == 0 ? dialect_check(dialect, err) : r;
}

void dialect_each_text(const struct model_dialect *dialect, void (*take)(void *arg, const char *text),
                       void *arg)
{
    if (dialect->calls.known) {
        for (size_t i = 0; i < N(call_texts); i++)
            take(arg, *text_at(dialect, call_texts[i].offset));
        if (dialect->calls.between)
            take(arg, dialect->calls.between);
    }
    if (dialect->thoughts.known) {
        take(arg, dialect->thoughts.open);
        take(arg, dialect->thoughts.close);
    }
    take(arg, dialect->content_open);
    take(arg, dialect->content_close);
}
