/* SPDX-License-Identifier: MIT */
/* How calls are written: two of them are rendered, and cut at names and arguments.
 *
 *     first            name  middle  arguments   between             name   middle  arguments   last
 *     <tool_calls>[{"name": "a", "arguments": {…}}, {"name": "b", "arguments": {…}}]</tool_calls>…
 *
 * What `first` and `between` end with alike is the head of a call; what `between` and `last` begin with alike
 * is its tail. A template that has no second call gives one call an answer. */

#include <errno.h>
#include <string.h>

#include "text/dialect/derive/internal.h"

/* One call in a text. */
struct cut {
    struct span before, middle, arguments, behind;
};

static void unknown(struct derivation *derivation, const char *reason)
{
    if (!derivation->dialect->calls.reason[0])
        derivation->dialect->calls.reason = derivation_keep(derivation, span_of(reason));
}

static json_t *two_texts(void)
{
    return json_pack("{s:s, s:s}", PROBE_ONE, "qvone", PROBE_TWO, "qvtwo");
}

static json_t *message_of(const struct probe *probe, const char *content, bool second)
{
    json_t *message = probe_assistant(content);
    probe_add_call(probe, message, PROBE_FIRST, PROBE_ID_1, two_texts());
    if (second)
        probe_add_call(probe, message, PROBE_SECOND, PROBE_ID_2, two_texts());
    return message;
}

/* Where the JSON object of the arguments stands: its bounds. False: nowhere. */
static bool find_object(struct span text, size_t *ret_begin, size_t *ret_end)
{
    json_t *wanted = two_texts();
    bool found = false;
    for (size_t at = 0; at < text.len && !found; at++) {
        json_error_t error;
        json_t *object = text.at[at] == '{'
                             ? json_loadb(text.at + at, text.len - at, JSON_DISABLE_EOF_CHECK, &error)
                             : NULL;
        found = object && json_equal(object, wanted);
        if (found) {
            *ret_begin = at;
            *ret_end = at + (size_t)error.position;
        }
        json_decref(object);
    }
    json_decref(wanted);
    return found;
}

/* Cuts the text at a name and the arguments behind it. */
static bool cut_at(struct derivation *derivation, struct span text, const char *name, struct cut *ret)
{
    const size_t at = span_find(text, span_of(name));
    size_t begin, end;
    if (at == text.len)
        return false;
    const struct span behind = span_from(text, at + strlen(name));
    if (derivation->dialect->calls.arguments == DIALECT_JSON) {
        if (!find_object(behind, &begin, &end))
            return false;
    } else {
        begin = span_find(behind, span_of(PROBE_ONE));
        const size_t last = span_find(behind, span_of("qvtwo"));
        if (begin == behind.len || last == behind.len || last < begin)
            return false;
        end = last + strlen("qvtwo");
    }
    *ret = (struct cut){span_to(text, at), span_to(behind, begin),
                        span_to(span_from(behind, begin), end - begin), span_from(behind, end)};
    return true;
}

/* Names and ids become their placeholders. `counts_to` is the same text of the next call, in which a number
 * may count; empty: there is none. */
static const char *pattern(struct derivation *derivation, struct span text, struct span counts_to)
{
    static const struct {
        const char *word, mark;
    } words[] = {{PROBE_FIRST, DIALECT_NAME},
                 {PROBE_SECOND, DIALECT_NAME},
                 {PROBE_ID_1, DIALECT_ID},
                 {PROBE_ID_2, DIALECT_ID}};
    struct buffer made = {0};
    const bool counted = counts_to.len == text.len;
    for (size_t at = 0; at < text.len;) {
        size_t n = 1;
        char byte = text.at[at];
        for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
            const size_t len = strlen(words[i].word);
            if (text.len - at >= len && memcmp(text.at + at, words[i].word, len) == 0) {
                byte = words[i].mark;
                n = len;
            }
        }
        if (n == 1 && counted && byte != counts_to.at[at])
            byte = DIALECT_INDEX;
        if (buffer_append(&made, &byte, 1) < 0)
            derivation->fatal = -ENOMEM;
        at += n;
    }
    const char *kept = derivation_keep(derivation, (struct span){(const char *)made.data, made.len});
    buffer_deinit(&made);
    return kept;
}

/* The same length for the sake of comparing: names are as long as one another where ids are. */
static struct span normal(struct derivation *derivation, struct span text)
{
    return span_of(pattern(derivation, text, (struct span){NULL, 0}));
}

/* Leaves out what a model never writes: tokens at which it stops, and what follows them. */
static struct span until_stop(const struct derivation *derivation, struct span text)
{
    for (size_t i = 0; i < derivation->stops.n; i++) {
        const struct bytes stop = derivation->stops.texts[i];
        if (stop.len > 0)
            text = span_to(text, span_find(text, (struct span){stop.data, stop.len}));
    }
    return text;
}

