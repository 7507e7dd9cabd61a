/* SPDX-License-Identifier: MIT */
/* See answer_parser.h.
 *
 *   head ──a mark that opens a thought──▶ thought ──its end──▶ head
 *    │ ╲──a call, where calls have no mark──▶ call
 *    ▼
 *   text ──the first word of a call──▶ call: step by step, name, arguments, tail ──▶ after ──▶ call, or head
 *    ▲                                   │ one that does not fit
 *    └───────────────────────────────────┘
 *
 * `held` has the bytes that no place has taken. Each place takes what it can from its front; when none can,
 * more has to come. Blanks before a mark belong to the mark. */

#include "text/dialect/answer_parser.h"

#include <errno.h>
#include <string.h>

#include "text/dialect/answer_inside.h"
#include "text/dialect/blank.h"

int answer_parser_init(struct answer_parser *parser, const struct model_dialect *dialect,
                       const struct dialect_tool *tools, size_t n_tools, bool calls, bool thoughts,
                       enum dialect_start start)
{
    const bool parts = thoughts;
    thoughts = thoughts && dialect->thoughts.known;
    *parser = (struct answer_parser){.dialect = dialect,
                                     .tools = tools,
                                     .n_tools = n_tools,
                                     .calls = calls && dialect->calls.known,
                                     .thoughts = thoughts,
                                     .parts = parts,
                                     .mark = "",
                                     .place = thoughts && start == DIALECT_START_THOUGHT ? THOUGHT : HEAD,
                                     .at_head = true};
    parser->trims = parser->place == THOUGHT;
    return parser->calls ? call_steps_set(parser) : 0;
}

void answer_parser_deinit(struct answer_parser *parser)
{
    buffer_deinit(&parser->held);
    buffer_deinit(&parser->raw);
    buffer_deinit(&parser->name);
    buffer_deinit(&parser->members.key);
    buffer_deinit(&parser->members.behind);
    buffer_deinit(&parser->members.json);
    call_object_deinit(&parser->object);
}

bool answer_parser_thinks(const struct answer_parser *parser)
{
    return parser->place == THOUGHT;
}

enum answer_place answer_parser_place(const struct answer_parser *parser)
{
    if (parser->place == THOUGHT)
        return ANSWER_THINKS;
    if (!parser->thoughts || !parser->dialect->thoughts.open[0])
        return ANSWER_PAST;
    if (parser->place == HEAD)
        return ANSWER_MAY_THINK;
    return parser->dialect->content_close[0] ? ANSWER_SPEAKS : ANSWER_PAST;
}

/* ---- text and thoughts ---- */

/* How much at the end of the text may be the beginning of the mark. */
static size_t begun_mark(struct bytes text, const char *mark, size_t mark_len)
{
    const size_t most = mark_len > 0 ? mark_len - 1 : 0;
    size_t n = text.len < most ? text.len : most;
    while (n > 0 && memcmp((const char *)text.data + text.len - n, mark, n) != 0)
        n--;
    return n;
}

static bool in_thought(struct answer_parser *parser, const struct answer_sink *sink)
{
    const char *close = parser->dialect->thoughts.close, *open = parser->dialect->thoughts.open;
    struct bytes held = answer_held(parser);
    size_t end;
    if (parser->at_head) {
        const size_t blanks = match_blanks(held, 0, "");
        if (blanks > 0) {
            buffer_consume(&parser->held, blanks);
            return true;
        }
        if (held.len == 0)
            return false;
        switch (match_loose(held, 0, bytes_of_string(open),
                            &end)) { /* once more: the prompt has opened it already */
        case MATCH_MORE:
            return false;
        case MATCH_WHOLE:
            if (open[0]) {
                buffer_consume(&parser->held, end);
                return true;
            }
            break;
        default:
            break;
        }
        parser->at_head = false;
    }
    const size_t len = strlen(close);
    const uint8_t *found = held.len > 0 ? memmem(held.data, held.len, close, len) : NULL;
    size_t n = found ? (size_t)(found - parser->held.data) : held.len - begun_mark(held, close, len);
    const size_t upto = found ? n + len : n;
    for (size_t blanks = 0; n > 0 && blanks < ANSWER_MOST_BLANKS && is_blank(parser->held.data[n - 1]);
         blanks++)
        n--; /* they belong to the mark that may come */
    if (n > 0)
        sink->thought(sink->arg, (struct bytes){held.data, n});
    buffer_consume(&parser->held, found ? upto : n);
    if (!found)
        return false;
    parser->place = HEAD;
    parser->at_head = parser->trims = true;
    return true;
}

