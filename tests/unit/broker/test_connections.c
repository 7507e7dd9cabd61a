/* SPDX-License-Identifier: MIT */
/* How many connections a limit of open files leaves room for. */

#include "broker/connections.h"
#include "tests/unit/run.h"

#include <sys/resource.h>

static uint32_t most_with(rlim_t soft, rlim_t hard)
{
    struct rlimit limit = {soft, hard};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return connections_raise_limit();
}

/* Limits only go down here: what is lowered cannot be raised again by everyone. */
START_TEST(a_part_of_the_descriptors_stays_ours)
{
    struct rlimit limit;
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    if (limit.rlim_max >= 4096)
        ck_assert_uint_eq(most_with(4096, 4096), 4096 - 512);
    ck_assert_uint_eq(most_with(1000, 1000), 750); /* a quarter, where that is less */
    ck_assert_uint_eq(most_with(100, 100), 75);
}
END_TEST

START_TEST(the_limit_is_raised_as_far_as_it_may_be)
{
    struct rlimit limit;
    ck_assert_uint_eq(most_with(100, 1000), 750);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_uint_eq(limit.rlim_cur, 1000);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_limit_is_raised_as_far_as_it_may_be);
    tcase_add_test(tests, a_part_of_the_descriptors_stays_ours); /* last: see above */
}

int main(void)
{
    return run_tests("broker/connections", add);
}
