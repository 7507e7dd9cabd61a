/* SPDX-License-Identifier: MIT */
/* See call_grammar.h.
 *
 *     root ::= calls                        they are forced
 *     root ::= text calls?                  they are not
 *     root ::= calls | content              beside JSON that is asked for
 *     calls ::= "<tool_call>\n" (call-0 | call-1) ("\n<tool_call>\n" …)*
 *     call-0 ::= "{\"name\": \"" "rain" "\", \"arguments\": " arguments-0 "}\n</tool_call>"
 *     arguments-0 ::= %json {…}             or parameter by parameter (member_grammar.c)
 *
 * `text` is any that does not have the first mark of calls in it, so where a model writes the mark, a call
 * follows. Where calls have no mark, one comes at the beginning of the answer or not at all. */

#include "text/dialect/call_grammar.h"

#include <errno.h>
#include <string.h>

#include "text/dialect/blank.h"
#include "text/dialect/grammar_text.h"
#include "text/dialect/literal.h"
#include "text/dialect/member_grammar.h"

/* ---- where text ends and a call begins ---- */

/* What stands before the first call's name: the constant part. */
static struct bytes beginning(struct grammar_text *out, const struct dialect_calls *calls,
                              struct buffer *both)
{
    const char *parts[] = {calls->open, calls->head};
    for (size_t i = 0; i < 2; i++)
        for (const char *at = parts[i]; *at; at++) {
            if (*at <= DIALECT_TYPE || (calls->name_key && *at == '{'))
                return (struct bytes){both->data, both->len};
            if ((both->len > 0 || !is_blank(*at)) && buffer_append(both, at, 1) < 0)
                out->failed = true;
        }
    return (struct bytes){both->data, both->len};
}

/* The first word: what ends text. Empty: calls have no mark. The parser knows calls by the same. */
static struct bytes mark_of(struct bytes beginning)
{
    const char *text = beginning.data;
    size_t len = 0;
    while (len < beginning.len && !is_blank(text[len]))
        len++;
    if (len > 1 && text[len - 1] == '[')
        len--; /* of the list */
    const bool marked = beginning.len >= 6 || (len > 0 && (text[0] == '<' || text[0] == '['));
    return (struct bytes){text, marked ? len : 0};
}

/* Text at whose beginning no call stands. */
static void write_unmarked_text(struct grammar_text *out, const struct model_dialect *dialect,
                                struct bytes begin)
{
    if (dialect->content_open[0]) {
        grammar_put(out, "text ::= ");
        grammar_put_literal(out, dialect->content_open, NULL);
        grammar_put(out, " .*\n");
        return;
    }
    const char first = begin.len > 0 ? *(const char *)begin.data : '{';
    const char not [] = {' ', '\t', '\r', '\n', first};
    grammar_put(out, "text ::= [ \\t\\r\\n]* (");
    grammar_put_others(out, not, sizeof not );
    grammar_put(out, " .*)?\n");
}

/* ---- calls ---- */

static bool is_shown(const struct call_grammar *grammar, size_t i)
{
    return !grammar->tools[i].barred;
}

static void write_any_call(struct grammar_text *out, const struct call_grammar *grammar)
{
    bool first = true;
    grammar_put(out, "(");
    for (size_t i = 0; i < grammar->n; i++) {
        if (!is_shown(grammar, i))
            continue;
        grammar_put(out, first ? "call-" : " | call-");
        grammar_put_number(out, i);
        first = false;
    }
    grammar_put(out, ")");
}

/* Whether what closes the calls may be left out: the last call's own end says it already. */
static bool closes_itself(const struct dialect_calls *calls)
{
    const size_t len = strlen(calls->tail);
    return !calls->open[0] && len > 0 && calls->tail[len - 1] == '>';
}

static int write_arguments(struct grammar_text *out, const struct call_grammar *grammar, size_t i,
                           struct error *err)
{
    const struct grammar_tool *tool = &grammar->tools[i];
    if (grammar->dialect->calls.arguments == DIALECT_MEMBERS)
        return member_grammar_write(out, &grammar->dialect->calls, tool, i, err);
    grammar_put_arguments(out, i, tool->name);
    grammar_put(out, " ::= %json ");
    if (tool->held)
        grammar_put_json(out, tool->schema);
    else
        grammar_put(out, "{\"type\":\"object\"}");
    grammar_put(out, "\n");
    return 0;
}