#define MOST_HEADER 512

/* A header that is none of the template's: with a call's name in it, or text follows. */
static bool in_header(struct answer_parser *parser)
{
    const struct bytes held = answer_held(parser);
    const struct call_step *head = &parser->steps[parser->head];
    const char *data = held.data;
    const char *end = memmem(data, held.len, parser->header_end.data, parser->header_end.len);
    if (!end && held.len <= MOST_HEADER)
        return false;
    if (!end) {
        parser->place = TEXT;
        return true;
    }
    const size_t upto = (size_t)(end - data) + parser->header_end.len;
    size_t name = 0, n = 0;
    for (size_t at = 0; at < upto && name == 0; at++)
        if (head->kind == STEP_TEXT &&
            match_loose((struct bytes){data, upto}, at, head->text, &name) != MATCH_WHOLE)
            name = 0;
    while (name > 0 && name + n < upto && match_is_name((uint8_t)data[name + n]))
        n++;
    answer_call_begin(parser, parser->arguments);
    if (n > 0 &&
        (buffer_append(&parser->name, data + name, n) < 0 || buffer_append(&parser->name, "", 1) < 0)) {
        parser->failed = true;
        return false;
    }
    buffer_consume(&parser->held, upto);
    if (n == 0 || !answer_call_is_tool(parser, (const char *)parser->name.data)) {
        parser->place = TEXT;
        parser->trims = true;
    }
    return true;
}

/* Where text may begin: marks that count only there. */
static bool in_head(struct answer_parser *parser, const struct answer_sink *sink)
{
    const struct model_dialect *dialect = parser->dialect;
    const struct bytes held = answer_held(parser);
    const size_t blanks = match_blanks(held, 0, "");
    size_t end = 0, call = 0;
    if (held.len == 0)
        return false;
    int thought = parser->thoughts && dialect->thoughts.open[0]
                      ? match_loose(held, 0, bytes_of_string(dialect->thoughts.open), &end)
                      : MATCH_NONE;
    if (blanks <= ANSWER_MOST_BLANKS && thought == MATCH_WHOLE) {
        buffer_consume(&parser->held, end);
        parser->place = THOUGHT;
        parser->at_head = true;
        return true;
    }
    int content = dialect->content_open[0] && parser->parts
                      ? match_loose(held, 0, bytes_of_string(dialect->content_open), &end)
                      : MATCH_NONE;
    if (blanks <= ANSWER_MOST_BLANKS && content == MATCH_WHOLE) {
        buffer_consume(&parser->held, end);
        parser->trims = true;
        parser->place = TEXT;
        return true;
    }
    int begins = MATCH_NONE;
    if (parser->calls && !parser->marked && blanks <= ANSWER_MOST_BLANKS) {
        const struct call_step *first = &parser->steps[0];
        if (first->kind == STEP_TEXT)
            begins = match_loose(held, 0, first->text, &call);
        else if (blanks == held.len)
            begins = MATCH_MORE;
        else if (first->kind != STEP_OBJECT || parser->held.data[blanks] == '{')
            begins = MATCH_WHOLE;
    }
    if (begins == MATCH_WHOLE && thought != MATCH_MORE && content != MATCH_MORE) {
        answer_call_begin(parser, 0);
        return true;
    }
    if ((thought == MATCH_MORE || content == MATCH_MORE || begins == MATCH_MORE) &&
        blanks <= ANSWER_MOST_BLANKS)
        return false;
    if (parser->header_end.len > 0 && blanks == 0 && parser->held.data[0] == '<')
        return in_header(parser);
    parser->place = TEXT;
    return true;
}

