/* SPDX-License-Identifier: MIT */
/* What an answer may take of a machine: steps in one call, and memory. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"

#include <stdlib.h>
#include <string.h>

#include "text/grammar/machine/machine.h"
#include "text/grammar/regex.h"

START_TEST(a_turn_has_its_own_steps_and_no_more)
{
    struct rules rules;
    struct program program;
    struct machine machine;
    struct error err = {0};
    rules_init(&rules, 1 << 20);
    ck_assert_int_eq(regex_read(BYTES_LITERAL("[ab]+"), &rules, &err), 0);
    ck_assert_int_eq(program_make(&rules, &program, &err), 0);
    ck_assert_int_eq(machine_init(&machine, &program), 0);
    for (int turn = 0; turn < 2; turn++) {
        ck_assert_int_eq(machine_begin(&machine, 100), 0);
        ck_assert_int_eq(machine_charge(&machine, 40), 0);
        ck_assert_int_eq(machine_charge(&machine, 60), 0);
        machine.failure.text[0] = 0;
        ck_assert_int_eq(machine_charge(&machine, 1), MACHINE_E_LIMIT);
        ck_assert_str_eq(machine.failure.text, "the grammar is too complex: one step takes too long");
    }
    machine_deinit(&machine);
    program_deinit(&program);
    rules_deinit(&rules);
}
END_TEST

START_TEST(members_that_cannot_all_come_are_no_expression)
{
    struct rules rules;
    rules_init(&rules, 1 << 20);
    const struct expression *comma = expression_literal(&rules, BYTES_LITERAL(","));
    const struct expression *x = expression_literal(&rules, BYTES_LITERAL("x"));
    const struct expression_member named[] = {{x, x, true}, {x, x, true}, {x, x, false}};
    struct expression_members members = {.between = comma, .named = named, .n_named = 3, .most = 1};
    ck_assert_ptr_null(expression_members(&rules, "too few", &members));
    members.most = 2;
    ck_assert_ptr_nonnull(expression_members(&rules, "enough", &members));
    members.least = 3;
    ck_assert_ptr_null(expression_members(&rules, "more than may come", &members));
    members.most = members.least = 4;
    ck_assert_ptr_null(expression_members(&rules, "more than there are", &members));
    rules_deinit(&rules);
}
END_TEST

static struct grammar_answer *answer_of(struct grammar *grammar)
{
    struct grammar_answer *answer;
    struct error err = {0};
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    return answer;
}

/* Some hundred ways are open after every letter, and hardly any set of them comes twice. */
START_TEST(a_text_that_takes_too_long_is_refused_and_its_parts_are_not)
{
    enum { N = 8192, PART = 1024 };
    struct grammar *grammar = grammar_of(GRAMMAR_REGEX, "(a|b)*a(a|b){1000}");
    struct grammar_answer *answer = answer_of(grammar);
    struct error err = {0};
    static char text[N];
    unsigned seed = 5;
    for (int i = 0; i < N; i++)
        text[i] = "ab"[rand_r(&seed) >> 4 & 1];
    ck_assert_int_eq(grammar_answer_take(answer, (struct bytes){text, N}, &err), GRAMMAR_E_INVALID);
    ck_assert_str_eq(err.text, "the grammar is too complex: one step takes too long");
    ck_assert(!grammar_answer_may_end(answer)); /* it is where it was */
    for (int i = 0; i < N; i += PART)
        ck_assert_msg(grammar_answer_take(answer, (struct bytes){text + i, PART}, &err) == 0, "%d: %s", i,
                      err.text);
    ck_assert_int_eq(grammar_answer_may_end(answer), text[N - 1001] == 'a');
    grammar_answer_free(answer);
    grammar_free(grammar);
}
END_TEST

/* Every way of nesting is a state of its own, with a number for each kind of byte that there is. */
START_TEST(states_beyond_memory_are_refused_in_the_middle_of_a_text)
{
    enum { N = 400000, PART = 1000 };
    static char source[4096], text[N], open[400];
    struct error err = {0};
    unsigned seed = 6;
    size_t len = (size_t)snprintf(source, sizeof source, "root ::= item+ | \"#\" word\nword ::= \"\"");
    for (char c = 'A'; c <= 'Z'; c++)
        len += (size_t)snprintf(source + len, sizeof source - len, " | \"%c%c\" | \"%c%c\"", c, c,
                                c + 'a' - 'A', c + 'a' - 'A');
    for (int c = 0x80; c < 0xc0; c++)
        len += (size_t)snprintf(source + len, sizeof source - len, " | \"\\u%04x!\"", c);
    snprintf(source + len, sizeof source - len,
             "\nitem ::= \"a\" item* \"0\" | \"b\" item* \"1\" | \"c\" item* \"2\" | \"d\" item* \"3\"");
    for (int i = 0, depth = 0; i < N; i++) {
        const bool in = depth == 0 || (depth < 400 && rand_r(&seed) >> 4 & 1);
        const char kind = in ? (char)(rand_r(&seed) >> 4 & 3) : open[--depth];
        text[i] = (char)((in ? 'a' : '0') + kind);
        if (in)
            open[depth++] = kind;
    }
    struct grammar *grammar = grammar_of(GRAMMAR_GBNF, source);
    struct grammar_answer *answer = answer_of(grammar);
    ck_assert_int_eq(grammar_answer_take(answer, (struct bytes){text, N}, &err), GRAMMAR_E_INVALID);
    ck_assert_str_eq(err.text, "the grammar is too complex: its states take more than 48 MiB");
    for (int i = 0; i < N; i += PART)
        ck_assert_msg(grammar_answer_take(answer, (struct bytes){text + i, PART}, &err) == 0, "%d: %s", i,
                      err.text);
    grammar_answer_free(answer);
    grammar_free(grammar);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, members_that_cannot_all_come_are_no_expression);
    tcase_add_test(tests, a_turn_has_its_own_steps_and_no_more);
    tcase_add_test(tests, a_text_that_takes_too_long_is_refused_and_its_parts_are_not);
    tcase_add_test(tests, states_beyond_memory_are_refused_in_the_middle_of_a_text);
}

int main(void)
{
    return run_tests("machine", add);
}
