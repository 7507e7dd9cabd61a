/* SPDX-License-Identifier: MIT */
/* Parameters that are written one by one, into the members of a JSON object.
 *
 *   before ──before_key─▶ key ──to_text, to_other─▶ value ──behind_text, behind_other─▶ before
 *     └──the call's tail─▶ whole
 *
 * A value is handed on when it is whole: only then is it known what it is. Where texts are quoted, what
 * stands before a value says whether it is one; elsewhere the tool's schema does, and where that allows both,
 * a value that can be read as something else is that. */

#include <errno.h>
#include <string.h>

#include "text/dialect/answer_inside.h"
#include "text/dialect/blank.h"
#include "text/dialect/literal.h"
#include "text/dialect/tool_schema.h"

enum { BEFORE, KEY, VALUE };
enum { GOES_ON = MATCH_WHOLE + 1 };

#define MOST_KEY 256

static const char *quote_of(const struct dialect_calls *calls, bool close)
{
    if (!calls->quoted || calls->behind_other[0])
        return "";
    if (close)
        return calls->behind_text;
    /* What to_text has more than to_other. */
    const size_t other = strlen(calls->to_other);
    return strncmp(calls->to_text, calls->to_other, other) == 0 ? calls->to_text + other : "";
}

static void put(struct answer_parser *parser, struct buffer *to, const void *data, size_t len)
{
    if (buffer_append(to, data, len) < 0)
        parser->failed = true;
}

/* ---- before a parameter ---- */

static int in_before(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct call_members *members = &parser->members;
    const struct dialect_calls *calls = &parser->dialect->calls;
    const struct bytes held = {parser->held.data, parser->held.len};
    size_t end = 0, at = 0, unused;
    int tail = MATCH_NONE, separator = MATCH_NONE;
    if (parser->step + 1 < parser->n_steps)
        tail = match_loose(held, 0, parser->steps[parser->step + 1].text, &unused);
    if (tail == MATCH_WHOLE) {
        sink->arguments(sink->arg, members->any ? BYTES_LITERAL("}") : BYTES_LITERAL("{}"));
        return MATCH_WHOLE;
    }
    if (members->any && calls->separator[0]) {
        separator = match_loose(held, 0, bytes_of_string(calls->separator), &at);
        if (separator == MATCH_MORE || tail == MATCH_MORE)
            return MATCH_MORE;
        at = separator == MATCH_WHOLE ? at : 0;
    }
    const int key = match_loose(held, at, bytes_of_string(calls->before_key), &end);
    if (key == MATCH_MORE || tail == MATCH_MORE || held.len == 0)
        return MATCH_MORE;
    if (key == MATCH_NONE || (end == 0 && members->any)) /* nothing parts it from what was before */
        return MATCH_NONE;
    answer_take_held(parser, end);
    members->place = KEY;
    members->key.len = 0;
    return GOES_ON;
}

/* ---- its name ---- */

/* A mark with the key in it, where it is repeated. */
static void put_pattern(struct answer_parser *parser, struct buffer *to, const char *pattern,
                        struct bytes key)
{
    for (; *pattern; pattern++) {
        if (*pattern == DIALECT_KEY)
            put(parser, to, key.data, key.len);
        else
            put(parser, to, pattern, 1);
    }
}

/* The white space that a mark ends with, where the value begins with it too. */
static size_t blanks_behind(const char *mark, struct bytes held, size_t at)
{
    size_t len = strlen(mark), n = 0;
    while (n < len && is_blank((uint8_t)mark[len - 1 - n]))
        n++;
    if (n > 0 && held.len - at >= n && memcmp((const char *)held.data + at, mark + len - n, n) == 0)
        return n;
    return 0;
}

static const json_t *schema_of(const struct answer_parser *parser)
{
    for (size_t i = 0; i < parser->n_tools; i++)
        if (strcmp(parser->tools[i].name, (const char *)parser->name.data) == 0)
            return parser->tools[i].schema;
    return NULL;
}