/* The first of the marks that end text here. */
static const uint8_t *find_mark_in(const struct answer_parser *parser, bool *ret_call, size_t *ret_undecided)
{
    const struct bytes held = answer_held(parser);
    const char *close = parser->dialect->content_close;
    const bool closes = parser->parts && close[0];
    const uint8_t *found = NULL;
    *ret_undecided = 0;
    if (held.len == 0)
        return NULL;
    if (parser->calls && (parser->marked || parser->marked_between)) {
        found = memmem(held.data, held.len, parser->mark, parser->mark_len);
        *ret_undecided = begun_mark(held, parser->mark, parser->mark_len);
    }
    *ret_call = found != NULL;
    if (closes) {
        const uint8_t *other = memmem(held.data, held.len, close, strlen(close));
        const size_t begun = begun_mark(held, close, strlen(close));
        if (other && (!found || other < found)) {
            found = other;
            *ret_call = false;
        }
        if (begun > *ret_undecided)
            *ret_undecided = begun;
    }
    return found;
}

static bool in_text(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct buffer *held = &parser->held;
    bool call;
    size_t undecided;
    if (parser->trims) {
        buffer_consume(held, match_blanks(answer_held(parser), 0, ""));
        if (held->len == 0)
            return false;
    }
    const uint8_t *found = find_mark_in(parser, &call, &undecided);
    size_t n = found ? (size_t)(found - held->data) : held->len - undecided;
    const size_t upto = n;
    const bool ends = parser->calls || (parser->parts && parser->dialect->content_close[0]);
    for (size_t blanks = 0; ends && n > 0 && blanks < ANSWER_MOST_BLANKS && is_blank(held->data[n - 1]);
         blanks++)
        n--;
    answer_tell(parser, sink, held->data, n);
    buffer_consume(held, n);
    if (!found)
        return false;
    if (call) {
        answer_call_begin(parser, parser->marked_between ? parser->head : 0);
        if (parser->marked_between)
            answer_take_held(parser, upto - n + parser->mark_len);
        return true;
    }
    buffer_consume(held, upto - n + strlen(parser->dialect->content_close));
    parser->place = HEAD;
    parser->at_head = parser->trims = true;
    return true;
}

static bool step(struct answer_parser *parser, const struct answer_sink *sink)
{
    if (parser->failed)
        return false;
    switch (parser->place) {
    case HEAD:
        return in_head(parser, sink);
    case TEXT:
        return in_text(parser, sink);
    case THOUGHT:
        return in_thought(parser, sink);
    case CALL:
        return answer_call_step(parser, sink);
    default:
        return answer_call_after(parser, sink);
    }
}

int answer_parser_push(struct answer_parser *parser, struct bytes text, const struct answer_sink *sink)
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

int answer_parser_finish(struct answer_parser *parser, const struct answer_sink *sink)
{
    if (parser->begun) {
        if (parser->step == parser->arguments && !parser->dialect->calls.name_key &&
            parser->dialect->calls.arguments == DIALECT_MEMBERS)
            sink->arguments(sink->arg, parser->members.any ? BYTES_LITERAL("}") : BYTES_LITERAL("{}"));
        sink->end(sink->arg);
        parser->held.len = parser->raw.len = 0;
    } else if (parser->place == THOUGHT && !is_all_blank(&parser->held)) {
        sink->thought(sink->arg, (struct bytes){parser->held.data, parser->held.len});
        parser->held.len = 0;
    }
    /* Blanks behind the last call, or behind a thought, say nothing. */
    const bool nothing = parser->any || parser->trims || parser->place == THOUGHT;
    if (!(nothing && is_all_blank(&parser->raw)))
        answer_tell(parser, sink, parser->raw.data, parser->raw.len);
    if (!(nothing && is_all_blank(&parser->held)))
        answer_tell(parser, sink, parser->held.data, parser->held.len);
    parser->held.len = parser->raw.len = 0;
    return parser->failed ? -ENOMEM : 0;
}
