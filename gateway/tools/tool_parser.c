/* SPDX-License-Identifier: MIT */
/* See tool_parser.h.
 *
 *   text ──the opening mark──▶ opened ──[ where there is a list─▶ list ──{──▶ object ──}──▶ back to the list,
 *    ▲                                                              └──]──▶ closing       or to closing
 *    └───────────────────────────the closing mark───────────────────────────────┘
 *
 * A form without marks (llama3) begins in `start`: an answer that begins with a brace may be a call, and is
 * one when its name is that of a tool. Anything else there is text to its end.
 *
 * `held` has the bytes that no state has taken. Each state takes what it can from its front; when none can,
 * more has to come. Blanks before a mark belong to the mark. */

#include "gateway/tools/tool_parser.h"

#include <errno.h>
#include <string.h>

#define MOST_BLANKS 256 /* before a mark; more are text: what is long is not read again with each token */

enum { TEXT, START, OPENED, LIST, OBJECT, CLOSING, REST };

void tool_parser_init(struct tool_parser *parser, const struct tool_form *form, const char *const *names,
                      size_t n_names)
{
    *parser = (struct tool_parser){
        .form = form, .names = names, .n_names = n_names, .place = form->at_start ? START : TEXT};
}

void tool_parser_deinit(struct tool_parser *parser)
{
    buffer_deinit(&parser->held);
    buffer_deinit(&parser->raw);
    call_object_deinit(&parser->object);
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static void tell(const struct tool_sink *sink, const void *data, size_t len)
{
    if (len > 0)
        sink->text(sink->arg, (struct bytes){data, len});
}

/* Takes bytes from the front; as a part of what may be a call, or for good. */
static void take(struct tool_parser *parser, size_t n, bool maybe_text)
{
    if (maybe_text && buffer_append(&parser->raw, parser->held.data, n) < 0)
        parser->failed = true;
    buffer_consume(&parser->held, n);
}

/* It was no call: what was taken for one is text. */
static void take_back(struct tool_parser *parser, const struct tool_sink *sink)
{
    tell(sink, parser->raw.data, parser->raw.len);
    parser->raw.len = 0;
    call_object_deinit(&parser->object);
    parser->begun = false;
    parser->place = parser->form->at_start ? REST : TEXT;
}

/* How much at the end of the text may be the beginning of the mark, with the blanks before it. */
static size_t undecided(const uint8_t *text, size_t len, const char *mark)
{
    size_t most = strlen(mark) - 1, n = len < most ? len : most;
    while (n > 0 && memcmp(text + len - n, mark, n) != 0)
        n--;
    for (size_t blanks = 0; n < len && blanks < MOST_BLANKS && is_blank(text[len - n - 1]); blanks++)
        n++;
    return n;
}

/* Each of these: whether something was taken or the place has changed, so that it is worth to go on. */

static bool in_text(struct tool_parser *parser, const struct tool_sink *sink)
{
    struct buffer *held = &parser->held;
    const char *mark = parser->form->open;
    const uint8_t *found = held->len > 0 ? memmem(held->data, held->len, mark, strlen(mark)) : NULL;
    if (!found) {
        size_t n = held->len - undecided(held->data, held->len, mark);
        tell(sink, held->data, n);
        take(parser, n, false);
        return false;
    }
    size_t before = (size_t)(found - held->data), blanks = 0;
    while (blanks < before && blanks < MOST_BLANKS && is_blank(held->data[before - blanks - 1]))
        blanks++;
    tell(sink, held->data, before - blanks);
    take(parser, before - blanks, false);
    take(parser, blanks + strlen(mark), true);
    parser->place = OPENED;
    return true;
}

/* Whether the mark stands at the front: 1, or 0, or −1 when too little has come to say so. */
static int begins_with(const struct buffer *held, size_t at, const char *mark)
{
    size_t left = held->len - at, n = strlen(mark);
    if (memcmp(held->data + at, mark, left < n ? left : n) != 0)
        return 0;
    return left < n ? -1 : 1;
}

/* Those at the front, and one beyond the most is enough to know. */
static size_t blanks_of(const struct buffer *held, const char *also)
{
    size_t n = 0;
    while (n < held->len && n <= MOST_BLANKS &&
           (is_blank(held->data[n]) || (held->data[n] && strchr(also, held->data[n]))))
        n++;
    return n;
}

/* Where an answer of a form without marks begins, and after each of its calls. */
static bool in_start(struct tool_parser *parser, const struct tool_sink *sink)
{
    struct buffer *held = &parser->held;
    size_t n = blanks_of(held, parser->any ? ";," : "");
    if (n == held->len && n <= MOST_BLANKS)
        return false;
    int mark = n > MOST_BLANKS ? 0 : begins_with(held, n, parser->form->open);
    if (mark < 0)
        return false;
    if (n > MOST_BLANKS || (mark == 0 && held->data[n] != '{')) {
        parser->place = REST;
        return true;
    }
    take(parser, mark > 0 ? n + strlen(parser->form->open) : n, true);
    parser->place = OPENED;
    return true;
}

static bool in_opened(struct tool_parser *parser, const struct tool_sink *sink)
{
    size_t n = blanks_of(&parser->held, "");
    if (n == parser->held.len && n <= MOST_BLANKS)
        return false;
    if (n > MOST_BLANKS || parser->held.data[n] != (parser->form->list ? '[' : '{')) {
        take_back(parser, sink);
        return true;
    }
    take(parser, n + parser->form->list, true);
    parser->place = parser->form->list ? LIST : OBJECT;
    return true;
}

static bool in_list(struct tool_parser *parser, const struct tool_sink *sink)
{
    size_t n = blanks_of(&parser->held, ",");
    if (n == parser->held.len && n <= MOST_BLANKS)
        return false;
    bool none = parser->raw.len > 0; /* no call of this list was told */
    uint8_t next = n > MOST_BLANKS ? 0 : parser->held.data[n];
    take(parser, n + (next == ']'), none);
    if (next == '{')
        parser->place = OBJECT;
    else if (next == ']' && !none)
        parser->place = CLOSING;
    else
        take_back(parser, sink);
    return true;
}

static bool is_tool(const struct tool_parser *parser, const char *name)
{
    for (size_t i = 0; i < parser->n_names; i++)
        if (strcmp(parser->names[i], name) == 0)
            return true;
    return false;
}

/* Tells what of the object can be told. */
static void tell_call(struct tool_parser *parser, const struct tool_sink *sink)
{
    struct call_object *object = &parser->object;
    bool whole = object->state == CALL_OBJECT_WHOLE;
    if (!object->has_name || (!object->has_arguments && !whole))
        return;
    if (!parser->begun) {
        sink->call(sink->arg, (const char *)object->name.data);
        parser->begun = parser->any = true;
        parser->raw.len = 0;
    }
    if (!object->has_arguments)
        sink->arguments(sink->arg, BYTES_LITERAL("{}"));
    if (object->arguments.len > 0)
        sink->arguments(sink->arg, (struct bytes){object->arguments.data, object->arguments.len});
    object->arguments.len = 0;
}

static void end_call(struct tool_parser *parser, const struct tool_sink *sink)
{
    sink->end(sink->arg);
    parser->begun = false;
    parser->raw.len = 0;
    call_object_deinit(&parser->object);
}

static bool in_object(struct tool_parser *parser, const struct tool_sink *sink)
{
    struct call_object *object = &parser->object;
    if (parser->held.len == 0)
        return false;
    object->name_key = parser->form->name_key;
    object->arguments_key = parser->form->arguments_key;
    size_t n = call_object_push(object, parser->held.data, parser->held.len);
    take(parser, n, !parser->begun);
    /* Without marks only the name says whether it is a call. */
    bool refused = parser->form->at_start && object->has_name && !parser->begun &&
                   !is_tool(parser, (const char *)object->name.data);
    if (!refused)
        tell_call(parser, sink); /* of a bad one what came before */
    if (object->state == CALL_OBJECT_OPEN && !refused)
        return false;
    if (parser->begun) {
        bool bad = object->state == CALL_OBJECT_BAD;
        end_call(parser, sink);
        parser->place = bad ? REST : parser->form->at_start ? START : parser->form->list ? LIST : CLOSING;
    } else {
        take_back(parser, sink);
    }
    return true;
}

static bool in_closing(struct tool_parser *parser, const struct tool_sink *sink)
{
    const char *mark = parser->form->close;
    size_t n = blanks_of(&parser->held, "");
    int found = mark && n <= MOST_BLANKS ? begins_with(&parser->held, n, mark) : 0;
    if (found < 0)
        return false;
    if (found > 0)
        take(parser, n + strlen(mark), false);
    parser->place = TEXT;
    return true;
}

static bool step(struct tool_parser *parser, const struct tool_sink *sink)
{
    switch (parser->place) {
    case TEXT:
        return in_text(parser, sink);
    case START:
        return in_start(parser, sink);
    case OPENED:
        return in_opened(parser, sink);
    case LIST:
        return in_list(parser, sink);
    case OBJECT:
        return in_object(parser, sink);
    case CLOSING:
        return in_closing(parser, sink);
    default:
        tell(sink, parser->held.data, parser->held.len);
        parser->held.len = 0;
        return false;
    }
}

int tool_parser_push(struct tool_parser *parser, struct bytes text, const struct tool_sink *sink)
{
    if (buffer_append(&parser->held, text.data, text.len) < 0)
        return -ENOMEM;
    while (step(parser, sink))
        ;
    return parser->failed ? -ENOMEM : 0;
}

static bool is_all_blank(const struct buffer *buffer)
{
    size_t n = 0;
    while (n < buffer->len && is_blank(buffer->data[n]))
        n++;
    return n == buffer->len;
}

int tool_parser_finish(struct tool_parser *parser, const struct tool_sink *sink)
{
    if (parser->begun)
        end_call(parser, sink);
    else if (parser->raw.len > 0 && !(parser->any && is_all_blank(&parser->raw)))
        tell(sink, parser->raw.data, parser->raw.len);
    /* Blanks behind the last call say nothing. */
    if (!(parser->any && is_all_blank(&parser->held)))
        tell(sink, parser->held.data, parser->held.len);
    parser->held.len = parser->raw.len = 0;
    return parser->failed ? -ENOMEM : 0;
}
