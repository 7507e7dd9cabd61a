/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_RUN_H
#define TESTS_UNIT_RUN_H

/* Runs one Check suite as a program: prints Check's closing line, exits 1 if a test failed or none ran.
 * Sanitizer builds set CK_FORK=no, so that leaks are seen where they are made. */

#include <check.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/live_memory.h"

/* Whether each test has its own process, which tests that must abort need. */
static inline bool tests_fork(void)
{
    const char *fork = getenv("CK_FORK");
    return !fork || *fork != 'n';
}

/* Whether everything is slow, as under a sanitizer: $QUERN_TEST_SCALE is then the share of its work that a
 * test must do. */
static inline bool test_is_scaled(void)
{
    return getenv("QUERN_TEST_SCALE") != NULL;
}

/* Whether only races are looked for, as under TSan: what differs in answers or sizes alone is left out. */
static inline bool test_is_for_races(void)
{
    return getenv("QUERN_RACES_ONLY") != NULL;
}

/* `n` rounds, or that share of them. */
static inline int test_rounds(int n)
{
    const char *scale = getenv("QUERN_TEST_SCALE");
    return scale ? (int)(n * atof(scale)) : n;
}

static inline int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int ran = srunner_ntests_run(runner);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return ran == 0 || failed != 0;
}

static long live_before;

static inline void note_live_memory(void)
{
    mark_point(); /* Check keeps the memory that it allocates for this */
    live_before = live_memory();
}

static inline void expect_no_more_live_memory(void)
{
    ck_assert_msg(live_memory() <= live_before, "%ld pieces of memory are left", live_memory() - live_before);
}

/* A suite of one case, the usual form of a module's tests; `add` lists them. */
static inline int run_tests(const char *name, void (*add)(TCase *))
{
    Suite *suite = suite_create(name);
    TCase *tests = tcase_create(name);
    tcase_set_timeout(tests, 60);
    if (live_memory)
        tcase_add_checked_fixture(tests, note_live_memory, expect_no_more_live_memory);
    add(tests);
    suite_add_tcase(suite, tests);
    return run_suite(suite);
}

#endif
