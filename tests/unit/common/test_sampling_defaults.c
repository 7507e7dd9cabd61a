/* SPDX-License-Identifier: MIT */
/* Defaults of sampling parameters: as text and back, who wins, and what completes a request. */

#include "common/sampling_defaults.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

START_TEST(a_text_comes_back_as_it_was)
{
    struct sampling_defaults defaults, back;
    char text[SAMPLING_DEFAULTS_TEXT];
    struct error err;
    sampling_defaults_init(&defaults);
    ck_assert_int_eq(
        sampling_defaults_set(&defaults, BYTES_LITERAL("temperature=0.6 top-k=20"), SAMPLING_OF_MODEL, &err),
        0);
    ck_assert_int_eq(sampling_defaults_set(&defaults, BYTES_LITERAL(" top_k=5 "), SAMPLING_OF_POOL, &err), 0);
    defaults.values[SAMPLING_AT_top_p] = (double)0.95f; /* of a file whose numbers are floats: 17 digits */
    sampling_defaults_write(&defaults, text);
    ck_assert_ptr_nonnull(strstr(text, "temperature=0.6:model "));
    ck_assert_ptr_nonnull(strstr(text, " top_k=5:pool "));
    ck_assert_ptr_nonnull(strstr(text, " min_p=0:default"));
    sampling_defaults_read(bytes_of_string(text), &back);
    for (size_t i = 0; i < SAMPLING_N; i++) {
        ck_assert_double_eq(back.values[i], defaults.values[i]);
        ck_assert_int_eq(back.sources[i], defaults.sources[i]);
    }
}
END_TEST

START_TEST(what_another_version_says_is_passed_over)
{
    static const char *const odd[] = {"",
                                      "warmth=3:model top_p=0.5:pool",
                                      "top_p=0.5:pool temperature=500:model",
                                      "temperature=x:model top_p=0.5:pool",
                                      "top_p=0.5:pool temperature=2:nobody",
                                      "top_p=0.5:pool = == temperature temperature="};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct sampling_defaults defaults;
        sampling_defaults_read(bytes_of_string(odd[i]), &defaults);
        ck_assert_double_eq(defaults.values[SAMPLING_AT_temperature], 1);
        ck_assert_double_eq(defaults.values[SAMPLING_AT_top_p], i ? 0.5 : 1);
    }
}
END_TEST

START_TEST(a_pool_is_told_what_is_wrong)
{
    static const char *const wrong[][2] = {{"top_p=2", "top_p: 2 is out of range 0..1"},
                                           {"top_k=1.5", "top_k: 1.5 is not a whole number"},
                                           {"warmth=1", "\"warmth=1\" is not NAME=VALUE"},
                                           {"temperature", "is not NAME=VALUE"},
                                           {"temperature=hot", "temperature: \"hot\" is not a number"},
                                           {"temperature=1x", "is not a number"},
                                           {"temperature=nan", "temperature: nan"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct sampling_defaults defaults;
        struct error err = {0};
        sampling_defaults_init(&defaults);
        ck_assert_int_eq(
            sampling_defaults_set(&defaults, bytes_of_string(wrong[i][0]), SAMPLING_OF_POOL, &err), -EINVAL);
        ck_assert_msg(strstr(err.text, wrong[i][1]) != NULL, "%s: %s", wrong[i][0], err.text);
    }
}
END_TEST

START_TEST(a_request_keeps_what_it_says)
{
    struct sampling_defaults defaults;
    struct sampling sampling = {0};
    sampling_leave(&sampling);
    sampling.top_k = 0;
    sampling.temperature = 0;
    sampling_defaults_init(&defaults);
    ck_assert_int_eq(sampling_defaults_set(&defaults, BYTES_LITERAL("temperature=0.6 top_k=20 top_p=0.25"),
                                           SAMPLING_OF_MODEL, NULL),
                     0);
    sampling_complete(&sampling, defaults.values);
    ck_assert_double_eq(sampling.temperature, 0);
    ck_assert_uint_eq(sampling.top_k, 0);
    ck_assert_double_eq(sampling.top_p, 0.25);
    ck_assert_double_eq(sampling.repetition_penalty, 1);
    ck_assert_int_eq(sampling_check(&sampling, 0, NULL), 0);
}
END_TEST

START_TEST(what_the_receiver_would_choose_is_left_out)
{
    struct sampling_defaults fixed, own;
    struct sampling sampling = {0}, completed;
    sampling_defaults_init(&fixed);
    ck_assert_int_eq(
        sampling_defaults_set(&fixed, BYTES_LITERAL("temperature=0.6 top_k=20"), SAMPLING_OF_MODEL, NULL), 0);
    own = fixed;
    own.values[SAMPLING_AT_top_k] = 40;
    sampling_leave(&sampling);
    sampling.min_p = own.values[SAMPLING_AT_min_p]; /* said by the request: stays */
    completed = sampling;
    sampling_complete(&completed, fixed.values);
    sampling_complete_for(&sampling, fixed.values, own.values);
    ck_assert(sampling_real_is_left(sampling.temperature));
    ck_assert(!sampling_real_is_left(sampling.min_p));
    ck_assert_int_eq(sampling.top_k, 20);
    sampling_complete(&sampling, own.values);
    ck_assert_mem_eq(&sampling, &completed, sizeof sampling);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_text_comes_back_as_it_was);
    tcase_add_test(tests, what_another_version_says_is_passed_over);
    tcase_add_test(tests, a_pool_is_told_what_is_wrong);
    tcase_add_test(tests, a_request_keeps_what_it_says);
    tcase_add_test(tests, what_the_receiver_would_choose_is_left_out);
}

int main(void)
{
    return run_tests("sampling_defaults", add);
}
