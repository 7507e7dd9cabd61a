/* SPDX-License-Identifier: MIT */
#include "common/program/command_line.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

START_TEST(words_are_copied_in_order_and_ended_by_null)
{
    static const char *const expected[] = {"program", "--name", "a b", "--last", "-7", "--top", "4294967295"};
    struct command_line line = {0};
    char name[] = "a b";
    command_line_add(&line, "program");
    command_line_option(&line, "--name", name);
    command_line_option(&line, "--absent", NULL);
    command_line_number(&line, "--last", -7);
    command_line_number(&line, "--top", UINT32_MAX);
    strcpy(name, "?");
    char *const *words = command_line_words(&line);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        ck_assert_str_eq(words[i], expected[i]);
    ck_assert_ptr_null(words[sizeof expected / sizeof *expected]);
    command_line_deinit(&line);
    ck_assert_uint_eq(line.n, 0);
}
END_TEST

START_TEST(a_line_has_no_bound)
{
    struct command_line line = {0};
    for (int i = 0; i < 1000; i++) {
        char word[16];
        snprintf(word, sizeof word, "%d", i);
        command_line_add(&line, word);
    }
    char *const *words = command_line_words(&line);
    ck_assert_str_eq(words[999], "999");
    ck_assert_ptr_null(words[1000]);
    command_line_deinit(&line);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, words_are_copied_in_order_and_ended_by_null);
    tcase_add_test(tests, a_line_has_no_bound);
}

int main(void)
{
    return run_tests("command_line", add);
}
