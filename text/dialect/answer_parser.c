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

#define MOST_NAME  256
#define MOST_AGAIN (64u << 10) /* bytes that are looked through again when they were no call */

enum { HEAD, TEXT, THOUGHT, CALL, AFTER };
enum { STEP_TEXT, STEP_NAME, STEP_ID, STEP_INDEX, STEP_OBJECT, STEP_ARGUMENTS };

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r';
}

static bool is_name(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '_' || byte == '-' || byte == '.';
}

/* ---- how calls are written, step by step ---- */

static void add_step(struct answer_parser *parser, int kind, const char *text, size_t len)
{
    size_t blank = 0;
    while (blank < len && is_blank((uint8_t)text[blank]))
        blank++;
    if (kind == STEP_TEXT && blank == len)
        return;
    if (parser->n_steps < ANSWER_MOST_STEPS)
        parser->steps[parser->n_steps++] = (struct call_step){kind, {text, len}};
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

static struct bytes trimmed(const char *text)
{
    size_t len = strlen(text);
    for (; is_blank((uint8_t)*text); text++)
        len--;
    while (len > 0 && is_blank((uint8_t)text[len - 1]))
        len--;
    return (struct bytes){text, len};
}

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
    if (!parser->calls)
        return 0;
    add_call(parser);
    find_mark(parser);
    parser->header_end = find_header_end(parser);
    const struct bytes between = trimmed(dialect->calls.between ? dialect->calls.between : "");
    if (!parser->marked && between.len >= 3) { /* where text stands before a call, it parts them too */
        parser->mark = between.data;
        parser->mark_len = between.len;
        parser->marked_between = true;
    }
    return 0;
}

