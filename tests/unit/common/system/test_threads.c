/* SPDX-License-Identifier: MIT */
#include "common/system/threads.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/topology.h"

#define N_PIECES 1000

struct job {
    struct threads *threads;
    int plain[8];             /* one entry a member, written without atomics */
    int taken[N_PIECES];      /* how often a piece was claimed */
    _Atomic int torn;         /* a member saw another's entry from before the barrier */
    _Atomic uint32_t visited; /* bit i: member i ran */
};

static void count_rounds(void *arg, uint32_t index)
{
    struct job *job = arg;
    uint32_t n = threads_count(job->threads);
    atomic_fetch_or(&job->visited, 1u << index);
    for (int round = 1; round <= 200; round++) {
        job->plain[index] = round;
        threads_barrier(job->threads);
        for (uint32_t i = 0; i < n; i++)
            if (job->plain[i] != round)
                atomic_fetch_add(&job->torn, 1);
        threads_barrier(job->threads);
    }
}

START_TEST(what_is_written_before_a_barrier_is_seen_after_it)
{
    struct job job = {0};
    uint32_t n = (uint32_t)_i;
    ck_assert_int_eq(threads_new(n, NULL, 0, &job.threads, NULL), 0);
    ck_assert_uint_eq(threads_count(job.threads), n);
    threads_run(job.threads, count_rounds, &job);
    ck_assert_int_eq(job.torn, 0);
    ck_assert_uint_eq(job.visited, (1u << n) - 1);
    threads_free(job.threads);
}
END_TEST

static void claim_pieces(void *arg, uint32_t index)
{
    struct job *job = arg;
    for (int round = 0; round < 3; round++) {
        uint32_t first, end;
        while (threads_claim(job->threads, N_PIECES, 7, &first, &end))
            for (uint32_t i = first; i < end; i++)
                job->taken[i]++;
        threads_barrier(job->threads);
    }
}

START_TEST(each_piece_is_claimed_once_between_barriers)
{
    struct job job = {0};
    ck_assert_int_eq(threads_new((uint32_t)_i, NULL, 0, &job.threads, NULL), 0);
    for (int run = 0; run < 50; run++)
        threads_run(job.threads, claim_pieces, &job);
    for (int i = 0; i < N_PIECES; i++)
        ck_assert_int_eq(job.taken[i], 150);
    threads_free(job.threads);
}
END_TEST

static void claim_runs(void *arg, uint32_t index)
{
    struct job *job = arg;
    uint32_t first, end, longest = UINT32_MAX;
    while (threads_claim_run(job->threads, N_PIECES, 2, 5, &first, &end)) {
        ck_assert_uint_eq(first % 2, 0);
        ck_assert(end == N_PIECES || (end - first) % 2 == 0);
        ck_assert_uint_ge(end - first, 1);
        ck_assert_uint_le(end - first, 10);
        ck_assert_uint_le(end - first, longest);
        longest = end - first;
        if (first == 0) /* N_PIECES are many */
            ck_assert_uint_eq(end, 10);
        if (end == N_PIECES)
            ck_assert_uint_le(end - first, 2);
        for (uint32_t i = first; i < end; i++)
            job->taken[i]++;
    }
}

/* As long as much is left they are of the most pieces, and at the end of the fewest. */
START_TEST(runs_that_are_claimed_get_shorter_towards_the_end)
{
    struct job job = {0};
    ck_assert_int_eq(threads_new((uint32_t)_i, NULL, 0, &job.threads, NULL), 0);
    for (int run = 0; run < 50; run++)
        threads_run(job.threads, claim_runs, &job);
    for (int i = 0; i < N_PIECES; i++)
        ck_assert_int_eq(job.taken[i], 50);
    threads_free(job.threads);
}
END_TEST

static void claim_own(void *arg, uint32_t index)
{
    struct job *job = arg;
    const uint32_t numbers[] = {N_PIECES, 3, N_PIECES - 1, 0, 41}; /* few of them are divided one by one */
    for (int round = 0; round < 5; round++) {
        uint32_t first, end;
        while (threads_claim_own(job->threads, index, numbers[round], &first, &end))
            for (uint32_t i = first; i < end; i++)
                job->taken[i]++;
        threads_barrier(job->threads);
    }
}

START_TEST(each_piece_of_all_shares_is_claimed_once_between_barriers)
{
    struct job job = {0};
    ck_assert_int_eq(threads_new((uint32_t)_i, NULL, 0, &job.threads, NULL), 0);
    for (int run = 0; run < 50; run++) {
        threads_run(job.threads, claim_own, &job);
        threads_run_alone(job.threads, claim_own, &job);
    }
    for (int i = 0; i < N_PIECES; i++)
        ck_assert_int_eq(job.taken[i], i < 3 ? 400 : i < 41 ? 300 : i < N_PIECES - 1 ? 200 : 100);
    threads_free(job.threads);
}
END_TEST

