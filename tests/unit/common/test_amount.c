/* SPDX-License-Identifier: MIT */
/* Amounts in messages. */

#include "common/amount.h"
#include "tests/unit/run.h"

#include <stdint.h>

START_TEST(one_is_singular_and_all_else_is_plural)
{
    ck_assert_str_eq(amount_of(0, "request").text, "0 requests");
    ck_assert_str_eq(amount_of(1, "request").text, "1 request");
    ck_assert_str_eq(amount_of(2, "request").text, "2 requests");
    ck_assert_str_eq(amount_of(UINT64_MAX, "token").text, "18446744073709551615 tokens");
}
END_TEST

START_TEST(bytes_are_exact_while_they_are_few_and_then_have_a_unit)
{
    static const struct {
        uint64_t n;
        const char *text;
    } cases[] = {{0, "0 bytes"},
                 {1, "1 byte"},
                 {4096, "4096 bytes"},
                 {9999, "9999 bytes"},
                 {10000, "9.77 KiB"},
                 {65536, "64 KiB"},
                 {65537, "64.0 KiB"},
                 {250000, "244.1 KiB"},
                 {(1 << 20) - 1, "1024.0 KiB"},
                 {1 << 20, "1 MiB"},
                 {4194304, "4 MiB"},
                 {4194305, "4.00 MiB"},
                 {104857600, "100 MiB"},
                 {12345678901, "11.5 GiB"},
                 {1ull << 40, "1 TiB"},
                 {UINT64_MAX, "16.0 EiB"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        ck_assert_str_eq(amount_of_bytes(cases[i].n).text, cases[i].text);
}
END_TEST

/* Each has its own text. */
START_TEST(several_may_stand_in_one_expression)
{
    char text[256];
    snprintf(text, sizeof text, "%s, %s of %s", amount_of(1, "row").text, amount_of_bytes(2 << 20).text,
             amount_of_bytes(3 << 20).text);
    ck_assert_str_eq(text, "1 row, 2 MiB of 3 MiB");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, one_is_singular_and_all_else_is_plural);
    tcase_add_test(tests, bytes_are_exact_while_they_are_few_and_then_have_a_unit);
    tcase_add_test(tests, several_may_stand_in_one_expression);
}

int main(void)
{
    return run_tests("amount", add);
}