/* What ends the last call, without the end of the turn, and what comes in the next one. */
static struct span closing(const struct derivation *derivation, struct span behind)
{
    const struct span turn = span_trim(derivation->end_of_turn);
    behind = span_to(behind, behind.len - spans_common_suffix(behind, derivation->end_of_turn, false));
    return until_stop(derivation, span_to(behind, span_find(behind, turn)));
}

/* The bytes of a pattern where the key stands in it that the probes have. */
static size_t written(const char *pattern)
{
    size_t n = 0;
    for (; *pattern; pattern++)
        n += *pattern == DIALECT_KEY ? strlen(PROBE_TWO) : 1;
    return n;
}

static const char *derivation_keep_after(struct derivation *derivation, const char *before, struct span text)
{
    struct buffer both = {0};
    if (buffer_append(&both, before, strlen(before)) < 0 || buffer_append(&both, text.at, text.len) < 0)
        derivation->fatal = -ENOMEM;
    const char *kept = derivation_keep(derivation, (struct span){(const char *)both.data, both.len});
    buffer_deinit(&both);
    return kept;
}

/* What a prompt with tools adds behind the question. */
static struct span prompt_of(struct derivation *derivation)
{
    return derivation_render(derivation, probe_conversation(probe_user(), NULL, NULL),
                             (struct probe_manner){.tools = !derivation->without_tools, .prompt = true});
}

/* Where the first call's text begins: behind the prompt, and behind the answer's text where there is some. */
static struct span opening(struct derivation *derivation, struct span before, bool with_result)
{
    const struct span prompt = prompt_of(derivation);
    const size_t shared = spans_common_prefix(prompt, before, false);
    struct span open = span_from(before, shared);
    const bool spaced = shared == prompt.len && open.len > 1 && open.at[0] == ' ' && open.at[1] != '\n';
    const struct span text =
        derive_render_answer(derivation, message_of(&derivation->probe, PROBE_SAYS, false), with_result);
    const size_t says = span_find(text, span_of(PROBE_SAYS)), name = span_find(text, span_of(PROBE_FIRST));
    if (says < name && name < text.len) {
        const size_t at = says + strlen(PROBE_SAYS);
        const struct span other = normal(derivation, span_to(span_from(text, at), name - at));
        const size_t same = spans_common_suffix(normal(derivation, open), other, false);
        if (same > 0)
            open = span_of(derivation_keep(derivation, span_from(other, other.len - same)));
    }
    open = derive_without_thought(derivation, open);
    const struct span close = span_of(derivation->dialect->content_close);
    if (close.len > 0 && open.len > close.len && memcmp(open.at, close.at, close.len) == 0)
        open = span_from(open, close.len);
    open = span_trim_left(open);
    /* A space parts it from a prompt that ends with a word. */
    return spaced ? span_of(derivation_keep_after(derivation, " ", open)) : open;
}

/* One call an answer: all of it is head and tail. */
static bool one_call(struct derivation *derivation, struct span open, const struct cut *call)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    calls->head = pattern(derivation, open, (struct span){NULL, 0});
    calls->middle = pattern(derivation, call->middle, (struct span){NULL, 0});
    calls->tail = pattern(derivation, closing(derivation, call->behind), (struct span){NULL, 0});
    return true;
}

/* From the text of two calls. False: there is no second one. */
static bool two_calls(struct derivation *derivation, struct span open, struct span text, size_t skip)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    struct cut first, second;
    if (!cut_at(derivation, text, PROBE_FIRST, &first) ||
        !cut_at(derivation, span_from(first.behind, skip), PROBE_SECOND, &second))
        return false;
    const struct span middle = normal(derivation, first.middle), next = normal(derivation, second.middle);
    const struct span begin = normal(derivation, open), between = normal(derivation, second.before),
                      behind = normal(derivation, span_from(second.behind, skip));
    if (!spans_equal_counted(middle, next)) {
        unknown(derivation, "the text between a tool's name and its arguments differs from call to call");
        return true;
    }
    const size_t head = spans_common_suffix(begin, between, true);
    size_t tail = spans_common_prefix(between, behind, true);
    if (tail > between.len - head)
        tail = between.len - head;
    calls->head =
        pattern(derivation, span_from(begin, begin.len - head), span_from(between, between.len - head));
    calls->open = derivation_keep(derivation, span_to(begin, begin.len - head));
    calls->middle = pattern(derivation, middle, next);
    calls->tail = pattern(derivation, span_to(between, tail), span_to(behind, tail));
    calls->between = derivation_keep(derivation, span_from(span_to(between, between.len - head), tail));
    const struct span end = closing(derivation, behind);
    calls->close = derivation_keep(derivation, span_trim_right(span_from(end, tail)));
    if (end.len < tail)
        calls->tail = derivation_keep(derivation, end);
    return true;
}

