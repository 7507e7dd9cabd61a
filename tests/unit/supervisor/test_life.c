/* SPDX-License-Identifier: MIT */
/* Processes that do something and processes that do not, on a clock of our own. */

#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "supervisor/children/life.h"

#define S CLOCK_NS_PER_S

static pid_t child;

static void begin(bool spins)
{
    child = fork_child();
    if (child > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "a) R 1 (b"); /* a name is anything */
    for (volatile unsigned long n = 0;; n++)
        if (!spins)
            pause();
}

static void end(void)
{
    if (child > 0) {
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
    }
    child = 0;
}

START_TEST(one_that_waits_has_ceased_after_the_time)
{
    struct life life = {0};
    begin(false);
    ck_assert(!life_has_ceased(&life, child, 10000, 100 * S));
    ck_assert(!life_has_ceased(&life, child, 10000, 110 * S - 1));
    ck_assert(life_has_ceased(&life, child, 10000, 110 * S));
    ck_assert_int_eq(kill(child, SIGSTOP), 0);
    ck_assert(life_has_ceased(&life, child, 10000, 111 * S));
}
END_TEST

START_TEST(one_that_computes_has_not)
{
    const uint64_t until = clock_ns() + 60 * S;
    struct life life = {0};
    begin(true);
    ck_assert(!life_has_ceased(&life, child, 10000, 100 * S));
    while (life_has_ceased(&life, child, 10000, 200 * S)) { /* until it had a tenth of a second */
        ck_assert_uint_lt(clock_ns(), until);
        usleep(10000);
    }
    ck_assert_uint_eq(life.since, 200 * S);
    ck_assert_uint_ge(life.cpu_ms, LIFE_MS);
}
END_TEST

START_TEST(one_that_cannot_be_looked_at_has_not)
{
    struct life life = {0};
    begin(false);
    end();
    for (uint64_t s = 1; s < 100; s++)
        ck_assert(!life_has_ceased(&life, 0x7fffffff, 10000, s * S));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, end);
    tcase_add_test(tests, one_that_waits_has_ceased_after_the_time);
    tcase_add_test(tests, one_that_computes_has_not);
    tcase_add_test(tests, one_that_cannot_be_looked_at_has_not);
}

int main(void)
{
    return run_tests("supervisor: life", add);
}
