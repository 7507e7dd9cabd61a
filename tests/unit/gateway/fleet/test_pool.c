/* SPDX-License-Identifier: MIT */
/* Whether a pool that was away has the workers, and so the caches, that it had before. */

#include "gateway/fleet/pool.h"
#include "tests/unit/run.h"

static struct pool pool;

static void set_up(void)
{
    pool = (struct pool){0};
}

/* A status with two workers; pid 0: its process is not known. How many renewals there were so far. */
static uint32_t after(uint32_t pid, uint64_t steps, uint32_t other_pid, uint64_t other_steps)
{
    const struct quern_worker workers[] = {{.pid = pid, .steps = steps},
                                           {.pid = other_pid, .steps = other_steps}};
    const struct quern_status status = {.workers = workers, .n_workers = 2};
    pool_note_workers(&pool, &status);
    return pool.n_renewals;
}

START_TEST(a_pool_with_a_worker_of_before_is_the_same)
{
    ck_assert_uint_eq(after(10, 0, 11, 0), 0);
    ck_assert_uint_eq(after(10, 5, 11, 0), 0);
    ck_assert_uint_eq(after(12, 0, 11, 0), 0);
    ck_assert_uint_eq(after(12, 3, 13, 1), 0);
}
END_TEST

START_TEST(a_pool_with_other_workers_is_another)
{
    ck_assert_uint_eq(after(10, 5, 11, 6), 0);
    ck_assert_uint_eq(after(12, 0, 13, 0), 1);
    ck_assert_uint_eq(after(12, 1, 13, 0), 1);
}
END_TEST

START_TEST(a_container_that_begins_anew_with_the_same_pids_is_another)
{
    ck_assert_uint_eq(after(10, 5, 11, 6), 0);
    ck_assert_uint_eq(after(10, 1, 11, 0), 1);
}
END_TEST

START_TEST(a_status_without_processes_says_nothing)
{
    ck_assert_uint_eq(after(10, 5, 11, 6), 0);
    ck_assert_uint_eq(after(0, 0, 0, 0), 0);
    ck_assert_uint_eq(after(10, 5, 0, 0), 0);
    ck_assert_uint_eq(after(0, 0, 0, 0), 0);
    ck_assert_uint_eq(after(11, 9, 0, 0), 1);
}
END_TEST

START_TEST(more_workers_than_are_remembered)
{
    static struct quern_worker workers[3 * POOL_WORKERS];
    for (uint32_t i = 0; i < 3 * POOL_WORKERS; i++)
        workers[i].pid = i + 1;
    const struct quern_status status = {.workers = workers, .n_workers = 3 * POOL_WORKERS};
    pool_note_workers(&pool, &status);
    pool_note_workers(&pool, &status);
    ck_assert_uint_eq(pool.n_workers, POOL_WORKERS);
    ck_assert_uint_eq(pool.n_renewals, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, NULL);
    tcase_add_test(tests, a_pool_with_a_worker_of_before_is_the_same);
    tcase_add_test(tests, a_pool_with_other_workers_is_another);
    tcase_add_test(tests, a_container_that_begins_anew_with_the_same_pids_is_another);
    tcase_add_test(tests, a_status_without_processes_says_nothing);
    tcase_add_test(tests, more_workers_than_are_remembered);
}

int main(void)
{
    return run_tests("gateway/fleet/pool", add);
}
