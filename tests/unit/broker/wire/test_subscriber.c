/* SPDX-License-Identifier: MIT */
/* What subscribers may send: alone, all together, and those of a key. */

#include "tests/unit/run.h"

#include <errno.h>

#include "broker/wire/subscriber.h"
#include "common/clock.h"

#define SECOND CLOCK_NS_PER_S
#define SHARE  100

static const struct subscriber_bounds bounds = {
    .most = 1000, .all = {.most = 4000, .burst = 2000, .a_second = 100}, .key = {1500, 600, 10}};

static struct subscribers all;
static enum subscriber_bound bound;

static void set_up(void)
{
    all = (struct subscribers){.bounds = &bounds};
}

/* Whoever is still there leaves. */
static void tear_down(void)
{
    struct key_stock *stock, *next;
    HASH_ITER(hh, all.by_key, stock, next)
    {
        stock->connections = 0;
        stock->stock.held = 0;
    }
    subscribers_sweep(&all, 1000000 * SECOND);
    ck_assert_ptr_null(all.by_key);
}

static struct subscriber enter(void)
{
    struct subscriber subscriber;
    subscriber_enter(&subscriber, SHARE, false);
    return subscriber;
}

/* One of this key, which has subscribed. */
static struct subscriber enter_of(uint32_t key, uint64_t now)
{
    struct subscriber subscriber;
    subscriber_enter(&subscriber, SHARE, true);
    ck_assert_int_eq(subscriber_own(&all, &subscriber, key, now), 0);
    return subscriber;
}

/* Sends as much as it may; returns how much that was. */
static size_t send_all(struct subscriber *subscriber, uint64_t now)
{
    size_t n, sum = 0;
    while ((n = subscriber_may_send(&all, subscriber, now, &bound)) > 0) {
        subscriber_sent(&all, subscriber, n, 0);
        sum += n;
    }
    return sum;
}

START_TEST(a_share_is_there_whatever_others_have)
{
    struct subscriber greedy[4] = {enter(), enter(), enter(), enter()}, last = enter();
    size_t sum = 0;
    for (int i = 0; i < 4; i++)
        sum += send_all(&greedy[i], SECOND);
    ck_assert_uint_eq(greedy[0].received, bounds.most);
    ck_assert_uint_eq(sum, 4 * SHARE + bounds.all.burst);
    ck_assert_uint_eq(send_all(&last, SECOND), SHARE);
    ck_assert_int_eq(bound, SUBSCRIBER_OF_ALL);
    ck_assert_uint_eq(send_all(&last, 3 * SECOND), 2 * bounds.all.a_second);
    for (int i = 0; i < 4; i++)
        subscriber_leave(&all, &greedy[i]);
    subscriber_leave(&all, &last);
    ck_assert_uint_eq(all.all.held, 0);
}
END_TEST

START_TEST(all_together_hold_no_more_than_they_may)
{
    struct subscriber each[8];
    size_t held = 0;
    for (int i = 0; i < 8; i++) {
        each[i] = enter();
        held += send_all(&each[i], (1 + 100 * (uint64_t)i) * SECOND) - SHARE;
    }
    ck_assert_uint_eq(held, bounds.all.most);
    subscriber_leave(&all, &each[0]);
    ck_assert_uint_eq(send_all(&each[7], 2000 * SECOND), bounds.most - SHARE);
}
END_TEST

START_TEST(a_key_has_no_more_by_more_connections)
{
    struct subscriber of_one[3] = {enter_of(1, SECOND), enter_of(1, SECOND), enter_of(1, SECOND)};
    size_t sum = 0;
    for (int i = 0; i < 3; i++)
        sum += send_all(&of_one[i], SECOND);
    ck_assert_uint_eq(sum, 3 * SHARE + bounds.key.burst);
    ck_assert_int_eq(bound, SUBSCRIBER_OF_KEY);
    struct subscriber other = enter_of(2, SECOND);
    ck_assert_uint_eq(send_all(&other, SECOND), SHARE + bounds.key.burst);
    ck_assert_int_eq(bound, SUBSCRIBER_OF_KEY);
    ck_assert_uint_eq(send_all(&of_one[1], 11 * SECOND), 10 * bounds.key.a_second);
}
END_TEST

