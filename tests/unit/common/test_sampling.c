/* SPDX-License-Identifier: MIT */
/* The list of sampling parameters: its bounds, and copies. */

#include "common/sampling.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

/* A sampling whose parameter of this name is `value`; everything else is the default. */
static struct sampling with(const char *name, double value)
{
    struct sampling sampling = {0};
#define SET_REAL(member, least, most, initial, ...)                                                          \
    sampling.member = strcmp(name, #member) == 0 ? value : (initial);
#define SET_COUNT(member, least, most, initial, ...)                                                         \
    sampling.member = strcmp(name, #member) == 0 ? (int32_t)value : (initial);
    SAMPLING_PARAMETERS(SET_REAL, SET_COUNT)
    return sampling;
}

static void check_bounds(const char *name, bool real, double least, double most)
{
    struct error err = {0};
    struct sampling low = with(name, least), high = with(name, most);
    struct sampling below = with(name, least - (real ? 0.001 : 1));
    ck_assert_int_eq(sampling_check(&low, 0, NULL), 0);
    ck_assert_int_eq(sampling_check(&high, 0, NULL), 0);
    ck_assert_int_eq(sampling_check(&below, 0, &err), -EINVAL);
    ck_assert_msg(strncmp(err.text, name, strlen(name)) == 0, "%s: %s", name, err.text);
    if (!real)
        return; /* they end with their type */
    struct sampling above = with(name, most + 1), none = with(name, NAN);
    ck_assert_int_eq(sampling_check(&above, 0, NULL), -EINVAL);
    ck_assert_int_eq(sampling_check(&none, 0, NULL), -EINVAL);
}

START_TEST(each_parameter_is_held_to_its_bounds_by_name)
{
#define BOUNDS_REAL(name, least, most, ...)  check_bounds(#name, true, least, most);
#define BOUNDS_COUNT(name, least, most, ...) check_bounds(#name, false, least, most);
    SAMPLING_PARAMETERS(BOUNDS_REAL, BOUNDS_COUNT)
}
END_TEST

START_TEST(a_penalty_that_would_overflow_is_refused)
{
    struct error err = {0};
    struct sampling sampling = with("repetition_penalty", 1e-38);
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    ck_assert_str_eq(err.text, "repetition_penalty 1e-38 is out of range 0.01..100");
}
END_TEST

START_TEST(biases_are_of_ids_of_the_vocabulary_and_bounded)
{
    struct error err = {0};
    static struct logit_bias items[SAMPLING_MAX_BIASES + 1] = {{3, -100}, {9, 100}};
    struct sampling sampling = SAMPLING_GREEDY;
    sampling.logit_bias = (struct logit_bias_list){items, 2};
    ck_assert_int_eq(sampling_check(&sampling, 10, &err), 0);
    ck_assert_int_eq(sampling_check(&sampling, 9, &err), -EINVAL);
    ck_assert_str_eq(err.text, "logit_bias: id 9 is outside the vocabulary of 9");
    items[0].bias = 100.5f;
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    ck_assert_str_eq(err.text, "logit_bias of id 3: 100.5 is out of range -100..100");
    items[0].bias = NAN;
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    items[0].bias = INFINITY;
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    items[0].bias = -INFINITY; /* never */
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), 0);
    items[0] = (struct logit_bias){-1, 0};
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    items[0].id = 0;
    sampling.logit_bias.n = SAMPLING_MAX_BIASES;
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), 0);
    sampling.logit_bias.n++;
    ck_assert_int_eq(sampling_check(&sampling, 0, &err), -EINVAL);
    ck_assert_str_eq(err.text, "logit_bias: 1025 items; at most 1024 are allowed");
}
END_TEST

START_TEST(a_copy_has_lists_of_its_own)
{
    struct logit_bias items[] = {{3, -1}, {9, 1}};
    int32_t words[] = {2, 5, 6, 1, 7}, breakers[] = {2, 8, 9};
    uint32_t mask[] = {1, 2};
    struct sampling from = with("top_k", 7), copy = {0};
    from.seed = 5;
    from.logit_bias = (struct logit_bias_list){items, 2};
    from.bad_words = (struct id_sequences){words, 5, 2};
    from.dry_breakers = (struct dry_breakers){mask, 2, {breakers, 3, 1}};
    ck_assert_int_eq(sampling_copy(&from, &copy), 0);
    items[1].id = 0;
    words[1] = breakers[1] = 0;
    mask[1] = 0;
    ck_assert_int_eq(copy.bad_words.items[1], 5);
    ck_assert_int_eq(copy.dry_breakers.sequences.items[1], 8);
    ck_assert_uint_eq(copy.dry_breakers.mask[1], 2);
    ck_assert_int_eq(copy.top_k, 7);
    ck_assert_uint_eq(copy.seed, 5);
    ck_assert_uint_eq(copy.logit_bias.n, 2);
    ck_assert_int_eq(copy.logit_bias.items[1].id, 9);
    sampling_deinit(&copy);
    ck_assert_uint_eq(copy.logit_bias.n, 0);
    sampling_deinit(&copy);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_parameter_is_held_to_its_bounds_by_name);
    tcase_add_test(tests, a_penalty_that_would_overflow_is_refused);
    tcase_add_test(tests, biases_are_of_ids_of_the_vocabulary_and_bounded);
    tcase_add_test(tests, a_copy_has_lists_of_its_own);
}

int main(void)
{
    return run_tests("sampling", add);
}
