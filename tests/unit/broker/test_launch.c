/* SPDX-License-Identifier: MIT */
/* Cores of workers: disjoint when there are enough, unpinned when there are not. */

#include "broker/launch.h"
#include "tests/unit/run.h"

static const int allowed[] = {2, 3, 5, 7, 11};

START_TEST(workers_share_the_cores_without_overlap)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 0, 2, 0, list, sizeof list), 2);
    ck_assert_str_eq(list, "2,3");
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 0, list, sizeof list), 2);
    ck_assert_str_eq(list, "5,7");
    ck_assert_uint_eq(launch_cores(allowed, 5, 0, 1, 0, list, sizeof list), 5);
    ck_assert_str_eq(list, "2,3,5,7,11");
}
END_TEST

START_TEST(too_many_workers_get_one_thread_and_no_core_of_their_own)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 6, 7, 0, list, sizeof list), 1);
    ck_assert_str_eq(list, "");
}
END_TEST

START_TEST(threads_asked_for_are_given_and_pinned_only_if_they_fit)
{
    char list[64];
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 1, list, sizeof list), 1);
    ck_assert_str_eq(list, "3");
    ck_assert_uint_eq(launch_cores(allowed, 5, 1, 2, 4, list, sizeof list), 4);
    ck_assert_str_eq(list, "");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, workers_share_the_cores_without_overlap);
    tcase_add_test(tests, too_many_workers_get_one_thread_and_no_core_of_their_own);
    tcase_add_test(tests, threads_asked_for_are_given_and_pinned_only_if_they_fit);
}

int main(void)
{
    return run_tests("broker/launch", add);
}
