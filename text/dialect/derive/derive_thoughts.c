/* SPDX-License-Identifier: MIT */
/* Thoughts: where they begin and end, what switches them, and where a message has an earlier one. */

#include <stdio.h>
#include <string.h>

#include "text/dialect/blank.h"
#include "text/dialect/derive/internal.h"

#define N(table) (sizeof(table) / sizeof *(table))

/* ---- switches ---- */

/* Variables by which templates are told to think, or not to. They are OpenAI's, vLLM's and those of model
 * cards; a template that knows none of them has no switch. */
static const struct {
    const char *key, *word; /* word NULL: true, false; "0": a number */
    bool on;
} switches[] = {
    {"enable_thinking", NULL, true},
    {"enable_thinking", NULL, false},
    {"thinking", NULL, true},
    {"thinking", NULL, false},
    {"thinking_mode", "enabled", true},
    {"thinking_mode", "disabled", false},
    {"reasoning_effort", "high", true},
    {"reasoning_effort", "none", false},
    {"reasoning_effort", "no_think", false},
    {"thinking_budget", "0", false},
};

static json_t *variable(const char *key, const char *word, bool on)
{
    json_t *object = json_object();
    json_t *value = !word ? json_boolean(on) : strcmp(word, "0") == 0 ? json_integer(0) : json_string(word);
    json_object_set_new(object, key, value);
    return object;
}

/* The prompt's text as a whole, with these variables; NULL: the template refuses. */
static const char *prompt_with(struct derivation *derivation, const json_t *more, struct span *ret_behind)
{
    *ret_behind = derivation_render(derivation, probe_conversation(probe_user(), NULL, NULL),
                                    (struct probe_manner){.prompt = true, .more = more});
    return ret_behind->at ? derivation->texts[derivation->n_texts - 1] : NULL;
}

/* Efforts that make a difference: the words that give a text unlike that of a word which nobody knows. */
static void derive_efforts(struct derivation *derivation, const char *usual)
{
    static const char *const words[] = {"none", "minimal", "low", "medium", "high", "xhigh", "max"};
    struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    struct span behind;
    char known[64] = "";
    json_t *odd = variable("reasoning_effort", "quernodd", true);
    const char *odd_text = prompt_with(derivation, odd, &behind);
    bool echoes = odd_text && strstr(odd_text, "quernodd"), any = false;
    for (size_t i = 0; i < N(words); i++) {
        json_t *one = variable("reasoning_effort", words[i], true);
        const char *text = prompt_with(derivation, one, &behind);
        json_decref(one);
        if (!text || (!echoes && odd_text && strcmp(text, odd_text) == 0 && strcmp(text, usual) != 0))
            continue;
        if (echoes && (strcmp(words[i], "none") == 0 || i > 4))
            continue; /* it writes whatever it is told: OpenAI's words, which its model was trained with */
        any |= strcmp(text, usual) != 0;
        if (!echoes && odd_text && strcmp(text, odd_text) == 0)
            continue;
        snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s", known[0] ? " " : "", words[i]);
    }
    json_decref(odd);
    if (!any || !known[0])
        return;
    thoughts->effort_key = "reasoning_effort";
    thoughts->efforts = derivation_keep(derivation, span_of(known));
}

/* A switch counts if it makes a difference; an effort only if the prompt's end differs: else it is a degree.
 */
static void try_switch(struct derivation *derivation, size_t i, const char *usual)
{
    struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    json_t **known = switches[i].on ? &thoughts->switch_on : &thoughts->switch_off;
    struct span *prompt = switches[i].on ? &derivation->prompt_on : &derivation->prompt_off, behind;
    if (*known)
        return;
    json_t *more = variable(switches[i].key, switches[i].word, switches[i].on);
    const char *text = prompt_with(derivation, more, &behind);
    bool degree = switches[i].word && strcmp(switches[i].key, "reasoning_effort") == 0;
    if (text && strcmp(text, usual) != 0 && !(degree && span_equal(behind, derivation->prompt))) {
        *known = more;
        *prompt = behind;
        return;
    }
    json_decref(more);
}

void derive_switches(struct derivation *derivation)
{
    struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    if (!derivation->prompt.at)
        return;
    const char *usual = derivation->texts[derivation->n_texts - 1];
    for (size_t i = 0; i < N(switches); i++)
        try_switch(derivation, i, usual);
    derive_efforts(derivation, usual);
    json_t *budget = json_pack("{s:i}", "thinking_budget", 512);
    struct span behind;
    const char *text = prompt_with(derivation, budget, &behind);
    json_decref(budget);
    if (text && strcmp(text, usual) != 0)
        thoughts->budget_key = "thinking_budget";
}

