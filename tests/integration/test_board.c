/* SPDX-License-Identifier: MIT */
/* Whose memory is whose: what of the board each process of a real pool can reach. */

#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_S 60

enum { N = 3, MOST = 16 };

static struct pool pool;

static void tear_down(void)
{
    pool_forget(&pool);
}

/* Segments that a process has mapped. */
struct view {
    int n_written, n_read;
    unsigned long long written[MOST], read[MOST]; /* inodes */
};

/* Those of this name. */
static struct view mapped(pid_t pid, const char *segment)
{
    struct view view = {0};
    char path[64], line[512], name[64], access[8];
    unsigned long long inode;
    snprintf(name, sizeof name, "/memfd:%s (deleted)", segment);
    snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_msg(file != NULL, "%s: %s", path, pool_log(&pool));
    while (fgets(line, sizeof line, file)) {
        if (!strstr(line, name) || sscanf(line, "%*s %7s %*s %*s %llu", access, &inode) != 2)
            continue;
        ck_assert_msg(view.n_written < MOST && view.n_read < MOST, "process %d has too many", (int)pid);
        if (access[1] == 'w')
            view.written[view.n_written++] = inode;
        else
            view.read[view.n_read++] = inode;
    }
    fclose(file);
    return view;
}

/* How many descriptors a process has of segments whose names begin so: each could be mapped again. */
static int n_open(pid_t pid, const char *segments)
{
    char path[64], link[320], target[64], name[64];
    int n = 0;
    snprintf(name, sizeof name, "/memfd:%s", segments);
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *listing = opendir(path);
    ck_assert_msg(listing != NULL, "%s: %s", path, pool_log(&pool));
    struct dirent *entry;
    while ((entry = readdir(listing))) {
        snprintf(link, sizeof link, "%s/%s", path, entry->d_name);
        ssize_t len = readlink(link, target, sizeof target - 1);
        target[len > 0 ? len : 0] = 0;
        n += strncmp(target, name, strlen(name)) == 0;
    }
    closedir(listing);
    return n;
}

static bool has(const unsigned long long *inodes, int n, unsigned long long inode)
{
    for (int i = 0; i < n; i++)
        if (inodes[i] == inode)
            return true;
    return false;
}

/* The slots of the workers by their places, after it was seen that they are all that each of them can reach,
 * that no two are the same, and that the broker can write to none of them. */
static void check_views(const pid_t pids[N], unsigned long long ret_slots[N])
{
    for (int i = 0; i < N; i++) {
        struct view worker = mapped(pids[i], "quern-board"), vault = mapped(pids[i], "quern-vault");
        ck_assert_int_eq(worker.n_written, 1);
        ck_assert_int_eq(worker.n_read + vault.n_written + vault.n_read, 0);
        ck_assert_int_eq(n_open(pids[i], "quern-board") + n_open(pids[i], "quern-vault"), 0);
        ck_assert_msg(!has(ret_slots, i, worker.written[0]), "worker-%d has the slot of another", i);
        ret_slots[i] = worker.written[0];
    }
    struct view broker = mapped(pool_broker_pid(&pool), "quern-board");
    ck_assert_int_eq(n_open(pool_broker_pid(&pool), "quern-board"), 0);
    ck_assert_int_eq(broker.n_written, 1); /* where it counts its turns */
    ck_assert(!has(ret_slots, N, broker.written[0]));
    ck_assert_int_eq(broker.n_read, N);
    for (int i = 0; i < N; i++)
        ck_assert(has(broker.read, N, ret_slots[i]));
}

/* Until `count` workers have said that they are ready, in all. */
static void await_ready(int count)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (int said = 0; said < count;) {
        said = 0;
        for (const char *at = pool_log(&pool); (at = strstr(at, " info ready: ")); at++)
            said++;
        ck_assert_msg(clock_ns() < until, "%d of %d were ready: %s", said, count, pool_log(&pool));
        usleep(20000);
    }
}

START_TEST(a_worker_can_reach_its_own_slot_alone_and_so_can_the_next_one_there)
{
    unsigned long long slots[N], again[N];
    pid_t pids[N], now[N], broker;
    pool_start(&pool, tiny_model(), "--workers", "3", "--device", "cpu", NULL);
    await_ready(N);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, N), N);
    check_views(pids, slots);

    broker = pool_broker_pid(&pool);
    ck_assert_int_eq(kill(pids[1], SIGKILL), 0);
    await_ready(N + 1);
    ck_assert_int_eq(kill(broker, SIGKILL), 0);
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (pool_broker_pid(&pool) == broker || pool_broker_pid(&pool) == 0 ||
           mapped(pool_broker_pid(&pool), "quern-board").n_read < N ||
           n_open(pool_broker_pid(&pool), "quern-board") > 0) {
        ck_assert_msg(clock_ns() < until, "%s", pool_log(&pool));
        usleep(20000);
    }
    ck_assert_int_eq(pool_worker_pids(&pool, now, N), N);
    ck_assert_int_ne(now[1], pids[1]);
    check_views(now, again);
    ck_assert_mem_eq(again, slots, sizeof slots);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, PATIENCE_S), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, a_worker_can_reach_its_own_slot_alone_and_so_can_the_next_one_there);
}

int main(void)
{
    return run_tests("the board of a pool", add);
}
