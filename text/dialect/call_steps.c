/* SPDX-License-Identifier: MIT */
/* How calls are written in a dialect, as steps:
 *
 *     <tool_call><function=  rain   >          …           </function></tool_call>
 *     │text                 │name  │text      │arguments   │text
 *
 * A text step matches whatever white space is between its marks; one of blanks alone is left out. A call that
 * is one JSON object is a single step, with what stands before its brace, and behind it. The first word of
 * the first step is the mark by which a call is found inside text; where there is none, calls are found only
 * where an answer, or a part of it, begins. */

#include <errno.h>
#include <string.h>

#include "text/dialect/answer_inside.h"
#include "text/dialect/blank.h"

static void add_step(struct answer_parser *parser, int kind, const char *text, size_t len)
{
    size_t blank = 0;
    while (blank < len && is_blank((uint8_t)text[blank]))
        blank++;
    if (kind == STEP_TEXT && blank == len)
        return;
    if (parser->n_steps < ANSWER_MOST_STEPS)
        parser->steps[parser->n_steps] = (struct call_step){kind, {text, len}};
    parser->n_steps++;
}

static void add_pattern(struct answer_parser *parser, const char *pattern)
{
    const char *begin = pattern, *at = pattern;
    for (;; at++) {
        const int kind = *at == DIALECT_NAME    ? STEP_NAME
                         : *at == DIALECT_ID    ? STEP_ID
                         : *at == DIALECT_INDEX ? STEP_INDEX
                                                : STEP_TEXT;
        if (*at && kind == STEP_TEXT)
            continue;
        add_step(parser, STEP_TEXT, begin, (size_t)(at - begin));
        if (!*at)
            return;
        add_step(parser, kind, at, 1);
        begin = at + 1;
    }
}

/* A call that is an object is read by its members: what stands before its brace, and behind it. */
static void add_object(struct answer_parser *parser)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    const char *brace = strchr(calls->head, '{'), *end = strchr(calls->tail, '}');
    add_step(parser, STEP_TEXT, calls->head, (size_t)(brace - calls->head));
    parser->arguments = parser->n_steps;
    add_step(parser, STEP_OBJECT, "", 0);
    if (end)
        add_pattern(parser, end + 1);
}

static void add_call(struct answer_parser *parser)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    add_pattern(parser, calls->open);
    parser->head = parser->n_steps;
    if (calls->name_key) {
        add_object(parser);
        return;
    }
    add_pattern(parser, calls->head);
    add_step(parser, STEP_NAME, "", 0);
    add_pattern(parser, calls->middle);
    parser->arguments = parser->n_steps;
    add_step(parser, STEP_ARGUMENTS, "", 0);
    add_pattern(parser, calls->tail);
}

/* The first word of the first call; and whether what stands before the name is enough to know a call by. */
static void find_mark(struct answer_parser *parser)
{
    const struct call_step *first = &parser->steps[0];
    size_t begin = 0, len = 0;
    parser->mark = "";
    if (parser->n_steps == 0 || first->kind != STEP_TEXT)
        return;
    const char *text = first->text.data;
    while (begin < first->text.len && is_blank((uint8_t)text[begin]))
        begin++;
    while (begin + len < first->text.len && !is_blank((uint8_t)text[begin + len]))
        len++;
    if (len > 1 && text[begin + len - 1] == '[')
        len--; /* of the list, which may stand apart */
    parser->mark = text + begin;
    parser->mark_len = len;
    parser->marked = first->text.len - begin >= 6 || text[begin] == '<' || text[begin] == '[';
}

/* Where a part of an answer has a header in front, "<|channel|>commentary json<|message|>", its last mark. A
 * model may put the name anywhere in it. */
static struct bytes find_header_end(const struct answer_parser *parser)
{
    const char *middle = parser->dialect->calls.middle, *close = middle + strlen(middle);
    const char *begin = close;
    while (begin > middle && *begin != '<')
        begin--;
    const char first = parser->mark[0];
    const bool has = first != '<' && first != '[' && !parser->dialect->calls.name_key && middle[0] == '<' &&
                     begin > middle && close[-1] == '>';
    return has ? (struct bytes){begin, (size_t)(close - begin)} : (struct bytes){NULL, 0};
}

int call_steps_set(struct answer_parser *parser)
{
    const char *parts = parser->dialect->calls.between;
    add_call(parser);
    if (parser->n_steps > ANSWER_MOST_STEPS)
        return -EINVAL;
    find_mark(parser);
    parser->header_end = find_header_end(parser);
    const struct bytes between = without_blanks(parts ? parts : "");
    if (!parser->marked && between.len >= 3) { /* where text stands before a call, it parts them too */
        parser->mark = between.data;
        parser->mark_len = between.len;
        parser->marked_between = true;
    }
    return 0;
}