/* ---- a thought in an earlier turn ---- */

/* Where a message may have its thought: in a member, or in a part of its content. */
static const char *const places[] = {
    "reasoning_content",   "thinking", "reasoning", "tool_plan", "content:thinking:thinking",
    "blocks:thoughts:text"};

static json_t *with_thought(struct derivation *derivation, const char *place, bool with_call)
{
    json_t *message = probe_assistant(with_call ? "" : PROBE_SAYS);
    if (strncmp(place, "content:", 8) == 0)
        json_object_set_new(message, "content",
                            json_pack("[{s:s, s:s}, {s:s, s:s}]", "type", "thinking", "thinking",
                                      PROBE_THINKS, "type", "text", "text", PROBE_SAYS));
    else if (strncmp(place, "blocks:", 7) == 0)
        json_object_set_new(message, "content",
                            json_pack("{s:[{s:s, s:s}, {s:s, s:s}]}", "blocks", "type", "thoughts", "text",
                                      PROBE_THINKS, "type", "response", "text", PROBE_SAYS));
    else
        json_object_set_new(message, place, json_string(PROBE_THINKS));
    if (with_call)
        probe_add_call(&derivation->probe, message, PROBE_FIRST, PROBE_ID_1,
                       json_pack("{s:s}", PROBE_ONE, PROBE_TWO));
    return message;
}

/* The first way in which the template writes a thought. Empty: it writes none. */
static struct span find_thought(struct derivation *derivation, bool with_call, const char **ret_place,
                                const json_t **ret_more)
{
    const struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    const json_t *const manners[] = {NULL, thoughts->switch_on};
    for (size_t m = 0; m < N(manners); m++)
        for (size_t i = 0; i < N(places) && (m == 0 || manners[m]); i++) {
            if (with_call && strchr(places[i], ':'))
                continue;
            const struct span text = derivation_render(
                derivation,
                probe_conversation(probe_user(), with_thought(derivation, places[i], with_call), NULL),
                (struct probe_manner){.tools = with_call, .more = manners[m]});
            const size_t at = span_find(text, span_of(PROBE_THINKS));
            /* A list that was printed as such is no thought. */
            if (at == text.len || span_find(text, span_of("'type'")) < text.len ||
                span_find(text, span_of("\"type\"")) < text.len)
                continue;
            *ret_place = places[i];
            *ret_more = manners[m];
            return text;
        }
    return (struct span){NULL, 0};
}

/* What the prompts and the text have in common: where an answer begins, thought and all. */
static size_t shared_with_prompts(const struct derivation *derivation, struct span text)
{
    size_t n = spans_common_prefix(derivation->prompt, text, false);
    const struct span others[] = {derivation->prompt_on, derivation->prompt_off};
    for (size_t i = 0; i < N(others); i++) {
        size_t other = others[i].at ? spans_common_prefix(others[i], text, false) : n;
        n = other < n ? other : n;
    }
    return n;
}

/* What opens a thought: `before` is what stands before its words, `close` what stands behind them. */
static struct span opening(const struct derivation *derivation, struct span before, struct span close)
{
    const size_t prompt = spans_common_prefix(derivation->prompt, before, false);
    struct span open = span_trim_right(span_from(before, prompt));
    if (prompt == derivation->prompt.len && !span_is_blank(open))
        return open;
    open = span_trim_right(span_from(before, shared_with_prompts(derivation, before)));
    if (!span_is_blank(open)) {
        size_t at = (size_t)(open.at - before.at);
        /* It begins behind a mark and with none: the mark belongs to it. */
        while (at > 0 && span_mark_at(before, at) == 0 && before.at[at - 1] == '>' && before.at[at] != ' ' &&
               before.at[at] != '\n')
            at = span_last_mark(span_to(before, at));
        return span_trim_right(span_from(before, at));
    }
    const struct span rest = span_trim(span_from(derivation->prompt, prompt));
    if (rest.len > 0 && span_is_blank(span_from(before, prompt)) && span_find(rest, close) == rest.len)
        return rest;
    const struct span trimmed = span_trim_right(before);
    return span_from(trimmed, span_last_mark(trimmed));
}

/* Behind so many marks. */
static size_t skip_marks(struct span text, size_t n)
{
    size_t at = 0;
    while (n > 0 && at < text.len) {
        const size_t len = span_mark_at(text, at);
        at += len > 0 ? len : 1;
        n -= len > 0;
    }
    return at;
}

/* Where `between` has more marks than open a thought, the others open the answer's text:
 * "<|open|>think<|sep|>I think.<|close|>think<|sep|><|open|>response<|sep|>So". */
