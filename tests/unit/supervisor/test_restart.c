/* SPDX-License-Identifier: MIT */
/* The restart policy on a clock of our own. */

#include "supervisor/children/restart.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#define MS     CLOCK_NS_PER_MS
#define STEADY (1000 * MS)

START_TEST(waits_double_from_half_a_second_to_ten_seconds)
{
    static const uint64_t waits[] = {500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct restart restart = {0};
    uint64_t now = 1000 * MS, at;
    for (int i = 0; i < 7; i++) {
        restart_ready(&restart, now);
        now += 10 * MS;
        ck_assert(restart_died(&restart, STEADY, now, &at));
        ck_assert_uint_eq(at - now, waits[i] * MS);
        now = at;
    }
}
END_TEST

START_TEST(who_was_ready_for_long_enough_starts_from_the_shortest_wait_again)
{
    struct restart restart = {0};
    uint64_t now = 1000 * MS, at;
    for (int i = 0; i < 3; i++) {
        ck_assert(restart_died(&restart, STEADY, now, &at));
        now = at;
    }
    ck_assert_uint_eq(restart.wait_ns, 2000 * MS);
    restart_ready(&restart, now);
    now += STEADY - 1;
    ck_assert(restart_died(&restart, STEADY, now, &at));
    ck_assert_uint_eq(at - now, 4000 * MS);
    now = at;
    restart_ready(&restart, now);
    now += STEADY;
    ck_assert(restart_died(&restart, STEADY, now, &at));
    ck_assert_uint_eq(at - now, 500 * MS);
}
END_TEST

START_TEST(a_worker_is_not_waited_for_longer_than_it_served)
{
    struct restart restart = {0};
    uint64_t now = 1000 * MS, at;
    for (int i = 0; i < 3; i++) {
        ck_assert(restart_died(&restart, restart.wait_ns, now, &at));
        now = at;
    }
    for (int i = 0; i < 2; i++) { /* for a moment less than it was waited for, and as long */
        restart_ready(&restart, now);
        now += restart.wait_ns - (i == 0);
        ck_assert(restart_died(&restart, restart.wait_ns, now, &at));
        ck_assert_uint_eq(at - now, i == 0 ? 4000 * MS : 500 * MS);
        now = at;
    }
}
END_TEST

START_TEST(who_dies_before_it_is_steady_waits_longer_each_time)
{
    static const uint64_t waits[] = {500, 1000, 2000, 4000, 8000, 10000, 10000};
    struct restart restart = {0};
    uint64_t now = 1000 * MS, at;
    for (int i = 0; i < 7; i++) { /* as a broker does that was started at once each time */
        restart_ready(&restart, now);
        now += STEADY * 9 / 10;
        ck_assert(restart_died(&restart, STEADY, now, &at));
        ck_assert_uint_eq(at - now, waits[i] * MS);
    }
}
END_TEST

START_TEST(five_deaths_in_a_row_before_ready_are_a_crash_loop)
{
    struct restart restart = {0};
    uint64_t at = 0;
    for (int i = 0; i < 4; i++)
        ck_assert(restart_died(&restart, STEADY, at, &at));
    ck_assert(!restart_died(&restart, STEADY, at, &at));
}
END_TEST

START_TEST(being_ready_once_breaks_the_row)
{
    struct restart restart = {0};
    uint64_t at = 1;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 4; i++)
            ck_assert(restart_died(&restart, STEADY, at, &at));
        restart_ready(&restart, at);
        ck_assert(restart_died(&restart, STEADY, at, &at));
    }
}
END_TEST

START_TEST(only_ten_seconds_without_progress_while_busy_are_a_stall)
{
    struct stall stall = {0};
    uint64_t now = 1;
    ck_assert(!stall_check(&stall, true, 5, STALL_MS, now));
    ck_assert(!stall_check(&stall, true, 5, STALL_MS, now + 9999 * MS));
    ck_assert(stall_check(&stall, true, 5, STALL_MS, now + 10000 * MS));
    ck_assert(!stall_check(&stall, true, 6, STALL_MS, now + 10000 * MS));
    ck_assert(!stall_check(&stall, true, 6, STALL_MS, now + 19999 * MS));
    ck_assert(stall_check(&stall, true, 6, STALL_MS, now + 20000 * MS));
    ck_assert(!stall_check(&stall, true, 6, STALL_LOADING_MS, now + 69999 * MS)); /* slower where it loads */
    ck_assert(stall_check(&stall, true, 6, STALL_LOADING_MS, now + 70000 * MS));
}
END_TEST

START_TEST(idle_time_never_counts_as_a_stall)
{
    struct stall stall = {0};
    uint64_t now = 1;
    for (int i = 0; i < 100; i++)
        ck_assert(!stall_check(&stall, false, 5, STALL_MS, now += 1000 * MS));
    ck_assert(!stall_check(&stall, true, 5, STALL_MS, now + 9999 * MS));
    ck_assert(stall_check(&stall, true, 5, STALL_MS, now + 10000 * MS));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, waits_double_from_half_a_second_to_ten_seconds);
    tcase_add_test(tests, who_was_ready_for_long_enough_starts_from_the_shortest_wait_again);
    tcase_add_test(tests, a_worker_is_not_waited_for_longer_than_it_served);
    tcase_add_test(tests, who_dies_before_it_is_steady_waits_longer_each_time);
    tcase_add_test(tests, five_deaths_in_a_row_before_ready_are_a_crash_loop);
    tcase_add_test(tests, being_ready_once_breaks_the_row);
    tcase_add_test(tests, only_ten_seconds_without_progress_while_busy_are_a_stall);
    tcase_add_test(tests, idle_time_never_counts_as_a_stall);
}

int main(void)
{
    return run_tests("supervisor/restart", add);
}