void answer_parser_deinit(struct answer_parser *parser)
{
    buffer_deinit(&parser->texts);
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

/* ---- what is held ---- */

static struct bytes held_bytes(const struct answer_parser *parser)
{
    return (struct bytes){parser->held.data, parser->held.len};
}

static void tell(struct answer_parser *parser, const struct answer_sink *sink, const void *data, size_t len)
{
    if (len == 0)
        return;
    parser->at_head = parser->trims = false;
    sink->text(sink->arg, (struct bytes){data, len});
}

static size_t blanks_of(struct bytes held, size_t at, const char *also)
{
    const uint8_t *data = held.data;
    size_t n = 0;
    while (at + n < held.len && n <= ANSWER_MOST_BLANKS &&
           (is_blank(data[at + n]) || (data[at + n] && strchr(also, data[at + n]))))
        n++;
    return n;
}

static int match_text(struct bytes held, size_t at, const char *pattern, size_t *ret_end)
{
    return match_loose(held, at, bytes_of_string(pattern), ret_end);
}

static bool says_nothing(const char *text)
{
    while (is_blank((uint8_t)*text) || *text == ',')
        text++;
    return !*text;
}

/* ---- a call ---- */

static void begin_call(struct answer_parser *parser, size_t step)
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
    if (raw.len == 0 && parser->marked) { /* nothing was taken: the mark is text */
        const size_t word = blanks_of(held_bytes(parser), 0, "") + parser->mark_len;
        const size_t upto = word < parser->held.len ? word : parser->held.len;
        tell(parser, sink, parser->held.data, upto);
        buffer_consume(&parser->held, upto);
    }
    tell(parser, sink, raw.data, n);
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

static bool is_tool(const struct answer_parser *parser, const char *name)
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

/* Each of these: whether something was taken or the place has changed, so that it is worth to go on. */

static bool in_object(struct answer_parser *parser, const struct answer_sink *sink)
{
    struct call_object *object = &parser->object;
    const size_t blanks = blanks_of(held_bytes(parser), 0, "");
    if (object->place == 0) { /* before its brace */
        if (blanks == parser->held.len && blanks <= ANSWER_MOST_BLANKS)
            return false;
        if (blanks > ANSWER_MOST_BLANKS || parser->held.data[blanks] != '{')
            return no_call(parser, sink);
        answer_parser_take(parser, blanks);
    }
    if (parser->held.len == 0)
        return false;
    answer_parser_take(parser, call_object_push(object, parser->held.data, parser->held.len));
    const bool whole = object->state == CALL_OBJECT_WHOLE;
    /* Without marks only the name says whether it is a call. */
    if (object->has_name && !parser->begun && !parser->marked &&
        !is_tool(parser, (const char *)object->name.data))
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
    struct bytes held = held_bytes(parser);
    if (parser->depth == 0) {
        const size_t blanks = blanks_of(held, 0, "");
        if (blanks == held.len && blanks <= ANSWER_MOST_BLANKS)
            return false;
        if (blanks > ANSWER_MOST_BLANKS || parser->held.data[blanks] != '{')
            return no_call(parser, sink);
        answer_parser_take(parser, blanks);
        announce(parser, sink, (const char *)parser->name.data);
        held = held_bytes(parser);
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
    answer_parser_take(parser, n);
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
    const struct bytes held = held_bytes(parser);
    const uint8_t *data = held.data;
    size_t begin = blanks_of(held, 0, ""), n = 0;
    while (begin + n < held.len && n <= MOST_NAME && is_name(data[begin + n]))
        n++;
    if (begin + n == held.len && n <= MOST_NAME && begin <= ANSWER_MOST_BLANKS)
        return false;
    if (begin > ANSWER_MOST_BLANKS || n > MOST_NAME || (n == 0 && kind == STEP_NAME))
        return no_call(parser, sink);
    if (kind == STEP_NAME && parser->name.len == 0) {
        if (buffer_append(&parser->name, data + begin, n) < 0 || buffer_append(&parser->name, "", 1) < 0)
            parser->failed = true;
        else if (!parser->marked && !is_tool(parser, (const char *)parser->name.data))
            return no_call(parser, sink);
    }
    answer_parser_take(parser, begin + n);
    parser->step++;
    return true;
}

static bool in_call(struct answer_parser *parser, const struct answer_sink *sink)
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
    switch (match_loose(held_bytes(parser), 0, step->text, &end)) {
    case MATCH_MORE:
        return false;
    case MATCH_NONE:
        return no_call(parser, sink);
    default:
        answer_parser_take(parser, end);
        parser->step++;
        return true;
    }
}

/* Behind a call: another one, the end of them all, or text. */
static bool in_after(struct answer_parser *parser, const struct answer_sink *sink)
{
    const struct dialect_calls *calls = &parser->dialect->calls;
    const struct bytes held = held_bytes(parser);
    const size_t blanks = blanks_of(held, 0, ",;");
    size_t end = 0;
    int next = MATCH_NONE, between = MATCH_NONE, close = MATCH_NONE;
    if (blanks == held.len && blanks <= ANSWER_MOST_BLANKS)
        return false;
    if (blanks <= ANSWER_MOST_BLANKS && calls->close[0] && !says_nothing(calls->close))
        close = match_text(held, blanks, calls->close, &end);
    if (close != MATCH_WHOLE && blanks <= ANSWER_MOST_BLANKS && calls->between &&
        !says_nothing(calls->between))
        between = match_text(held, blanks, calls->between, &end);
    if (close != MATCH_WHOLE && between != MATCH_WHOLE && blanks <= ANSWER_MOST_BLANKS) {
        const struct call_step *head = &parser->steps[parser->head];
        size_t unused;
        if (head->kind == STEP_TEXT)
            next = match_loose(held, blanks, head->text, &unused);
        else if (head->kind == STEP_OBJECT && held.data && ((const uint8_t *)held.data)[blanks] == '{')
            next = MATCH_WHOLE;
        else if (head->kind == STEP_NAME && held.data && is_name(((const uint8_t *)held.data)[blanks]))
            next = MATCH_WHOLE;
    }
    if (close == MATCH_WHOLE) {
        buffer_consume(&parser->held, end);
        parser->place = HEAD;
        parser->at_head = parser->trims = true;
    } else if (between == MATCH_WHOLE || next == MATCH_WHOLE) {
        begin_call(parser, parser->head);
        answer_parser_take(parser, between == MATCH_WHOLE ? end : blanks);
    } else if (close == MATCH_MORE || between == MATCH_MORE || next == MATCH_MORE) {
        return false;
    } else {
        parser->place = HEAD;
        parser->at_head = true;
    }
    return true;
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
    struct bytes held = held_bytes(parser);
    size_t end;
    if (parser->at_head) {
        const size_t blanks = blanks_of(held, 0, "");
        if (blanks > 0) {
            buffer_consume(&parser->held, blanks);
            return true;
        }
        if (held.len == 0)
            return false;
        switch (match_text(held, 0, open, &end)) { /* once more: the prompt has opened it already */
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
    const struct bytes held = held_bytes(parser);
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
    while (name > 0 && name + n < upto && is_name((uint8_t)data[name + n]))
        n++;
    begin_call(parser, parser->arguments);
    if (n > 0 &&
        (buffer_append(&parser->name, data + name, n) < 0 || buffer_append(&parser->name, "", 1) < 0))
        parser->failed = true;
    buffer_consume(&parser->held, upto);
    if (n == 0 || !is_tool(parser, (const char *)parser->name.data)) {
        parser->place = TEXT;
        parser->trims = true;
    }
    return true;
}

/* Where text may begin: marks that count only there. */
static bool in_head(struct answer_parser *parser, const struct answer_sink *sink)
{
    const struct model_dialect *dialect = parser->dialect;
    const struct bytes held = held_bytes(parser);
    const size_t blanks = blanks_of(held, 0, "");
    size_t end = 0, call = 0;
    if (held.len == 0)
        return false;
    int thought = parser->thoughts && dialect->thoughts.open[0]
                      ? match_text(held, 0, dialect->thoughts.open, &end)
                      : MATCH_NONE;
    if (blanks <= ANSWER_MOST_BLANKS && thought == MATCH_WHOLE) {
        buffer_consume(&parser->held, end);
        parser->place = THOUGHT;
        parser->at_head = true;
        return true;
    }
    int content = dialect->content_open[0] && parser->parts ? match_text(held, 0, dialect->content_open, &end)
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
        begin_call(parser, 0);
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
    const struct bytes held = held_bytes(parser);
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
        buffer_consume(held, blanks_of(held_bytes(parser), 0, ""));
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
    tell(parser, sink, held->data, n);
    buffer_consume(held, n);
    if (!found)
        return false;
    if (call) {
        begin_call(parser, parser->marked_between ? parser->head : 0);
        if (parser->marked_between)
            answer_parser_take(parser, upto - n + parser->mark_len);
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
        return in_call(parser, sink);
    default:
        return in_after(parser, sink);
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
        tell(parser, sink, parser->raw.data, parser->raw.len);
    if (!(nothing && is_all_blank(&parser->held)))
        tell(parser, sink, parser->held.data, parser->held.len);
    parser->held.len = parser->raw.len = 0;
    return parser->failed ? -ENOMEM : 0;
}