static struct span without_opening(struct derivation *derivation, struct span text, struct span between)
{
    const struct span before = span_to(text, span_find(text, span_of(PROBE_THINKS)));
    const struct span open = opening(derivation, before, between);
    size_t marks = 0;
    for (size_t i = 0; i < open.len; i++)
        marks += span_mark_at(open, i) > 0;
    const size_t end = skip_marks(between, marks);
    if (marks < 2 || end == between.len || span_mark_at(between, end) == 0)
        return between;
    derivation->dialect->content_open = derivation_keep(derivation, span_trim(span_from(between, end)));
    return span_to(between, end);
}

/* The thought's end, where an answer's text follows. */
static struct span closing_before_text(struct derivation *derivation, struct span text, struct span between,
                                       const json_t *more)
{
    const struct span plain =
        derivation_render(derivation, probe_conversation(probe_user(), probe_assistant(PROBE_SAYS), NULL),
                          (struct probe_manner){.more = more});
    const size_t at = span_find(plain, span_of(PROBE_SAYS));
    const size_t same = spans_common_prefix(derivation->prompt, plain, false);
    if (plain.at && at < plain.len && same < at) {
        const struct span open = span_to(span_from(plain, same), at - same);
        if (!span_is_blank(open) && span_ends_with(between, open) &&
            !span_is_blank(span_to(between, between.len - open.len))) {
            derivation->dialect->content_open = derivation_keep(derivation, span_trim_right(open));
            return span_trim(span_to(between, between.len - open.len));
        }
    }
    return without_opening(derivation, text, span_trim(between));
}

/* And where a call follows. */
static struct span closing_before_call(struct derivation *derivation, struct span between, const json_t *more)
{
    json_t *message = probe_assistant("");
    probe_add_call(&derivation->probe, message, PROBE_FIRST, PROBE_ID_1,
                   json_pack("{s:s}", PROBE_ONE, PROBE_TWO));
    const struct span plain = derivation_render(derivation, probe_conversation(probe_user(), message, NULL),
                                                (struct probe_manner){.tools = true, .more = more});
    const struct span before = span_to(plain, span_find(plain, span_of(PROBE_FIRST)));
    const struct span close =
        span_trim(span_to(between, between.len - spans_common_suffix(between, before, false)));
    if (close.len > 0)
        return close;
    const struct span trimmed = span_trim_left(between);
    return span_to(trimmed, span_mark_at(trimmed, 0));
}

/* The thought's end with what surrounds its mark. Where a call follows, what is behind the mark opens the
 * call. */
static struct span whole_end(struct span between, struct span close, bool with_call)
{
    const size_t at = span_find(between, close);
    if (close.len == 0 || at == between.len)
        return close;
    return with_call ? span_to(between, at + close.len) : between;
}

static bool from_messages(struct derivation *derivation)
{
    struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    const struct span thinks = span_of(PROBE_THINKS);
    const char *place = NULL;
    const json_t *more = NULL;
    bool with_call = false;
    struct span text = find_thought(derivation, false, &place, &more);
    if (!text.at) {
        with_call = true;
        text = find_thought(derivation, true, &place, &more);
    }
    if (!text.at)
        return false;
    const size_t at = span_find(text, thinks);
    const struct span behind = span_from(text, at + thinks.len);
    const size_t to = span_find(behind, span_of(with_call ? PROBE_FIRST : PROBE_SAYS));
    if (to == behind.len)
        return false;
    const struct span close = with_call ? closing_before_call(derivation, span_to(behind, to), more)
                                        : closing_before_text(derivation, text, span_to(behind, to), more);
    thoughts->open = derivation_keep(derivation, opening(derivation, span_to(text, at), close));
    thoughts->close = derivation_keep(derivation, close);
    thoughts->end = derivation_keep(derivation, whole_end(span_to(behind, to), close, with_call));
    thoughts->key = place;
    return close.len > 0 && thoughts->open[0];
}

/* ---- only in prompts ---- */

/* The mark that opens what this one closes. False: it closes nothing. */
static bool counterpart(struct span close, char open[static 100])
{
    static const char *const pairs[][2] = {{"</", "<"}, {"[/", "["}, {"<|END_", "<|START_"}};
    for (size_t i = 0; i < N(pairs); i++) {
        const size_t n = strlen(pairs[i][0]);
        if (close.len > n && close.len < 90 && memcmp(close.at, pairs[i][0], n) == 0) {
            snprintf(open, 100, "%s%.*s", pairs[i][1], (int)(close.len - n), close.at + n);
            return true;
        }
    }
    return false;
}