/* Each claims once, and waits until all have; then the first takes all that is left. */
static void claim_own_first(void *arg, uint32_t index)
{
    struct job *job = arg;
    const uint32_t n = threads_count(job->threads);
    uint32_t first, end;
    ck_assert(threads_claim_own(job->threads, index, N_PIECES, &first, &end));
    job->plain[index] = (int)first;
    for (uint32_t i = first; i < end; i++)
        job->taken[i]++;
    atomic_fetch_or(&job->visited, 1u << index);
    while (atomic_load(&job->visited) != (1u << n) - 1)
        sched_yield();
    while (index == 0 && threads_claim_own(job->threads, index, N_PIECES, &first, &end))
        for (uint32_t i = first; i < end; i++)
            job->taken[i]++;
}

START_TEST(a_member_claims_of_its_own_share_first_and_then_what_others_left)
{
    struct job job = {0};
    const int n = _i;
    ck_assert_int_eq(threads_new((uint32_t)n, NULL, 0, &job.threads, NULL), 0);
    for (int run = 1; run <= 20; run++) {
        atomic_store(&job.visited, 0);
        threads_run(job.threads, claim_own_first, &job);
        for (int i = 0; i < n; i++)
            ck_assert_int_eq(job.plain[i], N_PIECES * i / n);
        for (int i = 0; i < N_PIECES; i++)
            ck_assert_int_eq(job.taken[i], run);
    }
    threads_free(job.threads);
}
END_TEST

START_TEST(a_run_alone_is_the_callers_and_the_next_is_everyones)
{
    struct job job = {0};
    ck_assert_int_eq(threads_new(3, NULL, 0, &job.threads, NULL), 0);
    for (int round = 1; round <= 20; round++) {
        job.visited = 0;
        threads_run_alone(job.threads, claim_pieces, &job);
        for (int i = 0; i < N_PIECES; i++)
            ck_assert_int_eq(job.taken[i], 3 * round);
        threads_run(job.threads, count_rounds, &job);
        ck_assert_uint_eq(job.visited, 7);
    }
    ck_assert_int_eq(job.torn, 0);
    threads_free(job.threads);
}
END_TEST

START_TEST(a_team_wakes_after_a_pause)
{
    struct job job = {0};
    ck_assert_int_eq(threads_new(3, NULL, 0, &job.threads, NULL), 0);
    for (int run = 0; run < 3; run++) {
        usleep(20000); /* long enough that all members sleep */
        threads_run(job.threads, count_rounds, &job);
    }
    ck_assert_int_eq(job.torn, 0);
    threads_free(job.threads);
}
END_TEST

START_TEST(the_caller_gets_its_cores_back)
{
    cpu_set_t before, during, after;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    int cpu = 0;
    while (!CPU_ISSET((size_t)cpu, &before))
        cpu++;
    struct threads *threads;
    ck_assert_int_eq(threads_new(0, &cpu, 1, &threads, NULL), 0);
    ck_assert_uint_eq(threads_count(threads), 1);
    ck_assert_int_eq(sched_getaffinity(0, sizeof during, &during), 0);
    ck_assert_int_eq(CPU_COUNT(&during), 1);
    ck_assert(CPU_ISSET((size_t)cpu, &during));
    threads_free(threads);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

static void look_where(void *arg, uint32_t index)
{
    cpu_set_t *sets = arg;
    sched_getaffinity(0, sizeof *sets, &sets[index]);
}

START_TEST(each_member_has_one_core_and_they_take_turns)
{
    enum { MEMBERS = 5 };
    cpu_set_t all, sets[MEMBERS];
    int cpus[2];
    uint32_t n = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE && n < 2; cpu++)
        if (CPU_ISSET((size_t)cpu, &all))
            cpus[n++] = cpu;
    struct threads *threads;
    ck_assert_int_eq(threads_new(MEMBERS, cpus, n, &threads, NULL), 0);
    threads_run(threads, look_where, sets);
    threads_free(threads);
    for (uint32_t i = 0; i < MEMBERS; i++) {
        ck_assert_int_eq(CPU_COUNT(&sets[i]), 1);
        ck_assert(CPU_ISSET((size_t)cpus[i % n], &sets[i]));
    }
}
END_TEST

START_TEST(members_share_a_list_that_is_longer_than_the_team)
{
    cpu_set_t all, set;
    int cpus[CPU_SETSIZE];
    uint32_t n = 0;
    struct threads *threads;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET((size_t)cpu, &all))
            cpus[n++] = cpu;
    if (n < 2)
        return;
    ck_assert_int_eq(threads_new(n - 1, cpus, n, &threads, NULL), 0);
    cpu_set_t *sets = calloc(n, sizeof *sets);
    threads_run(threads, look_where, sets);
    for (uint32_t i = 0; i < n - 1; i++)
        ck_assert(CPU_EQUAL(&sets[i], &all));
    threads_free(threads);
    ck_assert_int_eq(threads_new(n - 1, (int[]){cpus[1]}, 1, &threads, NULL), 0);
    ck_assert_int_eq(sched_getaffinity(0, sizeof set, &set), 0);
    ck_assert_int_eq(CPU_COUNT(&set), 1);
    threads_free(threads);
    free(sets);
}
END_TEST

