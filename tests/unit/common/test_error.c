/* SPDX-License-Identifier: MIT */
#include "common/error.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

START_TEST(a_prefix_of_nothing_is_before_what_the_code_says)
{
    struct error err = {0};
    ck_assert_int_eq(error_prefix(&err, -ENOMEM, "%s", "model.gguf"), -ENOMEM);
    ck_assert_str_eq(err.text, "model.gguf: Cannot allocate memory");
}
END_TEST

START_TEST(the_code_is_returned_and_the_text_kept)
{
    struct error err = {0};
    ck_assert_int_eq(error_set(&err, -EINVAL, "tensor %s ends at %d", "x", 7), -EINVAL);
    ck_assert_str_eq(err.text, "tensor x ends at 7");
    ck_assert_int_eq(error_prefix(&err, -EINVAL, "%s", "model.gguf"), -EINVAL);
    ck_assert_str_eq(err.text, "model.gguf: tensor x ends at 7");
    ck_assert_int_eq(error_set(NULL, 3, "nobody listens"), 3);
}
END_TEST

START_TEST(a_long_text_is_cut_not_overrun)
{
    struct error err = {0};
    char text[2000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    error_set(&err, 1, "%s", text);
    ck_assert_uint_eq(strlen(err.text), sizeof err.text - 1);
    error_prefix(&err, 1, "here");
    ck_assert_uint_lt(strlen(err.text), sizeof err.text);
    ck_assert_int_eq(strncmp(err.text, "here: aaa", 9), 0);
}
END_TEST

START_TEST(a_quoted_name_cannot_break_the_line)
{
    struct error err = {0};
    error_set(&err, 1, "tensor %s", "a\nb\033[2J\x7f");
    ck_assert_str_eq(err.text, "tensor a?b?[2J?");
    error_prefix(&err, 1, "%s", "file\r");
    ck_assert_str_eq(err.text, "file?: tensor a?b?[2J?");
}
END_TEST

START_TEST(a_number_outside_its_bounds_is_told_with_both)
{
    struct error err;
    ck_assert_int_eq(error_out_of_range(&err, 7, "priority", 300, -100, 100), 7);
    ck_assert_str_eq(err.text, "priority 300 is out of range -100..100");
    ck_assert_int_eq(error_out_of_range(NULL, -22, "n", INT64_MIN, 0, INT64_MAX), -22);
    ck_assert_int_eq(error_out_of_range_unsigned(&err, 7, "", UINT64_MAX, 1, UINT64_MAX - 1), 7);
    ck_assert_str_eq(err.text, "18446744073709551615 is out of range 1..18446744073709551614");
    ck_assert_int_eq(error_out_of_range_real(&err, 7, "top_p", 1.5, 0, 1), 7);
    ck_assert_str_eq(err.text, "top_p 1.5 is out of range 0..1");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_number_outside_its_bounds_is_told_with_both);
    tcase_add_test(tests, a_prefix_of_nothing_is_before_what_the_code_says);
    tcase_add_test(tests, the_code_is_returned_and_the_text_kept);
    tcase_add_test(tests, a_long_text_is_cut_not_overrun);
    tcase_add_test(tests, a_quoted_name_cannot_break_the_line);
}

int main(void)
{
    return run_tests("error", add);
}
