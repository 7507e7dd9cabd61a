/* SPDX-License-Identifier: MIT */
/* A call inside an answer, step by step (call_steps.c), and what may follow one.
 *
 * A call is told once it is certain: by its name, where a mark precedes it or the name is a tool's, and the
 * beginning of its arguments. Until then its bytes are kept as they came (`raw`). One that turns out to be
 * none is taken back: its first character is text, and the rest is looked at again. That is done for 4 KiB at
 * most, or an answer of marks without calls would cost the square of its length. */

#include <string.h>

#include "text/dialect/answer_inside.h"
#include "text/dialect/blank.h"

#define MOST_NAME  256
#define MOST_AGAIN (4u << 10) /* bytes that are looked through again when they were no call */

static bool says_nothing(const char *text)
{
    while (is_blank((uint8_t)*text) || *text == ',')
        text++;
    return !*text;
}

void answer_call_begin(struct answer_parser *parser, size_t step)
{
    parser->place = CALL;
    parser->step = step;
    parser->begun = false;
    parser->raw.len = parser->name.len = 0;
    parser->depth = 0;
    parser->in_string = parser->escaped = false;
    parser->members.any = false;
    parser->members.place = 0;
    parser->members.looked = 0;
    parser->members.json.len = 0;
    call_object_deinit(&parser->object);
    parser->object.name_key = parser->dialect->calls.name_key;
    parser->object.arguments_key = parser->dialect->calls.arguments_key;
}

/* It was no call: its first word is text, and the rest is looked at again. */
static void take_back(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct buffer raw = parser->raw;
    parser->raw = (struct buffer){0};
    size_t n = 0;
    while (n < raw.len && is_blank(raw.data[n]))
        n++;
    n += n < raw.len;
    while (n < raw.len && raw.data[n] >= 0x80 && raw.data[n] < 0xc0)
        n++; /* the rest of its character */
    if (raw.len > MOST_AGAIN)
        n = raw.len;
    if (raw.len == 0 && parser->marked && parser->step == 0) { /* nothing was taken: the mark is text */
        const size_t word = match_blanks(answer_held(parser), 0, "") + parser->mark_len;
        const size_t upto = word < parser->held.len ? word : parser->held.len;
        answer_tell(parser, sink, parser->held.data, upto);
        buffer_consume(&parser->held, upto);
    }
    answer_tell(parser, sink, raw.data, n);
    if (raw.len > n) {
        if (buffer_append(&raw, parser->held.data, parser->held.len) < 0)
            parser->failed = true;
        buffer_deinit(&parser->held);
        parser->held = raw;
        buffer_consume(&parser->held, n);
    } else {
        buffer_deinit(&raw);
    }
    call_object_deinit(&parser->object);
    parser->at_head = false;
    parser->place = TEXT;
}

static void end_call(struct answer_parser *parser, const struct answer_sink *sink)
{
    sink->end(sink->arg);
    parser->begun = false;
    parser->raw.len = 0;
    parser->place = AFTER;
}

/* A step did not fit. */
static bool no_call(struct answer_parser *parser, const struct answer_sink *sink)
{
    if (parser->begun)
        end_call(parser, sink);
    else
        take_back(parser, sink);
    return true;
}

bool answer_call_is_tool(const struct answer_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->n_tools; i++)
        if (strcmp(parser->tools[i].name, name) == 0)
            return true;
    return false;
}

static void announce(struct answer_parser *parser, const struct answer_sink *sink, const char *name)
{
    if (parser->begun)
        return;
    sink->call(sink->arg, name);
    parser->begun = parser->any = true;
    parser->at_head = false;
    parser->raw.len = 0;
}

static bool in_object(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct call_object *object = &parser->object;
    const size_t blanks = match_blanks(answer_held(parser), 0, "");
    if (object->place == 0) { /* before its brace */
        if (blanks == parser->held.len && blanks <= ANSWER_MOST_BLANKS)
            return false;
        if (blanks > ANSWER_MOST_BLANKS || parser->held.data[blanks] != '{')
            return no_call(parser, sink);
        answer_take_held(parser, blanks);
    }
    if (parser->held.len == 0)
        return false;
    answer_take_held(parser, call_object_push(object, parser->held.data, parser->held.len));
    const bool whole = object->state == CALL_OBJECT_WHOLE;
    /* Without marks only the name says whether it is a call. */
    if (object->has_name && !parser->begun && !parser->marked &&
        !answer_call_is_tool(parser, (const char *)object->name.data))
        return no_call(parser, sink);
    if (object->has_name && (object->has_arguments || whole)) {
        announce(parser, sink, (const char *)object->name.data);
        if (!object->has_arguments)
            sink->arguments(sink->arg, BYTES_LITERAL("{}"));
        if (object->arguments.len > 0)
            sink->arguments(sink->arg, (struct bytes){object->arguments.data, object->arguments.len});
        object->arguments.len = 0;
    }
    if (object->state == CALL_OBJECT_OPEN)
        return false;
    if (!whole || !parser->begun)
        return no_call(parser, sink);
    parser->step++;
    return true;
}

