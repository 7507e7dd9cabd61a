/* SPDX-License-Identifier: MIT */
/* Lines about a load: with what is done, and not too many. */

#include "worker/start/loading.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#define MIB ((uint64_t)1 << 20)
#define S   CLOCK_NS_PER_S

static char line[64];

static bool tell(struct loading *loading, uint64_t done, uint64_t total, uint64_t now)
{
    line[0] = 0;
    return loading_line(loading, "loading", done, total, now, line, sizeof line);
}

START_TEST(a_line_says_how_much_of_what_there_is)
{
    struct loading loading = {0};
    ck_assert(!tell(&loading, 0, 4000 * MIB, 7 * S)); /* the first call is the beginning */
    ck_assert(tell(&loading, 1000 * MIB, 4000 * MIB, 8 * S));
    ck_assert_str_eq(line, "loading: 25% of 4000 MiB");
    ck_assert(tell(&loading, 3999 * MIB, 4000 * MIB, 9 * S)); /* never rounded up */
    ck_assert_str_eq(line, "loading: 99% of 4000 MiB");
    ck_assert(!tell(&loading, 4000 * MIB, 4000 * MIB, 11 * S));
}
END_TEST

START_TEST(a_load_of_less_than_a_second_is_not_talked_of)
{
    struct loading loading = {0};
    for (uint64_t i = 0; i <= 100; i++)
        ck_assert(!tell(&loading, i, 100, S + i * S / 101));
}
END_TEST

START_TEST(lines_are_a_second_and_five_percent_apart)
{
    struct loading loading = {0};
    ck_assert(!tell(&loading, 0, 100, S));
    ck_assert(!tell(&loading, 4, 100, 3 * S));
    ck_assert(tell(&loading, 5, 100, 3 * S));
    ck_assert(!tell(&loading, 60, 100, 4 * S - 1));
    ck_assert(tell(&loading, 60, 100, 4 * S));
    ck_assert(!tell(&loading, 64, 100, 14 * S - 1));
    ck_assert(tell(&loading, 64, 100, 14 * S)); /* a slow one gives a sign of life */
    ck_assert(!tell(&loading, 64, 100, 30 * S));
}
END_TEST

START_TEST(what_is_larger_than_any_memory_is_counted_rightly)
{
    struct loading loading = {0};
    ck_assert(!tell(&loading, 0, UINT64_MAX, S));
    ck_assert(tell(&loading, UINT64_MAX / 2, UINT64_MAX, 2 * S));
    ck_assert_str_eq(line, "loading: 50% of 17592186044415 MiB");
    ck_assert(!tell(&loading, 0, 0, 9 * S)); /* nothing is all there is */
}
END_TEST

START_TEST(another_phase_begins_again)
{
    struct loading loading = {0};
    ck_assert(!tell(&loading, 0, 100, S));
    ck_assert(tell(&loading, 80, 100, 2 * S));
    loading_restart(&loading);
    ck_assert(!tell(&loading, 0, 100, 3 * S));
    ck_assert(tell(&loading, 10, 100, 4 * S));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_line_says_how_much_of_what_there_is);
    tcase_add_test(tests, a_load_of_less_than_a_second_is_not_talked_of);
    tcase_add_test(tests, lines_are_a_second_and_five_percent_apart);
    tcase_add_test(tests, what_is_larger_than_any_memory_is_counted_rightly);
    tcase_add_test(tests, another_phase_begins_again);
}

int main(void)
{
    return run_tests("worker/loading", add);
}