static unsigned kinds_here(const struct answer_parser *parser)
{
    return tool_schema_kinds(schema_of(parser), (const char *)parser->members.key.data);
}

static int in_key(struct answer_parser *parser)
{
    struct call_members *members = &parser->members;
    const struct dialect_calls *calls = &parser->dialect->calls;
    while (parser->held.len > 0 && is_blank(parser->held.data[0]))
        answer_take_held(parser, 1);
    const struct bytes held = {parser->held.data, parser->held.len};
    for (size_t at = 0; at < held.len && at <= MOST_KEY; at++) {
        size_t text_end = 0, other_end = 0;
        const int text = match_loose(held, at, bytes_of_string(calls->to_text), &text_end);
        const int other =
            calls->quoted ? match_loose(held, at, bytes_of_string(calls->to_other), &other_end) : MATCH_NONE;
        if (text == MATCH_MORE || (text == MATCH_NONE && other == MATCH_MORE))
            return MATCH_MORE;
        if (text == MATCH_NONE && other == MATCH_NONE)
            continue;
        /* Both fit where one goes on from the other: the longer one counts. */
        members->is_text = text == MATCH_WHOLE && (other != MATCH_WHOLE || text_end >= other_end);
        const char *mark = members->is_text ? calls->to_text : calls->to_other;
        const size_t end = members->is_text ? text_end : other_end;
        const size_t len = strlen(mark);
        if (len > 0 && is_blank((uint8_t)mark[len - 1]) && end == held.len)
            return MATCH_MORE; /* the blank may come */
        put(parser, &members->key, held.data, at);
        put(parser, &members->key, "", 1);
        members->behind.len = 0;
        put_pattern(parser, &members->behind, members->is_text ? calls->behind_text : calls->behind_other,
                    (struct bytes){held.data, at});
        answer_take_held(parser, end + blanks_behind(mark, held, end));
        members->place = VALUE;
        members->looked = 0;
        members->quote = 0;
        members->only_json = !(members->is_text && calls->quoted) && !(kinds_here(parser) & KIND_TEXT);
        parser->depth = 0;
        parser->in_string = parser->escaped = false;
        return GOES_ON;
    }
    return held.len > MOST_KEY ? MATCH_NONE : MATCH_MORE;
}

/* ---- its value ---- */

/* What may follow a value whose end is a bare quote: else the quote belongs to it. */
static int is_end(const struct answer_parser *parser, size_t at)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    const struct bytes held = {parser->held.data, parser->held.len};
    size_t end;
    const struct bytes marks[] = {bytes_of_string(calls->separator),
                                  parser->step + 1 < parser->n_steps ? parser->steps[parser->step + 1].text
                                                                     : BYTES_LITERAL("")};
    bool more = false;
    for (size_t i = 0; i < 2; i++) {
        const int match = marks[i].len > 0 ? match_loose(held, at, marks[i], &end) : MATCH_NONE;
        if (match == MATCH_WHOLE)
            return MATCH_WHOLE;
        more |= match == MATCH_MORE;
    }
    return more ? MATCH_MORE : MATCH_NONE;
}

/* Follows JSON, byte by byte: whether this one is part of a string. */
static bool in_json_string(struct answer_parser *parser, uint8_t byte)
{
    if (parser->in_string) {
        parser->in_string = parser->escaped || byte != '"';
        parser->escaped = !parser->escaped && byte == '\\';
        return true;
    }
    parser->in_string = byte == '"';
    return parser->in_string;
}