START_TEST(who_names_no_number_gets_as_many_as_run_here)
{
    struct threads *threads;
    ck_assert_int_eq(threads_new(0, NULL, 0, &threads, NULL), 0);
    ck_assert_uint_eq(threads_count(threads), topology_threads_here());
    threads_free(threads);
}
END_TEST

START_TEST(a_core_that_is_not_there_is_named)
{
    struct threads *threads = NULL;
    struct error err = {0};
    int cpu = CPU_SETSIZE + 5;
    ck_assert_int_eq(threads_new(1, &cpu, 1, &threads, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "1029"));
    cpu = CPU_SETSIZE - 1; /* a number that could be one */
    if (sysconf(_SC_NPROCESSORS_CONF) < CPU_SETSIZE) {
        ck_assert_int_eq(threads_new(1, &cpu, 1, &threads, &err), -EINVAL);
        ck_assert_ptr_nonnull(strstr(err.text, "core 1023"));
    }
    ck_assert_int_eq(threads_new(1025, NULL, 0, &threads, &err), -EINVAL);
    ck_assert_str_eq(err.text, "threads 1025 is out of range 1..1024");
    cpu = -1;
    ck_assert_int_eq(threads_new(1, &cpu, 1, &threads, &err), -EINVAL);
    ck_assert_str_eq(err.text, "no core -1");
    ck_assert_ptr_null(threads);
}
END_TEST

int __real_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);
int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set);

static int refused_at; /* the call of sched_setaffinity that is; 0: none */

int __wrap_sched_setaffinity(pid_t pid, size_t size, const cpu_set_t *set)
{
    if (refused_at == 0 || --refused_at > 0)
        return __real_sched_setaffinity(pid, size, set);
    errno = EINVAL;
    return -1;
}

/* Folders of /proc/self/task: one for each thread, besides itself and the one above. */
static nlink_t count_tasks(void)
{
    struct stat tasks;
    ck_assert_int_eq(stat("/proc/self/task", &tasks), 0);
    return tasks.st_nlink;
}

/* Each of the calls: for the caller, for each member before it starts, and for the caller again. */
START_TEST(a_core_that_goes_away_meanwhile_leaves_no_member_behind)
{
    cpu_set_t before, after;
    struct threads *threads = NULL;
    struct error err = {0};
    int cpu = 0;
    ck_assert_int_eq(sched_getaffinity(0, sizeof before, &before), 0);
    while (!CPU_ISSET((size_t)cpu, &before))
        cpu++;
    const nlink_t were = count_tasks();
    refused_at = _i;
    ck_assert_int_eq(threads_new(3, &cpu, 1, &threads, &err), -EINVAL);
    ck_assert_int_eq(refused_at, 0);
    ck_assert_ptr_null(threads);
    ck_assert_ptr_nonnull(strstr(err.text, "Invalid argument"));
    for (int i = 0; i < 10000 && count_tasks() > were; i++)
        usleep(1000); /* one that was joined has its folder for a moment */
    ck_assert_uint_eq(count_tasks(), were);
    ck_assert_int_eq(sched_getaffinity(0, sizeof after, &after), 0);
    ck_assert(CPU_EQUAL(&before, &after));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, what_is_written_before_a_barrier_is_seen_after_it, 1, 5);
    tcase_add_loop_test(tests, each_piece_is_claimed_once_between_barriers, 1, 5);
    tcase_add_loop_test(tests, runs_that_are_claimed_get_shorter_towards_the_end, 1, 5);
    tcase_add_loop_test(tests, each_piece_of_all_shares_is_claimed_once_between_barriers, 1, 5);
    tcase_add_loop_test(tests, a_member_claims_of_its_own_share_first_and_then_what_others_left, 2, 6);
    tcase_add_test(tests, a_run_alone_is_the_callers_and_the_next_is_everyones);
    tcase_add_test(tests, a_team_wakes_after_a_pause);
    tcase_add_test(tests, the_caller_gets_its_cores_back);
    tcase_add_test(tests, each_member_has_one_core_and_they_take_turns);
    tcase_add_test(tests, members_share_a_list_that_is_longer_than_the_team);
    tcase_add_test(tests, who_names_no_number_gets_as_many_as_run_here);
    tcase_add_test(tests, a_core_that_is_not_there_is_named);
    tcase_add_loop_test(tests, a_core_that_goes_away_meanwhile_leaves_no_member_behind, 1, 6);
}

int main(void)
{
    return run_tests("threads", add);
}