static int write_calls(struct grammar_text *out, const struct call_grammar *grammar, struct error *err)
{
    const struct dialect_calls *calls = &grammar->dialect->calls;
    int r = 0;
    grammar_put(out, "calls ::= ");
    grammar_put_literal(out, calls->open, NULL);
    grammar_put(out, " ");
    write_any_call(out, grammar);
    if (calls->between && !grammar->one_call) {
        grammar_put(out, " (");
        grammar_put_literal(out, calls->between, NULL);
        grammar_put(out, " ");
        write_any_call(out, grammar);
        grammar_put(out, ")*");
    }
    grammar_put(out, " ");
    grammar_put_literal(out, calls->close, NULL);
    grammar_put(out, closes_itself(calls) ? "?\n" : "\n");
    for (size_t i = 0; i < grammar->n && r == 0; i++) {
        if (!is_shown(grammar, i))
            continue;
        const struct grammar_names names = {.tool = grammar->tools[i].name};
        grammar_put(out, "call-");
        grammar_put_number(out, i);
        grammar_put(out, " ::= ");
        grammar_put_literal(out, calls->head, &names);
        grammar_put(out, " ");
        grammar_put_literal(out, "\1", &names);
        grammar_put(out, " ");
        grammar_put_literal(out, calls->middle, &names);
        grammar_put(out, " ");
        grammar_put_arguments(out, i, names.tool);
        grammar_put(out, " ");
        grammar_put_literal(out, calls->tail, &names);
        grammar_put(out, "\n");
        r = write_arguments(out, grammar, i, err);
    }
    return r;
}

/* ---- all of it ---- */

/* What may come before. True: `thought` is defined, and has to be written before all else. */
static void write_thought(struct grammar_text *out, const struct call_grammar *grammar)
{
    const struct dialect_thoughts *thoughts = &grammar->dialect->thoughts;
    if (!thoughts->known || !(grammar->thoughts || grammar->inside_thought)) {
        grammar_put(out, "thought ::= \"\"\n");
        return;
    }
    grammar_put_free_text(out, "musing", bytes_of_string(thoughts->close));
    grammar_put(out, "thought ::= ");
    if (!grammar->inside_thought) {
        grammar_put(out, "(");
        grammar_put_literal(out, thoughts->open, NULL);
        grammar_put(out, " ");
    }
    grammar_put(out, "musing-0 ");
    grammar_put_literal(out, thoughts->close, NULL);
    grammar_put(out, " [ \\n]{0,2}");
    grammar_put(out, grammar->inside_thought ? "\n" : ")?\n");
}

int call_grammar_write_after_thought(const struct model_dialect *dialect, const char *schema,
                                     struct buffer *gbnf, struct error *err)
{
    struct grammar_text out = {.buffer = gbnf};
    const struct call_grammar grammar = {.dialect = dialect, .inside_thought = true};
    grammar_put(&out, "root ::= thought content\ncontent ::= %json ");
    grammar_put(&out, schema);
    grammar_put(&out, "\n");
    write_thought(&out, &grammar);
    return out.failed ? error_set(err, -ENOMEM, "not enough memory for the grammar") : 0;
}

int call_grammar_write(const struct call_grammar *grammar, struct buffer *gbnf, struct error *err)
{
    struct grammar_text out = {.buffer = gbnf};
    struct buffer both = {0};
    const struct bytes begin = beginning(&out, &grammar->dialect->calls, &both), mark = mark_of(begin);
    if (grammar->content) {
        grammar_put(&out, "root ::= thought (calls | content)\ncontent ::= %json ");
        grammar_put(&out, grammar->content);
        grammar_put(&out, "\n");
    } else if (grammar->forced) {
        grammar_put(&out, "root ::= thought calls\n");
    } else if (mark.len > 0) {
        grammar_put(&out, "root ::= thought text-0 calls?\n");
        grammar_put_free_text(&out, "text", mark);
    } else {
        grammar_put(&out, "root ::= thought (text | calls)\n");
        write_unmarked_text(&out, grammar->dialect, begin);
    }
    write_thought(&out, grammar);
    int r = write_calls(&out, grammar, err);
    buffer_deinit(&both);
    return r == 0 && out.failed ? error_set(err, -ENOMEM, "not enough memory for the grammar") : r;
}
