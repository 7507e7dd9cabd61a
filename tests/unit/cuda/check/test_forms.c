/* SPDX-License-Identifier: MIT */
/* A device that gives other bytes where launches overlap, or where they are recorded, than where they run in
 * turn, is refused, and told by form, rows, context and the first value that differs. */

#include "cuda/backend.h"
#include "tests/unit/cuda/check/gated.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Kernels that overtake the launch before them the first time that they could, where the rest of the gate,
 * which waits for each part, does not see it. */
static const struct {
    const char *kernel, *named;
} early[] = {
    {"heads:1", "a prompt's 4 rows and then 2 beside 1 sequences, overlapping, after a context of 448, give "
                "bytes that differ from launches in turn, time 1 of 1: "},
    {"attention:1", "overlapping, after a context of 448"},
    {"multiply_thin:1", "overlapping, after a context of 448"},
    {"find_best:1", "overlapping, after a context of 448"},
};

START_TEST(a_kernel_that_overtakes_where_launches_overlap_is_refused)
{
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_msg(open_sized("QUERN_EMU_EARLY", early[_i].kernel, &far, &err) == -ENODEV, "%s: %s",
                  early[_i].kernel, err.text);
    ck_assert_msg(strstr(err.text, early[_i].named) != NULL, "%s", err.text);
    model_free(model);
}
END_TEST

/* The first of the kernels that the gate sees to overtake in no other way does so in the given time alone. */
START_TEST(one_time_in_many_is_found_by_the_whole_form)
{
    const struct backend_config sizes = {.n_slots = 3, .n_context = 520, .max_rows = 64};
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    setenv("QUERN_CHECK", "whole", 1);
    ck_assert_msg(open_sized("QUERN_EMU_EARLY", "heads:9", &sizes, &err) == -ENODEV, "%s", err.text);
    ck_assert_msg(strstr(err.text, "overlapping") && strstr(err.text, " of 20: "), "%s", err.text);
    ck_assert_msg(!strstr(err.text, "time 1 of 20"), "%s", err.text);
    unsetenv("QUERN_CHECK");
    model_free(model);
}
END_TEST

START_TEST(a_recording_that_overtakes_is_refused)
{
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_sized("QUERN_EMU_EARLY", "heads:recorded", &far, &err), -ENODEV);
    ck_assert_msg(strstr(err.text, "recorded") != NULL, "%s", err.text);
    model_free(model);
}
END_TEST

START_TEST(an_extent_that_there_is_not_is_refused_by_name)
{
    struct error err;
    model = make_model(&small_shape, "Q8_0");
    ck_assert_int_eq(open_with("QUERN_CHECK", "hole", 1, 32, &err), -EINVAL);
    ck_assert_str_eq(err.text, "$QUERN_CHECK is \"hole\", expected short, whole or a number from 1 to 1000");
    ck_assert_int_eq(open_with("QUERN_CHECK", "0", 1, 32, &err), -EINVAL);
    ck_assert_msg(open_with("QUERN_CHECK", "", 1, 32, &err) == 0, "%s", err.text);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_kernel_that_overtakes_where_launches_overlap_is_refused, 0,
                        sizeof early / sizeof *early);
    tcase_add_test(tests, one_time_in_many_is_found_by_the_whole_form);
    tcase_add_test(tests, a_recording_that_overtakes_is_refused);
    tcase_add_test(tests, an_extent_that_there_is_not_is_refused_by_name);
}

int main(void)
{
    return run_tests("cuda forms of steps", add);
}
