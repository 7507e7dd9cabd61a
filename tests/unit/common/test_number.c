/* SPDX-License-Identifier: MIT */
/* Numbers of command lines and files. */

#include "common/number.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <float.h>
#include <locale.h>

START_TEST(a_whole_number_within_its_bounds_is_read)
{
    uint64_t n = 0;
    uint32_t small = 0;
    int64_t with_sign = 0;
    ck_assert_int_eq(number_read("0", 0, UINT64_MAX, &n, NULL), 0);
    ck_assert_uint_eq(n, 0);
    ck_assert_int_eq(number_read("18446744073709551615", 0, UINT64_MAX, &n, NULL), 0);
    ck_assert_uint_eq(n, UINT64_MAX);
    ck_assert_int_eq(number_read("007", 7, 7, &n, NULL), 0);
    ck_assert_uint_eq(n, 7);
    ck_assert_int_eq(number_read_u32("4294967295", 0, UINT32_MAX, &small, NULL), 0);
    ck_assert_uint_eq(small, UINT32_MAX);
    ck_assert_int_eq(number_read_signed("-8", -8, 8, &with_sign, NULL), 0);
    ck_assert_int_eq(with_sign, -8);
    ck_assert_int_eq(number_read_signed("+8", -8, 8, &with_sign, NULL), 0);
    ck_assert_int_eq(with_sign, 8);
    ck_assert_int_eq(number_read_signed("-9223372036854775808", INT64_MIN, 0, &with_sign, NULL), 0);
    ck_assert(with_sign == INT64_MIN);
}
END_TEST

START_TEST(what_is_no_whole_number_is_refused_and_nothing_is_written)
{
    const char *const bad[] = {"",    " 1",  "1 ", "-1", "+1", "1.0", "0x1",
                               "1e3", "ten", "1k", "0",  "10", "5 6", "99999999999999999999",
                               "nan", "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        uint64_t n = 77;
        uint32_t small = 77;
        ck_assert_msg(number_read(bad[i], 1, 9, &n, &err) == -EINVAL, "%s", bad[i]);
        ck_assert_uint_eq(n, 77);
        char expected[128];
        bool is_number = bad[i][strspn(bad[i], "-0123456789")] == 0 && bad[i][0] && bad[i][1] != '-';
        snprintf(expected, sizeof expected,
                 is_number ? "%s is out of range 1..9" : "\"%s\" is not a number from 1 to 9", bad[i]);
        ck_assert_str_eq(err.text, expected);
        ck_assert_int_eq(number_read_u32(bad[i], 1, 9, &small, NULL), -EINVAL);
        ck_assert_uint_eq(small, 77);
    }
    const char *const bad_signed[] = {"", "-", "+", "- 1", "--1", "-9", "9", "1.5", "-99999999999999999999"};
    for (size_t i = 0; i < sizeof bad_signed / sizeof *bad_signed; i++) {
        int64_t n = 77;
        ck_assert_int_eq(number_read_signed(bad_signed[i], -8, 8, &n, NULL), -EINVAL);
        ck_assert_int_eq(n, 77);
    }
}
END_TEST

START_TEST(a_real_number_is_read_whatever_the_locale)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {{"0.5", 0.5}, {"-2", -2}, {"+2", 2}, {"1e-3", 1e-3}, {".25", 0.25}, {"2.", 2}, {"0", 0}};
    /* One with a comma, where the machine has it. */
    setlocale(LC_ALL, "de_DE.UTF-8");
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        double x = 77;
        ck_assert_int_eq(number_read_real(good[i].text, -2, 2, &x, NULL), 0);
        ck_assert_double_eq(x, good[i].value);
    }
    enum { FIRST_OUTSIDE = 14 };
    const char *const bad[] = {"",     " 1", "1 ", "nan", "inf", "-inf",  "infinity", "0x1p0", "1,5",
                               "1.5x", "e5", ".",  "-",   "1e",  "2.001", "-2.1",     "1e999"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        double x = 77;
        struct error err = {0};
        ck_assert_msg(number_read_real(bad[i], -2, 2, &x, &err) == -EINVAL, "%s", bad[i]);
        ck_assert_double_eq(x, 77);
        bool is_number = i >= FIRST_OUTSIDE;
        ck_assert_ptr_nonnull(
            strstr(err.text, is_number ? " is out of range -2..2" : "\" is not a number from -2 to 2"));
    }
    double tiny = 1;
    ck_assert_int_eq(number_read_real("1e-400", 0, 1, &tiny, NULL), 0); /* rounds to zero, which is within */
    ck_assert_double_eq(tiny, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_whole_number_within_its_bounds_is_read);
    tcase_add_test(tests, what_is_no_whole_number_is_refused_and_nothing_is_written);
    tcase_add_test(tests, a_real_number_is_read_whatever_the_locale);
}

int main(void)
{
    return run_tests("number", add);
}