START_TEST(a_key_holds_no_more_than_it_may)
{
    struct subscriber each[3];
    size_t sum = 0;
    for (uint64_t i = 0; i < 3; i++) {
        each[i] = enter_of(1, SECOND);
        sum += send_all(&each[i], (1 + 100 * i) * SECOND) - SHARE;
    }
    ck_assert_uint_eq(sum, bounds.key.most);
    ck_assert_uint_eq(send_all(&each[2], 1000 * SECOND), 0);
    ck_assert_int_eq(bound, SUBSCRIBER_OF_KEY);
    subscriber_leave(&all, &each[0]);
    ck_assert_uint_gt(send_all(&each[2], 1000 * SECOND), 0);
}
END_TEST

START_TEST(who_does_not_say_who_it_is_takes_nothing_of_anybody)
{
    struct subscriber unknown;
    subscriber_enter(&unknown, SHARE, true);
    ck_assert_uint_eq(send_all(&unknown, 5 * SECOND), 2 * SHARE);
    ck_assert_int_eq(bound, SUBSCRIBER_UNKNOWN);
    ck_assert_uint_eq(all.all.held, 0);
    subscriber_leave(&all, &unknown);
    ck_assert_uint_eq(all.all.held, 0);
}
END_TEST

START_TEST(however_many_do_not_say_who_they_are_they_are_waited_for_a_tenth_of_the_time)
{
    const uint64_t wait = SUBSCRIBER_WAIT_MS * CLOCK_NS_PER_MS,
                   every = SUBSCRIBER_WAIT_EVERY_MS * CLOCK_NS_PER_MS;
    unsigned waits = 0;
    ck_assert_uint_eq(SUBSCRIBER_WAIT_EVERY_MS, 10 * SUBSCRIBER_WAIT_MS);
    ck_assert(subscriber_is_awaited(&all, 5 * SECOND));
    ck_assert(subscriber_is_awaited(&all, 5 * SECOND + wait - 1));
    ck_assert(!subscriber_is_awaited(&all, 5 * SECOND + wait));
    ck_assert(!subscriber_is_awaited(&all, 5 * SECOND + every - 1));
    ck_assert(subscriber_is_awaited(&all, 5 * SECOND + every));
    for (unsigned ms = 0; ms < 10 * SUBSCRIBER_WAIT_EVERY_MS; ms++)
        waits += subscriber_is_awaited(&all, 20 * SECOND + ms * CLOCK_NS_PER_MS);
    ck_assert_uint_eq(waits, 10 * SUBSCRIBER_WAIT_MS);
}
END_TEST

START_TEST(what_came_before_the_key_was_known_is_its_own)
{
    struct subscriber subscriber;
    subscriber_enter(&subscriber, SHARE, true);
    send_all(&subscriber, SECOND);
    ck_assert_int_eq(subscriber_own(&all, &subscriber, 7, SECOND), 0);
    ck_assert_uint_eq(all.all.held, SHARE);
    ck_assert_uint_eq(send_all(&subscriber, SECOND), bounds.key.burst - SHARE);
    ck_assert_int_eq(subscriber_own(&all, &subscriber, 8, SECOND), 0); /* is said too late */
    ck_assert_uint_eq(send_all(&subscriber, SECOND), 0);
    subscriber_leave(&all, &subscriber);
    ck_assert_uint_eq(all.all.held, 0);
}
END_TEST

/* A connection sends all that it may before its key is known, and is told whose it is. */
static int enter_full(struct subscriber *subscriber, uint32_t key, uint64_t now)
{
    subscriber_enter(subscriber, SHARE, true);
    send_all(subscriber, now);
    return subscriber_own(&all, subscriber, key, now);
}

