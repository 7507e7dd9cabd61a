/* SPDX-License-Identifier: MIT */
/* What is believed of a cache, in numbers: 4,096 tokens are believed at first, and beyond 131,072 the past
 * counts half. */

#include "broker/choose/hit_estimate.h"
#include "tests/unit/run.h"

START_TEST(of_whom_nothing_is_known_all_is_believed)
{
    const struct hit_estimate nothing = {0};
    ck_assert_uint_eq(hit_estimate_expects(&nothing, 0), 0);
    ck_assert_uint_eq(hit_estimate_expects(&nothing, 1), 1);
    ck_assert_uint_eq(hit_estimate_expects(&nothing, 1000000), 1000000);
}
END_TEST

START_TEST(who_keeps_its_word_is_believed_and_who_does_not_is_not)
{
    struct hit_estimate keeps = {0}, fails = {0}, half = {0};
    for (int i = 0; i < 3; i++) {
        hit_estimate_learn(&keeps, 4096, 4096);
        hit_estimate_learn(&fails, 4096, 0);
        hit_estimate_learn(&half, 4096, 2048);
    }
    ck_assert_uint_eq(hit_estimate_expects(&keeps, 1000), 1000);
    ck_assert_uint_eq(hit_estimate_expects(&fails, 1000), 250);
    ck_assert_uint_eq(hit_estimate_expects(&half, 1000), 625);
    ck_assert_uint_eq(hit_estimate_expects(&fails, 1000000), 250000);
    hit_estimate_learn(&half, 0, 4096); /* more than was believed */
    ck_assert_uint_eq(half.came_true, 10240);
    ck_assert_uint_eq(half.believed, 12288);
}
END_TEST

START_TEST(what_came_true_long_ago_counts_half)
{
    struct hit_estimate estimate = {0};
    hit_estimate_learn(&estimate, 131072, 65536);
    ck_assert_uint_eq(estimate.believed, 131072);
    ck_assert_uint_eq(estimate.came_true, 65536);
    hit_estimate_learn(&estimate, 2, 2);
    ck_assert_uint_eq(estimate.believed, 65537);
    ck_assert_uint_eq(estimate.came_true, 32769);
    hit_estimate_learn(&estimate, 100, 0);
    ck_assert_uint_eq(estimate.believed, 65637);
    ck_assert_uint_eq(estimate.came_true, 32769);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, of_whom_nothing_is_known_all_is_believed);
    tcase_add_test(tests, who_keeps_its_word_is_believed_and_who_does_not_is_not);
    tcase_add_test(tests, what_came_true_long_ago_counts_half);
}

int main(void)
{
    return run_tests("broker/hit_estimate", add);
}