/* Arguments as a JSON object: braces are counted outside of strings. */
static bool in_json(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct bytes held = answer_held(parser);
    if (parser->depth == 0) {
        const size_t blanks = match_blanks(held, 0, "");
        if (blanks == held.len && blanks <= ANSWER_MOST_BLANKS)
            return false;
        if (blanks > ANSWER_MOST_BLANKS || parser->held.data[blanks] != '{')
            return no_call(parser, sink);
        answer_take_held(parser, blanks);
        announce(parser, sink, (const char *)parser->name.data);
        held = answer_held(parser);
    }
    const uint8_t *data = held.data;
    size_t n = 0;
    for (bool ended = false; n < held.len && !ended; n++) {
        if (parser->escaped) {
            parser->escaped = false;
        } else if (parser->in_string) {
            parser->escaped = data[n] == '\\';
            parser->in_string = data[n] != '"';
        } else if (data[n] == '"') {
            parser->in_string = true;
        } else if (data[n] == '{') {
            parser->depth++;
        } else if (data[n] == '}') {
            ended = --parser->depth == 0;
            parser->step += ended;
        }
    }
    if (n > 0)
        sink->arguments(sink->arg, (struct bytes){data, n});
    answer_take_held(parser, n);
    return n > 0;
}

static bool in_members(struct answer_parser *parser, const struct answer_sink *sink)
{
    announce(parser, sink, (const char *)parser->name.data);
    switch (call_members_step(parser, sink)) {
    case MATCH_MORE:
        return false;
    case MATCH_WHOLE:
        parser->step++;
        return true;
    default:
        return no_call(parser, sink);
    }
}

/* A name, an id or a number. */
static bool in_word(struct answer_parser *parser, const struct answer_sink *sink, int kind)
{
    const struct bytes held = answer_held(parser);
    const uint8_t *data = held.data;
    size_t begin = match_blanks(held, 0, ""), n = 0;
    while (begin + n < held.len && n <= MOST_NAME && match_is_name(data[begin + n]))
        n++;
    if (begin + n == held.len && n <= MOST_NAME && begin <= ANSWER_MOST_BLANKS)
        return false;
    if (begin > ANSWER_MOST_BLANKS || n > MOST_NAME || (n == 0 && kind == STEP_NAME))
        return no_call(parser, sink);
    if (kind == STEP_NAME && parser->name.len == 0) {
        if (buffer_append(&parser->name, data + begin, n) < 0 || buffer_append(&parser->name, "", 1) < 0)
            parser->failed = true;
        else if (!parser->marked && !answer_call_is_tool(parser, (const char *)parser->name.data))
            return no_call(parser, sink);
    }
    answer_take_held(parser, begin + n);
    parser->step++;
    return true;
}

bool answer_call_step(struct answer_parser *parser, const struct answer_sink *sink)
{
    size_t end;
    if (parser->failed)
        return false;
    if (parser->step == parser->n_steps) {
        end_call(parser, sink);
        return true;
    }
    const struct call_step *step = &parser->steps[parser->step];
    switch (step->kind) {
    case STEP_OBJECT:
        return in_object(parser, sink);
    case STEP_ARGUMENTS:
        return parser->dialect->calls.arguments == DIALECT_JSON ? in_json(parser, sink)
                                                                : in_members(parser, sink);
    case STEP_TEXT:
        break;
    default:
        return in_word(parser, sink, step->kind);
    }
    switch (match_loose(answer_held(parser), 0, step->text, &end)) {
    case MATCH_MORE:
        return false;
    case MATCH_NONE:
        return no_call(parser, sink);
    default:
        answer_take_held(parser, end);
        parser->step++;
        return true;
    }
}

bool answer_call_after(struct answer_parser *parser, const struct answer_sink *sink)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    const struct bytes held = answer_held(parser);
    const size_t blanks = match_blanks(held, 0, ",;");
    size_t end = 0;
    int next = MATCH_NONE, between = MATCH_NONE, close = MATCH_NONE;
    if (blanks == held.len && blanks <= ANSWER_MOST_BLANKS)
        return false;
    if (blanks <= ANSWER_MOST_BLANKS && calls->close[0] && !says_nothing(calls->close))
        close = match_loose(held, blanks, bytes_of_string(calls->close), &end);
    if (close != MATCH_WHOLE && blanks <= ANSWER_MOST_BLANKS && calls->between &&
        !says_nothing(calls->between))
        between = match_loose(held, blanks, bytes_of_string(calls->between), &end);
    if (close != MATCH_WHOLE && between != MATCH_WHOLE && blanks <= ANSWER_MOST_BLANKS) {
        const struct call_step *head = &parser->steps[parser->head];
        size_t unused;
        if (head->kind == STEP_TEXT)
            next = match_loose(held, blanks, head->text, &unused);
        else if (head->kind == STEP_OBJECT && held.data && ((const uint8_t *)held.data)[blanks] == '{')
            next = MATCH_WHOLE;
        else if (head->kind == STEP_NAME && held.data && match_is_name(((const uint8_t *)held.data)[blanks]))
            next = MATCH_WHOLE;
    }
    if (close == MATCH_WHOLE) {
        buffer_consume(&parser->held, end);
        parser->place = HEAD;
        parser->at_head = parser->trims = true;
    } else if (between == MATCH_WHOLE || next == MATCH_WHOLE) {
        answer_call_begin(parser, parser->head);
        answer_take_held(parser, between == MATCH_WHOLE ? end : blanks);
    } else if (close == MATCH_MORE || between == MATCH_MORE || next == MATCH_MORE) {
        return false;
    } else {
        parser->place = HEAD;
        parser->at_head = true;
    }
    return true;
}