START_TEST(bytes_that_come_before_the_key_is_known_do_not_pass_its_bound)
{
    struct subscriber each[20];
    int n = 0, r = 0;
    for (; r == 0 && n < 20; n++)
        r = enter_full(&each[n], 7, (1 + 100 * (uint64_t)n) * SECOND);
    ck_assert_int_eq(r, -EDQUOT);
    ck_assert_int_eq(n, (int)(bounds.key.most / SHARE) + 1);
    ck_assert_uint_eq(all.all.held, bounds.key.most); /* nothing for the one that was refused */
    for (int i = 0; i < n; i++)
        subscriber_leave(&all, &each[i]);
    ck_assert_uint_eq(all.all.held, 0);
}
END_TEST

START_TEST(connections_that_come_and_go_before_their_key_is_known_pass_no_rate)
{
    enum { SECONDS = 60, A_SECOND = 50 };
    size_t taken = 0, refused = 0;
    for (uint64_t i = 0; i < SECONDS * A_SECOND; i++) {
        struct subscriber subscriber;
        int r = enter_full(&subscriber, 7, SECOND + i * SECOND / A_SECOND);
        taken += r == 0 ? SHARE : 0;
        refused += r == -EDQUOT;
        subscriber_leave(&all, &subscriber);
    }
    ck_assert_uint_le(taken, bounds.key.burst + SECONDS * bounds.key.a_second);
    ck_assert_uint_ge(taken, bounds.key.burst);
    ck_assert_uint_gt(refused, SECONDS * A_SECOND / 2);
    /* What was refused others can have, and whoever keeps to a share is not refused. */
    ck_assert_uint_eq(all.all.held, 0);
    struct subscriber other = enter_of(8, (1 + SECONDS) * SECOND),
                      small = enter_of(7, (1 + SECONDS) * SECOND);
    ck_assert_uint_eq(send_all(&other, (1 + SECONDS) * SECOND), SHARE + bounds.key.burst);
    ck_assert_uint_ge(send_all(&small, (1 + SECONDS) * SECOND), SHARE);
    subscriber_leave(&all, &other);
    subscriber_leave(&all, &small);
}
END_TEST

START_TEST(bytes_that_come_before_the_key_is_known_do_not_pass_the_bound_of_all)
{
    struct subscriber greedy[4] = {enter(), enter(), enter(), enter()}, last;
    for (int i = 0; i < 4; i++)
        send_all(&greedy[i], SECOND);
    ck_assert_uint_eq(all.all.held, bounds.all.burst);
    ck_assert_int_eq(enter_full(&last, 7, SECOND), -ENOSPC);
    ck_assert_uint_eq(all.all.held, bounds.all.burst);
    subscriber_leave(&all, &last);
    ck_assert_int_eq(enter_full(&last, 7, 2 * SECOND), 0);
    subscriber_leave(&all, &last);
    for (int i = 0; i < 4; i++)
        subscriber_leave(&all, &greedy[i]);
    ck_assert_uint_eq(all.all.held, 0);
}
END_TEST

START_TEST(subscriptions_are_counted_over_the_connections_of_a_key)
{
    struct subscriber first = enter_of(1, SECOND), second = enter_of(1, SECOND), other = enter_of(2, SECOND);
    struct subscriber keyless = enter();
    subscriber_count(&first, true);
    subscriber_count(&first, true);
    subscriber_count(&second, true);
    subscriber_count(&other, true);
    subscriber_count(&keyless, true);
    ck_assert_uint_eq(subscribers_of(&all, 1), 3);
    ck_assert_uint_eq(subscribers_of(&all, 2), 1);
    ck_assert_uint_eq(subscribers_of(&all, 3), 0);
    subscriber_count(&first, false);
    ck_assert_uint_eq(subscribers_of(&all, 1), 2);
    for (int i = 0; i < 3; i++) /* more than it has: those of the other connection stay */
        subscriber_count(&first, false);
    ck_assert_uint_eq(subscribers_of(&all, 1), 1);
    subscriber_count(&first, true);
    subscriber_leave(&all, &second);
    ck_assert_uint_eq(subscribers_of(&all, 1), 1);
}
END_TEST