/* Where a value ends that has a mark behind it. */
static int find_mark(struct answer_parser *parser, size_t *ret_end, size_t *ret_next)
{
    struct call_members *members = &parser->members;
    const struct bytes held = {parser->held.data, parser->held.len};
    const char *data = held.data, *mark = (const char *)members->behind.data;
    size_t len = members->behind.len, blank = 0;
    while (blank < len && is_blank((uint8_t)mark[blank]))
        blank++;
    while (len > blank && is_blank((uint8_t)mark[len - 1]))
        len--;
    const size_t n = len - blank;
    for (size_t at = members->looked; at + n <= held.len; at++) {
        members->looked = at + 1;
        if (members->only_json && in_json_string(parser, (uint8_t)data[at]))
            continue;
        if (memcmp(data + at, mark + blank, n) != 0)
            continue;
        if (n < 3) {
            if (at > 0 && data[at - 1] == '\\')
                continue;
            const int follows = is_end(parser, at + n);
            if (follows == MATCH_MORE) {
                members->looked = at;
                return MATCH_MORE;
            }
            if (follows == MATCH_NONE)
                continue;
        }
        *ret_next = at + n;
        *ret_end = at >= blank && memcmp(data + at - blank, mark, blank) == 0 ? at - blank : at;
        return MATCH_WHOLE;
    }
    return MATCH_MORE;
}

/* And where one does that has none: at what parts parameters, or ends them, outside of brackets and texts. */
static int find_bare_end(struct answer_parser *parser, size_t *ret_end, size_t *ret_next)
{
    struct call_members *members = &parser->members;
    const char *data = (const char *)parser->held.data, *quote = quote_of(&parser->dialect->calls, false),
               *close = quote_of(&parser->dialect->calls, true);
    const size_t quote_len = strlen(quote), close_len = strlen(close);
    size_t at = members->looked;
    for (; at < parser->held.len; at++) {
        const size_t left = parser->held.len - at;
        if (members->quote) {
            if (parser->escaped)
                parser->escaped = false;
            else if (data[at] == '\\')
                parser->escaped = true;
            else if (data[at] == members->quote)
                members->quote = 0;
        } else if (parser->in_string) { /* between the dialect's own quotes */
            if (close_len > left)
                break;
            if (memcmp(data + at, close, close_len) == 0) {
                parser->in_string = false;
                at += close_len - 1;
            }
        } else if (quote_len > 2 && data[at] == quote[0]) {
            if (quote_len > left)
                break;
            if (memcmp(data + at, quote, quote_len) == 0) {
                parser->in_string = true;
                at += quote_len - 1;
            }
        } else if (data[at] == '"' || data[at] == '\'') {
            members->quote = data[at];
        } else if (data[at] == '{' || data[at] == '[' || data[at] == '(') {
            parser->depth++;
        } else if (data[at] == '}' || data[at] == ']' || data[at] == ')') {
            if (parser->depth == 0) {
                *ret_end = *ret_next = at;
                return MATCH_WHOLE;
            }
            parser->depth--;
        } else if (data[at] == ',' && parser->depth == 0) {
            *ret_end = *ret_next = at;
            return MATCH_WHOLE;
        }
    }
    members->looked = at;
    return MATCH_MORE;
}

/* What stands in <![CDATA[…]]>. */
static struct bytes without_cdata(struct bytes value)
{
    static const char open[] = "<![CDATA[", close[] = "]]>";
    const size_t most = sizeof open - 1 + sizeof close - 1;
    const char *data = value.data;
    if (value.len < most || memcmp(data, open, sizeof open - 1) != 0 ||
        memcmp(data + value.len - (sizeof close - 1), close, sizeof close - 1) != 0)
        return value;
    return (struct bytes){data + sizeof open - 1, value.len - most};
}

/* Values inside values, written as parameters are: members of an object, or, where all are called "item", of
 * an array. The value's kind; 0: it is none. */
