/* SPDX-License-Identifier: MIT */
/* Workers of one model hold its weights once, whatever pool they are of and whoever of them is killed; and
 * what workers that have a device read of the file they read once. */

#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/system/topology.h"

static struct pool one, two;

static void tear_down(void)
{
    pool_forget(&one);
    pool_forget(&two);
}

/* The segment that a process has open: its inode, and its size. False when it has none or several. */
static bool segment_of(pid_t pid, struct stat *ret_st)
{
    char path[64], link[320], target[64];
    int n_segments = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", pid);
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t n = readlink(link, target, sizeof target - 1);
        target[n > 0 ? n : 0] = 0;
        if (strncmp(target, "/memfd:quern-weights", 20) == 0 && stat(link, ret_st) == 0)
            n_segments++;
    }
    if (dir)
        closedir(dir);
    return n_segments == 1;
}

/* The segment that all workers of the pool share. */
static struct stat shared(const struct pool *pool, int n)
{
    pid_t pids[4];
    struct stat first = {0}, st;
    ck_assert_int_eq(pool_worker_pids(pool, pids, n), n);
    for (int i = 0; i < n; i++) {
        ck_assert_msg(segment_of(pids[i], &st), "worker %d has no segment, or several: %s", i,
                      pool_log(pool));
        if (i == 0)
            first = st;
        ck_assert_uint_eq(st.st_ino, first.st_ino);
        ck_assert_int_gt(st.st_size, 1 << 16);
    }
    return first;
}

/* What a pool answers to a prompt: ids, as text. */
static void ask(const struct pool *pool, char *ret_ids, size_t size)
{
    ck_assert_int_eq(run_program(ret_ids, size, "quern", "run", "--connect", pool->rundir, "--raw", "--ids",
                                 "-n", "12", "--temp", "0", "a prompt", NULL),
                     0);
}

START_TEST(weights_are_there_once_for_all_workers_of_all_pools)
{
    char before[4096], after[4096];
    pid_t pids[2], now[2];
    pool_start(&one, tiny_model(), "--workers", "2", "--device", "cpu", NULL);
    struct stat segment = shared(&one, 2);
    ask(&one, before, sizeof before);
    pool_start(&two, tiny_model(), "--device", "cpu", NULL);
    ck_assert_uint_eq(shared(&two, 1).st_ino, segment.st_ino);

    /* Whoever packed is among those who are killed; the segment stays, and who comes next finds it. */
    ck_assert_int_eq(pool_worker_pids(&one, pids, 2), 2);
    kill(pids[0], SIGKILL);
    kill(pids[1], SIGKILL);
    for (int round = 0; round < 1200; round++) {
        struct stat st;
        if (pool_worker_pids(&one, now, 2) == 2 && now[0] != pids[0] && now[1] != pids[1] &&
            segment_of(now[0], &st) && st.st_ino == segment.st_ino && segment_of(now[1], &st) &&
            st.st_ino == segment.st_ino)
            break;
        usleep(50000);
    }
    ask(&one, after, sizeof after);
    ck_assert_str_eq(after, before);
    ck_assert_uint_eq(shared(&one, 2).st_ino, segment.st_ino);
    ask(&two, after, sizeof after);
    ck_assert_str_eq(after, before);
}
END_TEST

static ino_t inode_of(pid_t pid)
{
    struct stat st = {0};
    ck_assert_msg(segment_of(pid, &st), "a worker has no segment, or several: %s", pool_log(&one));
    return st.st_ino;
}

/* hwloc is told to see two nodes. Nothing can be bound to them, but what is shared is decided by them. */
START_TEST(workers_of_different_nodes_have_weights_of_their_own)
{
    char near[4096], anywhere[4096];
    pid_t pids[4];
    setenv("HWLOC_SYNTHETIC", "node:2(memory=68719476736) core:2 pu:1", 1);
    pool_start(&one, tiny_model(), "--workers", "4", "--device", "cpu", "--ctx", "256", NULL);
    ck_assert(pool_says(&one, "4 cores, 2 nodes (128 GiB); as configured for hwloc: 1 thread", 60));
    ck_assert_int_eq(pool_worker_pids(&one, pids, 4), 4);
    ck_assert_uint_eq(inode_of(pids[0]), inode_of(pids[2]));
    ck_assert_uint_eq(inode_of(pids[1]), inode_of(pids[3]));
    ck_assert_uint_ne(inode_of(pids[0]), inode_of(pids[1]));
    ask(&one, near, sizeof near);
    unsetenv("HWLOC_SYNTHETIC");
    pool_start(&two, tiny_model(), "--device", "cpu", "--ctx", "256", NULL);
    ask(&two, anywhere, sizeof anywhere);
    ck_assert_str_eq(near, anywhere);
}
END_TEST

START_TEST(nodes_that_are_too_small_for_a_copy_share_one)
{
    setenv("HWLOC_SYNTHETIC", "node:2(memory=100000) core:2 pu:1", 1);
    pool_start(&one, tiny_model(), "--workers", "2", "--device", "cpu", "--ctx", "256", NULL);
    unsetenv("HWLOC_SYNTHETIC");
    shared(&one, 2);
}
END_TEST

/* The main thread is the first of the team. */
START_TEST(workers_compute_on_cores_of_their_own)
{
    pid_t pids[2];
    cpu_set_t cores[2], both;
    struct topology *machine;
    ck_assert_int_eq(topology_new(NULL, &machine, NULL), 0);
    const bool enough = topology_threads(machine) >= 2 && topology_threads(machine) == machine->n_cores;
    topology_free(machine);
    pool_start(&one, tiny_model(), "--workers", "2", "--device", "cpu", "--ctx", "256", NULL);
    ck_assert_int_eq(pool_worker_pids(&one, pids, 2), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(sched_getaffinity(pids[i], sizeof *cores, &cores[i]), 0);
    CPU_AND(&both, &cores[0], &cores[1]);
    ck_assert_int_eq(enough ? 0 : CPU_COUNT(&cores[0]), CPU_COUNT(&both));
    ck_assert(!enough || (CPU_COUNT(&cores[0]) == 1 && CPU_COUNT(&cores[1]) == 1));
}
END_TEST

/* What a device's workers leave for one another is in the host's memory; a lone one leaves nothing. */
START_TEST(workers_with_a_device_read_the_file_once)
{
    pid_t pid;
    struct stat st;
    if (!EMULATED)
        return;
    setenv("QUERN_UNCHECKED", "1", 1); /* the gate looks at some rows of the file */
    pool_start(&one, tiny_model(), "--workers", "2", "--device", "emu", "--slots", "2", "--ctx", "256", NULL);
    shared(&one, 2);
    pool_start(&two, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "256", NULL);
    ck_assert_int_eq(pool_worker_pids(&two, &pid, 1), 1);
    ck_assert(!segment_of(pid, &st));
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, workers_with_a_device_read_the_file_once);
    tcase_add_test(tests, weights_are_there_once_for_all_workers_of_all_pools);
    tcase_add_test(tests, workers_of_different_nodes_have_weights_of_their_own);
    tcase_add_test(tests, nodes_that_are_too_small_for_a_copy_share_one);
    tcase_add_test(tests, workers_compute_on_cores_of_their_own);
}

int main(void)
{
    return run_tests("shared weights", add);
}