/* `end`: the mark that closes, and the blanks behind it. */
static bool take_pair(struct derivation *derivation, struct span open, struct span close, struct span end)
{
    derivation->dialect->thoughts.open = derivation_keep(derivation, open);
    derivation->dialect->thoughts.close = derivation_keep(derivation, close);
    derivation->dialect->thoughts.end = derivation_keep(derivation, end);
    return true;
}

/* A mark of this text with the blanks behind it. */
static struct span with_blanks(struct span mark, struct span text)
{
    size_t len = mark.len;
    while (mark.at + len < text.at + text.len && is_blank((uint8_t)mark.at[len]))
        len++;
    return (struct span){mark.at, len};
}

/* A prompt, or an answer, without a thought has its marks, and nothing between them. */
static bool from_prompts(struct derivation *derivation)
{
    const struct span answer =
        derivation_render(derivation, probe_conversation(probe_user(), probe_assistant(PROBE_SAYS), NULL),
                          (struct probe_manner){0});
    const struct span prompts[] = {derivation->prompt, derivation->prompt_on, derivation->prompt_off,
                                   span_to(answer, span_find(answer, span_of(PROBE_SAYS)))};
    char open[100];
    for (size_t i = 0; i < N(prompts); i++)
        for (size_t at = 0; at < prompts[i].len; at++) {
            const struct span mark = span_to(span_from(prompts[i], at), span_mark_at(prompts[i], at));
            if (mark.len == 0 || !counterpart(mark, open))
                continue;
            if (span_ends_with(span_trim_right(span_to(prompts[i], at)), span_of(open)))
                return take_pair(derivation, span_of(open), mark, with_blanks(mark, prompts[i]));
        }
    return false;
}

/* The prompt opens something, and the template's source has what closes it. */
static bool from_source(struct derivation *derivation)
{
    static const char *const pairs[][2] = {{"<|START_", "<|END_"}, {"[", "[/"}, {"<", "</"}};
    const struct span prompts[] = {derivation->prompt, derivation->prompt_on};
    const struct span source = {derivation->source.data, derivation->source.len};
    for (size_t i = 0; i < N(prompts); i++) {
        const struct span text = span_trim_right(prompts[i]);
        const struct span mark = span_from(text, span_last_mark(text));
        for (size_t j = 0; j < N(pairs) && mark.len > 0 && mark.len < 90; j++) {
            const size_t n = strlen(pairs[j][0]);
            char close[100];
            if (mark.len <= n || memcmp(mark.at, pairs[j][0], n) != 0)
                continue;
            snprintf(close, sizeof close, "%s%.*s", pairs[j][1], (int)(mark.len - n), mark.at + n);
            if (span_find(source, span_of(close)) < source.len)
                return take_pair(derivation, mark, span_of(close), span_of(close));
        }
    }
    return false;
}

/* ---- */

static enum dialect_start start_of(const struct derivation *derivation, struct span prompt)
{
    const struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    const size_t open = span_find_last(prompt, span_of(thoughts->open)),
                 close = span_find_last(prompt, span_of(thoughts->close));
    return open < prompt.len && (close == prompt.len || close < open) ? DIALECT_START_THOUGHT
                                                                      : DIALECT_START_TEXT;
}

void derive_thoughts(struct derivation *derivation)
{
    struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    if (!derivation->prompt.at)
        return;
    thoughts->known = from_messages(derivation) || from_prompts(derivation) || from_source(derivation);
    if (!thoughts->known) {
        thoughts->open = thoughts->close = thoughts->end = thoughts->key = "";
        thoughts->reason = "the template does not write thoughts";
        return;
    }
    thoughts->usual = thoughts->on = thoughts->off = start_of(derivation, derivation->prompt);
    if (derivation->prompt_on.at)
        thoughts->on = start_of(derivation, derivation->prompt_on);
    if (derivation->prompt_off.at)
        thoughts->off = start_of(derivation, derivation->prompt_off);
}

struct span derive_without_thought(const struct derivation *derivation, struct span text)
{
    const struct dialect_thoughts *thoughts = &derivation->dialect->thoughts;
    const struct span marks[] = {span_trim(span_of(thoughts->open)), span_trim(span_of(thoughts->close))};
    bool again = thoughts->known;
    text = span_trim_left(text);
    while (again) {
        again = false;
        for (size_t i = 0; i < N(marks); i++)
            if (marks[i].len > 0 && text.len >= marks[i].len &&
                memcmp(text.at, marks[i].at, marks[i].len) == 0) {
                text = span_trim_left(span_from(text, marks[i].len));
                again = true;
            }
    }
    return text;
}
