/* SPDX-License-Identifier: MIT */
/* When free memory is returned: soon after a burst, seldom where it gains nothing, never while little is
 * held. */

#include "gateway/core/reclaim.h"

#include <stdlib.h>

#include "common/clock.h"
#include "tests/unit/run.h"

#define MIB ((size_t)1 << 20)
#define S   CLOCK_NS_PER_S

START_TEST(little_is_left_alone)
{
    struct reclaim reclaim = {0};
    ck_assert(!reclaim_is_due(&reclaim, 0, S)); /* the system does not tell */
    for (uint64_t i = 1; i < 100; i++)
        ck_assert(!reclaim_is_due(&reclaim, (10 + i % 16) * MIB, i * S));
}
END_TEST

START_TEST(a_burst_goes_within_seconds)
{
    struct reclaim reclaim = {0};
    reclaim_is_due(&reclaim, 10 * MIB, 0);
    /* All is in use for 20 seconds, and then free: each time that it is asked gives an eighth back, or more.
     */
    size_t held = 200 * MIB;
    unsigned asked = 0;
    uint64_t now = S;
    for (; now < 21 * S; now += S)
        asked += reclaim_is_due(&reclaim, held, now);
    ck_assert_uint_ge(asked, 5);
    ck_assert_uint_le(asked, 8);
    uint64_t freed = now;
    while (held > 26 * MIB && now < freed + 60 * S) {
        if (reclaim_is_due(&reclaim, held, now))
            held = held / 2;
        now += S;
    }
    ck_assert_uint_le(held, 26 * MIB);
    ck_assert_uint_le(now - freed, 8 * S);
    ck_assert(!reclaim_is_due(&reclaim, held, now));
    ck_assert(reclaim_is_due(&reclaim, 200 * MIB, now + S)); /* the next burst is not kept waiting */
}
END_TEST

START_TEST(what_stays_is_asked_for_seldom)
{
    struct reclaim reclaim = {0};
    unsigned asked = 0;
    reclaim_is_due(&reclaim, 10 * MIB, 0);
    for (uint64_t ms = 0; ms < 1000000; ms += 100)
        asked += reclaim_is_due(&reclaim, 100 * MIB + ms, ms * CLOCK_NS_PER_MS);
    ck_assert_uint_ge(asked, 240);
    ck_assert_uint_le(asked, 260);
}
END_TEST

START_TEST(what_is_held_is_seen)
{
    const size_t before = reclaim_held(), large = 64 * MIB;
    ck_assert_uint_gt(before, 0);
    volatile char *block = malloc(large);
    ck_assert(block != NULL);
    for (size_t at = 0; at < large; at += 4096)
        block[at] = 1;
    ck_assert_uint_ge(reclaim_held(), before + large / 2);
    free((void *)block);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, little_is_left_alone);
    tcase_add_test(tests, a_burst_goes_within_seconds);
    tcase_add_test(tests, what_stays_is_asked_for_seldom);
    tcase_add_test(tests, what_is_held_is_seen);
}

int main(void)
{
    return run_tests("gateway/reclaim", add);
}
