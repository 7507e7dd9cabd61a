/* SPDX-License-Identifier: MIT */
/* What is due when, and in which order. */

#include "gateway/core/pulses.h"
#include "common/clock.h"
#include "tests/unit/run.h"

#define MS CLOCK_NS_PER_MS

static struct pulses pulses;
static struct pulse some[3];
static int called[3];

static void note(void *arg)
{
    called[(struct pulse *)arg - some]++;
}

static void ping_again(void *arg)
{
    note(arg);
    pulse_wait(&pulses, arg, PULSE_PING, ping_again, arg, 30 * MS);
}

static void begin(void)
{
    pulses = (struct pulses){.wait_ns = {[PULSE_HEAD] = 5 * MS, [PULSE_PING] = 20 * MS}};
    for (int i = 0; i < 3; i++) {
        some[i] = (struct pulse){0};
        called[i] = 0;
    }
}

START_TEST(each_is_called_once_when_it_is_due)
{
    ck_assert_int_eq(pulses_left_ms(&pulses, 0, -1), -1);
    ck_assert_int_eq(pulses_left_ms(&pulses, 0, 1000), 1000);
    pulse_wait(&pulses, &some[0], PULSE_PING, note, &some[0], 0);
    pulse_wait(&pulses, &some[1], PULSE_HEAD, note, &some[1], 3 * MS);
    ck_assert_int_eq(pulses_left_ms(&pulses, 3 * MS, -1), 5);
    ck_assert_int_eq(pulses_left_ms(&pulses, 3 * MS, 2), 2);
    ck_assert_int_eq(pulses_left_ms(&pulses, 7 * MS + 1, -1), 1);
    pulses_run(&pulses, 8 * MS);
    ck_assert(called[0] == 0 && called[1] == 1);
    ck_assert_int_eq(pulses_left_ms(&pulses, 8 * MS, -1), 12);
    pulses_run(&pulses, 100 * MS);
    pulses_run(&pulses, 200 * MS);
    ck_assert(called[0] == 1 && called[1] == 1);
    ck_assert_int_eq(pulses_left_ms(&pulses, 200 * MS, -1), -1);
}
END_TEST

START_TEST(who_waits_anew_waits_as_long_again)
{
    for (int i = 0; i < 3; i++)
        pulse_wait(&pulses, &some[i], PULSE_PING, note, &some[i], 0);
    pulse_wait(&pulses, &some[0], PULSE_PING, note, &some[0], 10 * MS);
    pulse_stop(&pulses, &some[1]);
    pulse_stop(&pulses, &some[1]);
    pulses_run(&pulses, 20 * MS);
    ck_assert(called[0] == 0 && called[1] == 0 && called[2] == 1);
    pulses_run(&pulses, 30 * MS);
    ck_assert(called[0] == 1 && called[1] == 0);
    pulse_wait(&pulses, &some[2], PULSE_PING, ping_again, &some[2], 0);
    pulses_run(&pulses, 40 * MS);
    ck_assert_int_eq(called[2], 2);
    pulses_run(&pulses, 49 * MS);
    ck_assert_int_eq(called[2], 2);
    pulse_stop(&pulses, &some[2]);
}
END_TEST

START_TEST(a_kind_that_is_off_is_never_due)
{
    pulses.wait_ns[PULSE_PING] = 0;
    pulse_wait(&pulses, &some[0], PULSE_HEAD, note, &some[0], 0);
    pulse_wait(&pulses, &some[0], PULSE_PING, note, &some[0], 0);
    pulses_run(&pulses, UINT64_MAX);
    ck_assert_int_eq(called[0], 0);
    ck_assert_int_eq(pulses_left_ms(&pulses, 0, -1), -1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, begin, NULL);
    tcase_add_test(tests, each_is_called_once_when_it_is_due);
    tcase_add_test(tests, who_waits_anew_waits_as_long_again);
    tcase_add_test(tests, a_kind_that_is_off_is_never_due);
}

int main(void)
{
    return run_tests("gateway/pulses", add);
}