/* The name of the member whose value begins where the text ends: …"name": " or …"arguments": . */
static const char *last_key(struct derivation *derivation, struct span text, bool quoted)
{
    if (quoted) {
        if (text.len == 0 || text.at[text.len - 1] != '"')
            return NULL;
        text = span_to(text, text.len - 1);
    }
    text = span_trim_right(text);
    if (text.len < 4 || text.at[text.len - 1] != ':')
        return NULL;
    text = span_trim_right(span_to(text, text.len - 1));
    if (text.len < 3 || text.at[text.len - 1] != '"')
        return NULL;
    text = span_to(text, text.len - 1);
    const size_t quote = span_find_last(text, span_of("\""));
    return quote < text.len ? derivation_keep(derivation, span_from(text, quote + 1)) : NULL;
}

static void find_keys(struct derivation *derivation)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    const char *name = last_key(derivation, span_of(calls->head), true);
    const char *arguments =
        calls->middle[0] == '"' ? last_key(derivation, span_of(calls->middle), false) : NULL;
    if (name && arguments && strchr(calls->head, '{') && calls->arguments == DIALECT_JSON) {
        calls->name_key = name;
        calls->arguments_key = arguments;
    }
}

/* The text of a call in any of the manners in which templates write one. */
static struct span find_call(struct derivation *derivation, bool *ret_with_result, bool *ret_renders)
{
    for (int manner = 0; manner < 8; manner++) {
        derivation->probe.text_arguments = manner & 2;
        derivation->probe.null_content = manner & 4;
        *ret_with_result = manner & 1;
        const struct span text = derive_render_call(derivation, two_texts(), manner & 1);
        *ret_renders |= text.at != NULL;
        if (text.at && span_find(text, span_of(PROBE_FIRST)) < text.len &&
            span_find(text, span_of("qvone")) < text.len)
            return text;
    }
    return (struct span){NULL, 0};
}

/* Whether the template tells the model which tools there are. */
static bool shows_tools(struct derivation *derivation)
{
    const struct span behind = derivation_render(derivation, probe_conversation(probe_user(), NULL, NULL),
                                                 (struct probe_manner){.tools = true, .prompt = true});
    return behind.at && strstr(derivation->texts[derivation->n_texts - 1], PROBE_FIRST);
}

static void from_call(struct derivation *derivation, struct span text, bool with_result)
{
    struct dialect_calls *calls = &derivation->dialect->calls;
    struct cut call;
    size_t skip = 0;
    calls->arguments = DIALECT_JSON;
    if (!cut_at(derivation, text, PROBE_FIRST, &call)) {
        calls->arguments = DIALECT_MEMBERS;
        if (!cut_at(derivation, text, PROBE_FIRST, &call) || !derive_members(derivation, text, with_result)) {
            unknown(derivation, "the form in which the template writes arguments cannot be recognized");
            return;
        }
        skip = written(calls->behind_text);
        call.behind = span_from(call.behind, skip);
        /* What stands before the first parameter is not the name's. */
        const size_t key = strlen(calls->before_key);
        if (key <= call.middle.len)
            call.middle = span_to(call.middle, call.middle.len - key);
    }
    const size_t shared = spans_common_prefix(prompt_of(derivation), call.before, false);
    const struct span open = opening(derivation, call.before, with_result);
    const struct span both =
        derive_render_answer(derivation, message_of(&derivation->probe, "", true), with_result);
    const bool two = both.at && two_calls(derivation, open, both, skip);
    if (!two)
        one_call(derivation, open, &call);
    const size_t key = strlen(calls->before_key), middle = strlen(calls->middle);
    if (calls->between && calls->arguments == DIALECT_MEMBERS && key <= middle)
        calls->middle = derivation_keep(derivation, span_to(span_of(calls->middle), middle - key));
    find_keys(derivation);
    calls->text_arguments = derivation->probe.text_arguments;
    calls->known = !calls->reason[0];
    struct error err;
    if (calls->known && dialect_check(derivation->dialect, &err) != 0) {
        calls->known = false;
        unknown(derivation, derivation_keep(derivation, (struct span){err.text, strlen(err.text)}));
    }
    if (calls->known && !derive_reads_back(derivation, span_from(two ? both : text, shared), two ? 2 : 1)) {
        calls->known = false;
        unknown(derivation, "the calls that the template writes cannot be read back from its text");
    }
}

void derive_calls(struct derivation *derivation)
{
    bool with_result = false, renders = false;
    if (!derivation->prompt.at) {
        unknown(derivation, derivation->probe.last.text);
        return;
    }
    const bool told = shows_tools(derivation);
    derivation->probe.last.text[0] = 0;
    derivation->without_tools = !told;
    const struct span text = find_call(derivation, &with_result, &renders);
    derivation->dialect->calls.untold = !told;
    if (text.at)
        from_call(derivation, text, with_result);
    else if (told && !renders)
        unknown(derivation, derivation->probe.last.text);
    else
        unknown(derivation,
                told ? "the template does not render earlier calls" : "the template does not support tools");
    derivation->probe.text_arguments = derivation->probe.null_content = false;
}
