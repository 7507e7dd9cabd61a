/* SPDX-License-Identifier: MIT */
#include "tests/unit/text/grammar/accepts.h"

#include <check.h>

struct grammar *grammar_of(enum grammar_kind kind, const char *text)
{
    struct grammar *grammar = NULL;
    struct error err = {0};
    int r = grammar_make(kind, bytes_of_string(text), &grammar, &err);
    ck_assert_msg(r == 0, "%s\n: %d %s", text, r, err.text);
    return grammar;
}

bool accepts(struct grammar *grammar, const char *text)
{
    struct grammar_answer *answer;
    struct error err = {0};
    int r = grammar_answer_new(grammar, &answer, &err);
    ck_assert_msg(r == 0, "%d %s", r, err.text);
    r = grammar_answer_take(answer, bytes_of_string(text), &err);
    ck_assert_msg(r == 0 || r == GRAMMAR_E_INVALID, "%s: %d %s", text, r, err.text);
    bool whole = r == 0 && grammar_answer_may_end(answer);
    grammar_answer_free(answer);
    return whole;
}

const char *why_refused(enum grammar_kind kind, const char *text)
{
    static struct error err;
    struct grammar *grammar = NULL;
    err = (struct error){0};
    int r = grammar_make(kind, bytes_of_string(text), &grammar, &err);
    ck_assert_msg(r == 0 || r == GRAMMAR_E_INVALID, "%s: %d", text, r);
    grammar_free(grammar);
    return r == 0 ? "" : err.text;
}

void check_accepted(enum grammar_kind kind, const struct accepted *cases, size_t n)
{
    for (const struct accepted *c = cases; c < cases + n; c++) {
        struct grammar *grammar = grammar_of(kind, c->grammar);
        for (const char *const *text = c->yes; *text; text++)
            ck_assert_msg(accepts(grammar, *text), "%s\nshould accept\n%s", c->grammar, *text);
        for (const char *const *text = c->no; *text; text++)
            ck_assert_msg(!accepts(grammar, *text), "%s\nshould not accept\n%s", c->grammar, *text);
        grammar_free(grammar);
    }
}