static int nested_read(struct answer_parser *parser, struct bytes value, int depth)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    struct buffer *json = &parser->members.json, close = {0};
    const struct bytes open = bytes_of_string(calls->before_key), to = bytes_of_string(calls->to_text);
    const char *at = value.data, *end = at + value.len;
    const size_t before = json->len;
    bool items = true;
    int kind = 0;
    put(parser, json, "{", 1);
    while (open.len > 0 && depth < 32 && (size_t)(end - at) > open.len &&
           memcmp(at, open.data, open.len) == 0) {
        at += open.len;
        const char *stop = memmem(at, (size_t)(end - at), to.data, to.len);
        if (!stop)
            break;
        const struct bytes key = {at, (size_t)(stop - at)};
        close.len = 0;
        put_pattern(parser, &close, calls->behind_text, key);
        at = stop + to.len;
        stop = close.len > 0 ? memmem(at, (size_t)(end - at), close.data, close.len) : NULL;
        if (!stop)
            break;
        items &= bytes_equal(key, BYTES_LITERAL("item"));
        put(parser, json, ", ", json->len > before + 1 ? 2 : 0);
        if (!items && (literal_append_text(key, json) < 0 || buffer_append(json, ": ", 2) < 0))
            parser->failed = true;
        const struct bytes inner = {at, (size_t)(stop - at)};
        if (literal_read(inner, "", "", json) <= 0 && nested_read(parser, inner, depth + 1) == 0 &&
            literal_append_text(inner, json) < 0)
            parser->failed = true;
        at = stop + close.len;
        kind = at == end ? (items ? KIND_ARRAY : KIND_OBJECT) : 0;
    }
    buffer_deinit(&close);
    if (kind == 0) {
        json->len = before;
        return 0;
    }
    if (kind == KIND_ARRAY)
        json->data[before] = '[';
    put(parser, json, kind == KIND_ARRAY ? "]" : "}", 1);
    return kind;
}

/* Appends the value as JSON. */
static void put_value(struct answer_parser *parser, struct bytes value)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    struct call_members *members = &parser->members;
    unsigned kinds = members->is_text && calls->quoted ? KIND_TEXT : kinds_here(parser);
    if (!members->is_text)
        kinds = calls->quoted ? KIND_ANY : kinds;
    const size_t before = members->json.len;
    int kind = 0;
    if (kinds != KIND_TEXT)
        kind = literal_read(value, quote_of(calls, false), quote_of(calls, true), &members->json);
    if (kind < 0)
        parser->failed = true;
    if (kind == 0 && (kinds & (KIND_OBJECT | KIND_ARRAY)))
        kind = nested_read(parser, value, 0);
    if (kind > 0 && (kind & (int)kinds) && (kind != KIND_TEXT || calls->quoted))
        return;
    if (kind > 0 && !(kinds & KIND_TEXT)) /* not what the schema says, but what was written */
        return;
    members->json.len = before;
    if (calls->cdata)
        value = without_cdata(value);
    if (literal_append_text(value, &members->json) < 0)
        parser->failed = true;
}

static int in_value(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct call_members *members = &parser->members;
    size_t end = 0, next = 0;
    const int found =
        members->behind.len > 0 ? find_mark(parser, &end, &next) : find_bare_end(parser, &end, &next);
    if (found != MATCH_WHOLE)
        return found;
    members->json.len = 0;
    put(parser, &members->json, members->any ? ", " : "{", members->any ? 2 : 1);
    if (literal_append_text((struct bytes){members->key.data, members->key.len - 1}, &members->json) < 0)
        parser->failed = true;
    put(parser, &members->json, ": ", 2);
    put_value(parser, (struct bytes){parser->held.data, end});
    members->any = true;
    members->place = BEFORE;
    answer_take_held(parser, next);
    if (!parser->failed)
        sink->arguments(sink->arg, (struct bytes){members->json.data, members->json.len});
    return GOES_ON;
}

int call_members_step(struct answer_parser *parser, const struct answer_sink *sink)
{
    int r = GOES_ON;
    while (r == GOES_ON && !parser->failed) {
        switch (parser->members.place) {
        case BEFORE:
            r = in_before(parser, sink);
            break;
        case KEY:
            r = in_key(parser);
            break;
        default:
            r = in_value(parser, sink);
        }
    }
    if (r == MATCH_NONE) /* what was read so far is all */
        sink->arguments(sink->arg, parser->members.any ? BYTES_LITERAL("}") : BYTES_LITERAL("{}"));
    return r == GOES_ON ? MATCH_MORE : r;
}
