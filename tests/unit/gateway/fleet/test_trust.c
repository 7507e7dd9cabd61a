/* SPDX-License-Identifier: MIT */
/* Who is dead, and whether it is not rather the gateway: pools that answer every 100 ms until they do not. */

#include "gateway/fleet/trust.h"
#include "tests/unit/run.h"

#define N  3
#define MS CLOCK_NS_PER_MS

static struct trust trust;
static struct trust_pool pools[N];
static struct trust_pool *const views[N] = {&pools[0], &pools[1], &pools[2]};
static uint64_t now;

/* So many ms go by, in turns of 20; the first n_answering pools answer every 100 ms, each at its own time. */
static void pass(unsigned ms, int n_answering)
{
    for (uint64_t end = now + ms * MS; now < end;) {
        now += 20 * MS;
        trust_turn(&trust, now);
        for (int i = 0; i < n_answering; i++)
            if (now / MS / 20 % 5 == (unsigned)i)
                pools[i].answered_ns = now;
        trust_judge(&trust, views, N, now);
    }
}

static void set_up(void)
{
    trust = (struct trust){0};
    now = CLOCK_NS_PER_S;
    for (int i = 0; i < N; i++)
        pools[i] = (struct trust_pool){.watched = true, .answered_ns = now};
    pass(1000, N);
}

static int dead(void)
{
    return pools[0].dead + pools[1].dead + pools[2].dead;
}

START_TEST(one_that_is_silent_for_400_ms_is_dead_until_it_answers)
{
    pass(300, 2); /* it had answered up to 100 ms before */
    ck_assert_int_eq(dead(), 0);
    pass(200, 2);
    ck_assert(pools[2].dead && dead() == 1);
    ck_assert_uint_eq(trust.doubted_ns, 0);
    pass(5000, 2);
    ck_assert_int_eq(dead(), 1);
    pass(100, N);
    ck_assert_int_eq(dead(), 0);
}
END_TEST

START_TEST(a_brokers_restart_is_no_death)
{
    for (int i = 0; i < 10; i++) {
        pass(260, 2);
        ck_assert_int_eq(dead(), 0);
        pass(200, N);
    }
}
END_TEST

START_TEST(when_all_fall_silent_together_it_is_the_gateway)
{
    pass(3000, 0);
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_ne(trust.doubted_ns, 0);
    pass(100, N);
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_eq(trust.doubted_ns, 0);
}
END_TEST

START_TEST(once_one_is_heard_again_the_others_are_dead)
{
    pass(1000, 0);
    ck_assert_int_eq(dead(), 0);
    pass(900, 1); /* the others have as long from when it is heard as all were silent */
    ck_assert_int_eq(dead(), 0);
    pass(400, 1);
    ck_assert_int_eq(dead(), 2);
    ck_assert(!pools[0].dead);
    pass(1000, 1); /* and stay so without another doubt */
    ck_assert_int_eq(dead(), 2);
    ck_assert_uint_eq(trust.doubted_ns, 0);
}
END_TEST

START_TEST(pools_that_come_back_one_after_the_other_are_not_dead)
{
    pass(1000, 0);
    pass(700, 1);
    pass(100, 2);
    pass(1000, N);
    ck_assert_int_eq(dead(), 0);
    pass(1000, 0); /* and the next time it is doubted again */
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_ne(trust.doubted_ns, 0);
    pass(700, N);
    pass(1000, 0); /* even soon */
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_ne(trust.doubted_ns, 0);
}
END_TEST

/* However long the cut, a pool that died meanwhile is found out. */
START_TEST(after_a_long_cut_the_others_have_five_seconds)
{
    pass(60000, 0);
    pass(5000, 1);
    ck_assert_int_eq(dead(), 0);
    pass(600, 1);
    ck_assert_int_eq(dead(), 2);
}
END_TEST

START_TEST(a_dead_pool_is_dead_until_it_answers_whatever_the_loop_does)
{
    pass(600, 2);
    ck_assert_int_eq(dead(), 1);
    now += 150 * MS;
    trust_turn(&trust, now);
    pass(100, 2);
    ck_assert_int_eq(dead(), 1);
    pass(1000, 2);
    ck_assert_int_eq(dead(), 1);
    pass(100, N);
    ck_assert_int_eq(dead(), 0);
}
END_TEST

/* One after the other is not together: of two that were alive one is silent, which is no more than half. */
START_TEST(the_second_death_is_believed_while_a_third_answers)
{
    pass(600, 2);
    ck_assert_int_eq(dead(), 1);
    pass(600, 1);
    ck_assert_int_eq(dead(), 2);
    ck_assert_uint_eq(trust.doubted_ns, 0);
    pass(600, 0); /* the last one: it may as well be the gateway */
    ck_assert_int_eq(dead(), 2);
    ck_assert_uint_ne(trust.doubted_ns, 0);
}
END_TEST

START_TEST(a_loop_that_was_late_makes_nobody_dead)
{
    pass(300, 2);
    now += 150 * MS;
    ck_assert(trust_turn(&trust, now));
    trust_judge(&trust, views, N, now);
    ck_assert_int_eq(dead(), 0);
    pass(380, 2);
    ck_assert_int_eq(dead(), 0); /* its silence has begun anew */
    pass(60, 2);
    ck_assert_int_eq(dead(), 1);
    ck_assert(!trust_turn(&trust, now + 20 * MS));
}
END_TEST

START_TEST(who_was_never_connected_is_neither_dead_nor_a_voter)
{
    pools[1].watched = pools[2].watched = false;
    pass(1000, 1);
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_eq(trust.doubted_ns, 0);
    pass(1000, 0);
    ck_assert_int_eq(dead(), 0);
    ck_assert_uint_ne(trust.doubted_ns, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, one_that_is_silent_for_400_ms_is_dead_until_it_answers);
    tcase_add_test(tests, a_brokers_restart_is_no_death);
    tcase_add_test(tests, when_all_fall_silent_together_it_is_the_gateway);
    tcase_add_test(tests, once_one_is_heard_again_the_others_are_dead);
    tcase_add_test(tests, pools_that_come_back_one_after_the_other_are_not_dead);
    tcase_add_test(tests, after_a_long_cut_the_others_have_five_seconds);
    tcase_add_test(tests, a_dead_pool_is_dead_until_it_answers_whatever_the_loop_does);
    tcase_add_test(tests, the_second_death_is_believed_while_a_third_answers);
    tcase_add_test(tests, a_loop_that_was_late_makes_nobody_dead);
    tcase_add_test(tests, who_was_never_connected_is_neither_dead_nor_a_voter);
}

int main(void)
{
    return run_tests("gateway/fleet/trust", add);
}
