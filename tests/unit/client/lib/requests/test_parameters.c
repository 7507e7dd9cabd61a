/* SPDX-License-Identifier: MIT */
/* The numbers of a request by name: which there are, what they take and where it goes. */

#include <errno.h>
#include <quern.h>
#include <string.h>

#include "tests/unit/run.h"

static struct quern_request request;
static struct quern_error err;

static int set(const char *name, const char *value)
{
    memset(&err, 0, sizeof err);
    return quern_request_set(&request, name, value, &err);
}

START_TEST(each_is_found_once_by_its_number_and_the_list_ends)
{
    struct quern_parameter parameters[100] = {{0}}, beyond = {.name = "untouched"};
    size_t n = 0;
    while (n < 100 && quern_parameter(n, &parameters[n])) {
        ck_assert_str_ne(parameters[n].help, "");
        for (size_t i = 0; i < n; i++)
            ck_assert_str_ne(parameters[i].name, parameters[n].name);
        n++;
    }
    ck_assert_uint_gt(n, 10);
    ck_assert_uint_lt(n, 100);
    ck_assert(!quern_parameter(n, &beyond));
    ck_assert(!quern_parameter(SIZE_MAX, &beyond));
    ck_assert_str_eq(beyond.name, "untouched");
}
END_TEST

static struct quern_parameter parameter(const char *name)
{
    struct quern_parameter found = {0};
    size_t i = 0;
    while (quern_parameter(i, &found) && strcmp(found.name, name) != 0)
        i++;
    ck_assert(quern_parameter(i, &found));
    return found;
}

START_TEST(its_default_and_its_letter_are_those_of_the_protocol)
{
    ck_assert_double_eq(parameter("temperature").initial, 1);
    ck_assert(parameter("temperature").of_model);
    ck_assert_str_eq(parameter("temperature").letter, "T");
    ck_assert_double_eq(parameter("top_k").initial, 0);
    ck_assert(!parameter("seed").of_model);
    ck_assert_double_eq(parameter("cache_prompt").initial, 1);
    ck_assert_double_eq(parameter("seed").initial, 0);
    ck_assert_str_eq(parameter("seed").letter, "N");
}
END_TEST

START_TEST(a_value_goes_to_its_member_and_nowhere_else)
{
    struct quern_request expected = {.model = "m"};
    request = expected;
    expected.embed = true;
    expected.max_tokens = 7;
    expected.temperature = 0.25;
    expected.top_k = 3;
    expected.presence_penalty = -1.5;
    expected.seed = UINT64_MAX;
    expected.has_seed = true;
    expected.priority = -8;
    expected.deadline_ms = 1000;
    expected.keep_s = 86400;
    expected.has_thinking_budget = true;
    static const char *const values[][2] = {
        {"embed", "1"},          {"max_tokens", "7"},     {"temperature", "0.25"},
        {"top_k", "3"},          {"priority", "-8"},      {"presence_penalty", "-1.5"},
        {"keep_s", "86400"},     {"pieces", "0"},         {"seed", "18446744073709551615"},
        {"deadline_ms", "1000"}, {"thinking_budget", "0"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ck_assert_int_eq(set(values[i][0], values[i][1]), 0);
        ck_assert_int_eq(request.has_seed, i >= 8);
    }
    ck_assert_mem_eq(&request, &expected, sizeof request);
    ck_assert_int_eq(set("embed", "0"), 0);
    ck_assert(!request.embed);
}
END_TEST

START_TEST(a_value_beyond_its_bounds_changes_nothing_and_is_told)
{
    static const char *const wrong[][3] = {
        {"embed", "2", "embed: 2 is out of range 0..1"},
        {"embed", "true", "embed: \"true\" is not a number from 0 to 1"},
        {"max_tokens", "0", "max_tokens: 0 is out of range 1..2147483647"},
        {"max_tokens", "2147483648", "max_tokens: 2147483648 is out of range 1..2147483647"},
        {"temperature", "100.1", "temperature: 100.1 is out of range 0..100"},
        {"temperature", "nan", "temperature: \"nan\" is not a number from 0 to 100"},
        {"priority", "-9", "priority: -9 is out of range -8..8"},
        {"priority", "9", "priority: 9 is out of range -8..8"},
        {"presence_penalty", "-2.5", "presence_penalty: -2.5 is out of range -2..2"},
        {"keep_s", "86401", "keep_s: 86401 is out of range 0..86400"},
        {"thinking_budget", "-1", "thinking_budget: -1 is out of range 0..2147483647"},
        {"seed", "-1", "seed: -1 is out of range 0..18446744073709551615"}};
    const struct quern_request before = {.max_tokens = 5, .priority = 1};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        request = before;
        ck_assert_int_eq(set(wrong[i][0], wrong[i][1]), -EINVAL);
        ck_assert_str_eq(err.text, wrong[i][2]);
        ck_assert_mem_eq(&request, &before, sizeof request);
    }
}
END_TEST

