/* SPDX-License-Identifier: MIT */
/* The grammars that a worker keeps: one text is one grammar, and what was used longest ago goes. */

#include "tests/unit/run.h"
#include "worker/prepare/grammars.h"

#include <stdio.h>

static struct grammar *get(struct grammars *grammars, enum grammar_text_kind kind, const char *text)
{
    struct grammar *grammar = NULL;
    struct error err = {0};
    const struct grammar_text wanted = {kind, bytes_of_string(text)};
    ck_assert_msg(grammars_get(grammars, &wanted, &grammar, &err) == 0, "%s", err.text);
    return grammar;
}

START_TEST(one_text_is_one_grammar_and_another_kind_another)
{
    struct grammars *grammars;
    ck_assert_int_eq(grammars_new(&grammars), 0);
    struct grammar *a = get(grammars, GRAMMAR_TEXT_REGEX, "true"),
                   *b = get(grammars, GRAMMAR_TEXT_REGEX, "true");
    struct grammar *c = get(grammars, GRAMMAR_TEXT_SCHEMA, "true"), *d = get(grammars, GRAMMAR_TEXT_JSON, "");
    ck_assert_ptr_eq(a, b);
    ck_assert(a != c && c != d);
    grammars_free(grammars); /* references outlive the list */
    grammar_free(a);
    grammar_free(b);
    grammar_free(c);
    grammar_free(d);
}
END_TEST

START_TEST(what_was_used_longest_ago_goes)
{
    struct grammars *grammars;
    char text[16];
    ck_assert_int_eq(grammars_new(&grammars), 0);
    struct grammar *kept = get(grammars, GRAMMAR_TEXT_REGEX, "kept"),
                   *gone = get(grammars, GRAMMAR_TEXT_REGEX, "gone");
    for (int i = 0; i < 2 * GRAMMARS_KEPT; i++) {
        snprintf(text, sizeof text, "x{%d}", i + 1);
        grammar_free(get(grammars, GRAMMAR_TEXT_REGEX, text));
        struct grammar *again = get(grammars, GRAMMAR_TEXT_REGEX, "kept");
        ck_assert_ptr_eq(again, kept);
        grammar_free(again);
    }
    struct grammar *other = get(grammars, GRAMMAR_TEXT_REGEX, "gone");
    ck_assert_ptr_ne(other, gone);
    grammar_free(other);
    grammar_free(gone);
    grammar_free(kept);
    grammars_free(grammars);
}
END_TEST

START_TEST(what_is_no_grammar_is_kept_from_nobody_and_told_each_time)
{
    struct grammars *grammars;
    struct grammar *grammar = NULL;
    const struct grammar_text wrong = {GRAMMAR_TEXT_GBNF, BYTES_LITERAL("root ::= (")};
    ck_assert_int_eq(grammars_new(&grammars), 0);
    for (int i = 0; i < 2; i++) {
        struct error err = {0};
        ck_assert_int_eq(grammars_get(grammars, &wrong, &grammar, &err), GRAMMAR_E_INVALID);
        ck_assert(strstr(err.text, "unmatched (") && !grammar);
    }
    grammars_free(grammars);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, one_text_is_one_grammar_and_another_kind_another);
    tcase_add_test(tests, what_was_used_longest_ago_goes);
    tcase_add_test(tests, what_is_no_grammar_is_kept_from_nobody_and_told_each_time);
}

int main(void)
{
    return run_tests("grammars", add);
}