START_TEST(nobody_gets_a_new_rate_by_leaving)
{
    struct subscriber subscriber = enter_of(1, SECOND);
    send_all(&subscriber, SECOND);
    subscribers_sweep(&all, 1000 * SECOND); /* it is there */
    ck_assert_ptr_nonnull(all.by_key);
    ck_assert_uint_gt(send_all(&subscriber, 1000 * SECOND), 2 * bounds.key.a_second);
    subscriber_leave(&all, &subscriber);
    subscribers_sweep(&all, 1001 * SECOND);
    ck_assert_ptr_nonnull(all.by_key);
    subscriber = enter_of(1, 1001 * SECOND);
    ck_assert_uint_lt(send_all(&subscriber, 1001 * SECOND), SHARE + bounds.key.burst / 2 + 100);
    subscriber_leave(&all, &subscriber);
    subscribers_sweep(&all, 2000 * SECOND);
    ck_assert_ptr_null(all.by_key);
}
END_TEST

/* The loop's time is of its turn's beginning; connections are read meanwhile. */
START_TEST(a_sweep_of_a_moment_ago_fills_nothing)
{
    struct subscriber subscriber = enter_of(1, 2 * SECOND);
    send_all(&subscriber, 2 * SECOND);
    subscriber_leave(&all, &subscriber);
    subscribers_sweep(&all, 2 * SECOND - 1);
    ck_assert_ptr_nonnull(all.by_key);
    subscriber = enter_of(1, 2 * SECOND);
    ck_assert_uint_eq(send_all(&subscriber, 2 * SECOND), SHARE);
    subscriber_leave(&all, &subscriber);
}
END_TEST

/* As heartbeats do. */
START_TEST(what_counts_for_nothing_is_given_back)
{
    struct subscriber subscriber = enter();
    subscriber_sent(&all, &subscriber, SHARE, 0);
    ck_assert_uint_eq(subscriber_may_send(&all, &subscriber, SECOND, &bound), bounds.most - SHARE);
    subscriber_sent(&all, &subscriber, 10, 0);
    subscriber_sent(&all, &subscriber, 2, 12);
    ck_assert_uint_eq(subscriber.received, SHARE);
    ck_assert_uint_eq(all.all.held, 0);
    ck_assert_uint_eq(all.all.spare, bounds.all.burst);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_share_is_there_whatever_others_have);
    tcase_add_test(tests, all_together_hold_no_more_than_they_may);
    tcase_add_test(tests, a_key_has_no_more_by_more_connections);
    tcase_add_test(tests, a_key_holds_no_more_than_it_may);
    tcase_add_test(tests, who_does_not_say_who_it_is_takes_nothing_of_anybody);
    tcase_add_test(tests, however_many_do_not_say_who_they_are_they_are_waited_for_a_tenth_of_the_time);
    tcase_add_test(tests, what_came_before_the_key_was_known_is_its_own);
    tcase_add_test(tests, bytes_that_come_before_the_key_is_known_do_not_pass_its_bound);
    tcase_add_test(tests, connections_that_come_and_go_before_their_key_is_known_pass_no_rate);
    tcase_add_test(tests, bytes_that_come_before_the_key_is_known_do_not_pass_the_bound_of_all);
    tcase_add_test(tests, subscriptions_are_counted_over_the_connections_of_a_key);
    tcase_add_test(tests, nobody_gets_a_new_rate_by_leaving);
    tcase_add_test(tests, a_sweep_of_a_moment_ago_fills_nothing);
    tcase_add_test(tests, what_counts_for_nothing_is_given_back);
}

int main(void)
{
    return run_tests("broker/subscriber", add);
}
