/* SPDX-License-Identifier: MIT */
/* How a gateway hashes prompts when its pools separate them in different ways. */

#include "gateway/fleet/books.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

#define POOLS  7
#define SECOND CLOCK_NS_PER_S

static struct fleet fleet;
static struct fleet_pool pools[POOLS], *in_order[POOLS];
static uint64_t now;

static void set_up(void)
{
    memset(pools, 0, sizeof pools);
    fleet = (struct fleet){.pools = in_order, .n_pools = POOLS};
    for (size_t i = 0; i < POOLS; i++) {
        in_order[i] = &pools[i];
        pools[i].fleet = &fleet;
    }
    now = 1000 * SECOND;
}

/* As books.c does after an answer. */
static bool tells(size_t i, const char *space)
{
    const bool ours = books_take_space(&pools[i], space, now);
    pools[i].published.failed = !ours;
    if (!ours)
        pools[i].published.due_ns = now + 30 * SECOND;
    return ours;
}

START_TEST(one_pool_that_answers_first_decides_for_nobody)
{
    ck_assert(tells(0, "hostile"));
    ck_assert_str_eq(fleet.space, "hostile");
    ck_assert(!tells(1, "ours"));
    ck_assert(tells(2, "ours"));
    ck_assert_str_eq(fleet.space, "ours");
    ck_assert_uint_eq(pools[1].published.due_ns, now); /* not in half a minute */
    ck_assert(tells(1, "ours"));
    ck_assert(!tells(0, "hostile"));
    ck_assert(!tells(0, "another"));
    ck_assert_str_eq(fleet.space, "ours");
}
END_TEST

START_TEST(an_operators_change_is_followed_when_most_have_it)
{
    for (size_t i = 0; i < POOLS; i++)
        ck_assert(tells(i, "before"));
    for (size_t changed = 1; changed <= POOLS; changed++) {
        const bool most = 2 * changed > POOLS;
        now += 10 * SECOND;
        for (size_t i = 0; i < POOLS; i++)
            tells(i, i < changed ? "after" : "before");
        for (size_t i = 0; i < POOLS; i++)
            ck_assert(tells(i, i < changed ? "after" : "before") == (most == (i < changed)));
        ck_assert_str_eq(fleet.space, most ? "after" : "before");
    }
}
END_TEST

START_TEST(pools_that_leave_or_are_silent_do_not_count)
{
    for (size_t i = 0; i < POOLS; i++)
        ck_assert(tells(i, "before"));
    pools[0].leaving = pools[1].leaving = true;
    now += 200 * SECOND;
    ck_assert(tells(2, "before"));
    ck_assert(!tells(3, "after"));
    ck_assert(tells(4, "after"));
    ck_assert_str_eq(fleet.space, "after");
    ck_assert(!tells(2, "before"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, one_pool_that_answers_first_decides_for_nobody);
    tcase_add_test(tests, an_operators_change_is_followed_when_most_have_it);
    tcase_add_test(tests, pools_that_leave_or_are_silent_do_not_count);
}

int main(void)
{
    return run_tests("gateway/fleet/books", add);
}