START_TEST(what_is_no_number_of_a_request_is_no_parameter)
{
    static const char *const names[] = {"text", "model", "has_seed", "temperatur", "temperature ", ""};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        ck_assert_int_eq(set(names[i], "1"), -ENOENT);
    ck_assert_str_eq(err.text, ": unknown parameter");
    ck_assert_int_eq(set("colour", "1"), -ENOENT);
    ck_assert_str_eq(err.text, "colour: unknown parameter");
    ck_assert_int_eq(quern_request_set(&request, "colour", "1", NULL), -ENOENT);
}
END_TEST

static const char *got(const char *name)
{
    static char value[QUERN_VALUE_BYTES];
    memset(value, 'x', sizeof value);
    ck_assert_int_eq(quern_request_get(&request, name, value), 0);
    return value;
}

START_TEST(a_value_is_read_back_as_it_is_set_and_an_unset_one_is_empty)
{
    static const char *const values[][2] = {
        {"temperature", "0.7"}, {"temperature", "0"},         {"top_p", "0.123456789012345"},
        {"top_k", "40"},        {"repeat_last_n", "-1"},      {"seed", "18446744073709551615"},
        {"max_tokens", "1"},    {"thinking_budget", "0"},     {"priority", "-8"},
        {"ignore_eos", "1"},    {"presence_penalty", "-1.5"}, {"dry_base", "1.75"},
    };
    static const char *const unset[] = {"temperature", "top_k",           "seed",
                                        "max_tokens",  "thinking_budget", "min_p"};
    quern_request_init(&request);
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        ck_assert_str_eq(got(unset[i]), "");
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ck_assert_int_eq(set(values[i][0], values[i][1]), 0);
        ck_assert_str_eq(got(values[i][0]), values[i][1]);
    }
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        ck_assert_int_eq(set(values[i][0], NULL), 0);
    ck_assert(!request.has_seed && !request.has_thinking_budget);
    for (size_t i = 0; i < sizeof unset / sizeof *unset; i++)
        ck_assert_str_eq(got(unset[i]), "");
    ck_assert_str_eq(got("priority"), "0");
    char value[QUERN_VALUE_BYTES] = "untouched";
    ck_assert_int_eq(quern_request_get(&request, "colour", value), -ENOENT);
    ck_assert_str_eq(value, "untouched");
    ck_assert_int_eq(set("colour", NULL), -ENOENT);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, each_is_found_once_by_its_number_and_the_list_ends);
    tcase_add_test(tests, its_default_and_its_letter_are_those_of_the_protocol);
    tcase_add_test(tests, a_value_goes_to_its_member_and_nowhere_else);
    tcase_add_test(tests, a_value_beyond_its_bounds_changes_nothing_and_is_told);
    tcase_add_test(tests, what_is_no_number_of_a_request_is_no_parameter);
    tcase_add_test(tests, a_value_is_read_back_as_it_is_set_and_an_unset_one_is_empty);
}

int main(void)
{
    return run_tests("client/parameters", add);
}
