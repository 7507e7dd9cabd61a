/* SPDX-License-Identifier: MIT */
/* Which pool a request goes to, by what each has and has to do. */

#include "gateway/fleet/placing.h"
#include "tests/unit/run.h"

#define CHOOSE(tokens, ...)                                                                                  \
    placing_choose((const struct placing_pool[]){__VA_ARGS__},                                               \
                   sizeof((const struct placing_pool[]){__VA_ARGS__}) / sizeof(struct placing_pool), tokens)

START_TEST(the_least_loaded_gets_what_nobody_knows)
{
    ck_assert_uint_eq(CHOOSE(100, {.load = 500}, {.load = 300}, {.load = 400}), 1);
    ck_assert_uint_eq(CHOOSE(100, {.load = 300}), 0);
}
END_TEST

START_TEST(load_is_what_each_slot_has)
{
    ck_assert_uint_eq(CHOOSE(100, {.load = 500, .slots = 8}, {.load = 1000, .slots = 32}), 1);
    ck_assert_uint_eq(CHOOSE(100, {.load = 200, .slots = 8}, {.load = 1000, .slots = 32}), 0);
}
END_TEST

START_TEST(a_prompt_that_is_known_is_worth_five_times_its_tokens_of_load)
{
    /* Four for the overlap, and one that is not read. */
    ck_assert_uint_eq(CHOOSE(500, {.load = 2400, .overlap = 500}, {.load = 0}), 0);
    ck_assert_uint_eq(CHOOSE(500, {.load = 2600, .overlap = 500}, {.load = 0}), 1);
    ck_assert_uint_eq(CHOOSE(1000, {.load = 0, .overlap = 200}, {.load = 0, .overlap = 700}), 1);
    /* More than the whole prompt cannot be known. */
    ck_assert_uint_eq(CHOOSE(100, {.load = 600, .overlap = 6400}, {.load = 0}), 1);
}
END_TEST

START_TEST(who_has_done_more_lately_loses_a_little_of_its_saving)
{
    ck_assert_uint_eq(CHOOSE(1000, {.overlap = 1000, .recent = 50000}, {.overlap = 1000, .recent = 20000}),
                      1);
    /* A tenth: 5,000 less 3,000 is better still than a pool that knows nothing. */
    ck_assert_uint_eq(CHOOSE(1000, {.overlap = 1000, .recent = 30000}, {.recent = 0}), 0);
    /* It takes no more than the saving. */
    ck_assert_uint_eq(CHOOSE(1000, {.recent = 900000}, {.load = 1, .recent = 0}), 0);
}
END_TEST

/* Loads of a hundred times as much as an overlap is worth, and what counts is how they compare. */
START_TEST(when_all_have_much_to_do_loads_count_in_proportion)
{
    ck_assert_uint_eq(CHOOSE(1000, {.load = 110000, .overlap = 1000}, {.load = 90000}), 0);
    ck_assert_uint_eq(CHOOSE(100, {.load = 110000, .overlap = 10}, {.load = 90000}), 1);
    /* Of 4,000 in all, 3,200 stand against 800: an overlap of 500 is worth more, one of 450 less. */
    ck_assert_uint_eq(CHOOSE(450, {.load = 400000, .overlap = 450}, {.load = 100000}), 1);
    ck_assert_uint_eq(CHOOSE(500, {.load = 400000, .overlap = 500}, {.load = 100000}), 0);
}
END_TEST

/* That of 2,000 tokens more to do than another has, which an overlap of 100 is not worth, one of 500 is. */
START_TEST(one_pool_that_says_too_much_hides_no_differences)
{
    const double huge = (double)UINT64_MAX;
    const struct placing_pool pools[] = {{.load = huge}, {.load = 3000, .overlap = 100}, {.load = 1000}};
    ck_assert_uint_eq(placing_choose(pools, 3, 500), 2);
    ck_assert_uint_eq(CHOOSE(500, {.load = 3000, .overlap = 500}, {.load = 1000}, {.load = huge}), 0);
    ck_assert_uint_eq(CHOOSE(500, {.load = huge}, {.load = 3000, .overlap = 100}, {.load = 3000},
                             {.load = huge}, {.load = 1000}),
                      4);
    ck_assert_uint_eq(CHOOSE(500, {.load = huge, .overlap = 500}, {.load = 0}), 1);
}
END_TEST

START_TEST(a_thousand_pools_are_compared)
{
    static struct placing_pool pools[1000];
    for (size_t i = 0; i < 1000; i++)
        pools[i] = (struct placing_pool){.load = 4000 + (i % 7) * 1000, .recent = 1000};
    pools[613].overlap = 2000;
    ck_assert_uint_eq(placing_choose(pools, 1000, 2000), 613);
    pools[613].load = 100000;
    ck_assert_uint_ne(placing_choose(pools, 1000, 2000), 613);
}
END_TEST

START_TEST(on_a_tie_who_has_done_less_lately)
{
    ck_assert_uint_eq(CHOOSE(100, {.recent = 30}, {.recent = 10}, {.recent = 20}), 1);
    ck_assert_uint_eq(CHOOSE(100, {.recent = 10}, {.recent = 10}), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_least_loaded_gets_what_nobody_knows);
    tcase_add_test(tests, load_is_what_each_slot_has);
    tcase_add_test(tests, a_prompt_that_is_known_is_worth_five_times_its_tokens_of_load);
    tcase_add_test(tests, who_has_done_more_lately_loses_a_little_of_its_saving);
    tcase_add_test(tests, when_all_have_much_to_do_loads_count_in_proportion);
    tcase_add_test(tests, one_pool_that_says_too_much_hides_no_differences);
    tcase_add_test(tests, a_thousand_pools_are_compared);
    tcase_add_test(tests, on_a_tie_who_has_done_less_lately);
}

int main(void)
{
    return run_tests("gateway/fleet/placing", add);
}
