/* SPDX-License-Identifier: MIT */
/* Available memory, read from a folder that stands for a machine. */

#include "common/system/available.h"
#include "tests/unit/common/system/machine.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define GB (1ull << 30)

static void put_number(const char *name, uint64_t number)
{
    char text[32];
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)number);
    machine_put(name, text);
}

/* 64 GB, of which 48 are available. */
static void put_machine(const char *groups)
{
    machine_put("/proc/meminfo",
                "MemTotal:       67108864 kB\nMemFree:        1024 kB\nMemAvailable:   50331648 kB\n");
    if (groups)
        machine_put("/proc/self/cgroup", groups);
}

static struct available read_it(void)
{
    struct available available;
    ck_assert_int_eq(available_read(machine, &available), 0);
    return available;
}

START_TEST(without_groups_the_machine_counts)
{
    put_machine(NULL);
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 48 * GB);
    ck_assert_uint_eq(available.total, 64 * GB);
    ck_assert_str_eq(available.by, "the machine");
}
END_TEST

START_TEST(a_machine_that_does_not_say_is_an_error)
{
    struct available available = {.now = 7};
    ck_assert_int_eq(available_read(machine, &available), -ENOENT);
    ck_assert_uint_eq(available.now, 7);
}
END_TEST

START_TEST(the_lowest_limit_of_all_levels_counts)
{
    put_machine("0::/pool/worker/0\n");
    machine_put("/sys/fs/cgroup/pool/worker/0/memory.max", "max\n");
    put_number("/sys/fs/cgroup/pool/worker/memory.max", 8 * GB);
    put_number("/sys/fs/cgroup/pool/worker/memory.current", 3 * GB);
    put_number("/sys/fs/cgroup/pool/memory.max", 20 * GB);
    put_number("/sys/fs/cgroup/pool/memory.current", 16 * GB);
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 4 * GB); /* the pool has less left than the worker */
    ck_assert_uint_eq(available.total, 8 * GB);
    ck_assert_str_eq(available.by, "control group /pool/worker");
}
END_TEST

/* A group above its `high` is slowed down until it stands. */
START_TEST(a_limit_that_slows_down_counts_like_one_that_kills)
{
    put_machine("0::/pool/worker\n");
    machine_put("/sys/fs/cgroup/pool/worker/memory.max", "max\n");
    put_number("/sys/fs/cgroup/pool/worker/memory.high", 6 * GB);
    put_number("/sys/fs/cgroup/pool/worker/memory.current", 2 * GB);
    put_number("/sys/fs/cgroup/pool/memory.max", 20 * GB);
    machine_put("/sys/fs/cgroup/pool/memory.high", "max\n");
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 4 * GB);
    ck_assert_uint_eq(available.total, 6 * GB);
    ck_assert_str_eq(available.by, "control group /pool/worker");
}
END_TEST

START_TEST(idle_pages_of_files_count_as_free)
{
    put_machine("0::/pool\n");
    put_number("/sys/fs/cgroup/pool/memory.max", 8 * GB);
    put_number("/sys/fs/cgroup/pool/memory.current", 7 * GB);
    machine_put("/sys/fs/cgroup/pool/memory.stat",
                "anon 5\ninactive_file_other 1\ninactive_file 5368709120\nactive_file 9\n");
    ck_assert_uint_eq(read_it().now, 6 * GB);
}
END_TEST

START_TEST(version_1_counts_too)
{
    put_machine("12:cpu,cpuacct:/elsewhere\n5:hugetlb,memory:/slice/one\n0::/\n");
    put_number("/sys/fs/cgroup/memory/slice/one/memory.limit_in_bytes", 4 * GB);
    put_number("/sys/fs/cgroup/memory/slice/one/memory.usage_in_bytes", 3 * GB);
    machine_put("/sys/fs/cgroup/memory/slice/one/memory.stat",
                "inactive_file 1\ntotal_inactive_file 1073741824\n");
    put_number("/sys/fs/cgroup/memory/memory.limit_in_bytes", 9223372036854771712ull); /* no limit */
    put_number("/sys/fs/cgroup/memory/memory.usage_in_bytes", 40 * GB);
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 2 * GB);
    ck_assert_uint_eq(available.total, 4 * GB);
    ck_assert_str_eq(available.by, "control group /slice/one");
}
END_TEST

START_TEST(a_group_of_the_host_is_seen_as_the_root_of_the_mount)
{
    put_machine("0::/system.slice/docker-1234.scope\n");
    put_number("/sys/fs/cgroup/memory.max", 2 * GB);
    put_number("/sys/fs/cgroup/memory.current", 3 * GB); /* over it: nothing is left */
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 0);
    ck_assert_uint_eq(available.total, 2 * GB);
    ck_assert_str_eq(available.by, "control group /");
}
END_TEST

START_TEST(junk_limits_nothing)
{
    put_machine("junk\n\n:\n0:\n0::\n7:memoryx:/a\n0::/../../..\n");
    machine_put("/sys/fs/cgroup/memory.max", "-5 or so\n");
    machine_put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1\n");
    struct available available = read_it();
    ck_assert_uint_eq(available.now, 48 * GB);
    ck_assert_uint_eq(available.total, 64 * GB);
}
END_TEST

START_TEST(this_machine_has_some)
{
    struct available available;
    ck_assert_int_eq(available_read("", &available), 0);
    ck_assert_uint_gt(available.total, 1 << 20);
    ck_assert_uint_le(available.now, available.total);
}
END_TEST

/* A process of so many GB, of which some were touched. */
static void put_process(const char *pid, const char *name, const char *parent, unsigned mapped,
                        unsigned touched, const char *groups)
{
    char path[64], text[256];
    snprintf(path, sizeof path, "/proc/%s/comm", pid);
    machine_put(path, name);
    snprintf(path, sizeof path, "/proc/%s/status", pid);
    snprintf(text, sizeof text,
             "Name:\t%s\nPid:\t%s\nPPid:\t%s\nVmData:\t%8u kB\nRssAnon:\t%8u kB\nThreads:\t1\n", name,
             strcmp(pid, "self") ? pid : "100", parent, mapped << 20, touched << 20);
    machine_put(path, text);
    if (groups) {
        snprintf(path, sizeof path, "/proc/%s/cgroup", pid);
        machine_put(path, groups);
    }
}

START_TEST(what_others_of_the_program_were_promised_is_not_free)
{
    put_machine("0::/\n");
    put_process("self", "quern-worker\n", "7", 3, 1, NULL);
    put_process("100", "quern-worker\n", "7", 3, 1, "0::/\n"); /* the same process */
    put_process("101", "quern-worker\n", "7", 9, 4, "0::/\n");
    put_process("102", "quern-worker\n", "8", 2, 2, "0::/\n");
    put_process("103", "quern-worker\n", "8", 5, 6, "0::/\n"); /* read while it changed */
    put_process("104", "database\n", "7", 30, 1, "0::/\n");
    put_process("107", "quern-worker\n", "8", 65, 1, "0::/\n"); /* more than there is */
    machine_put("/proc/105/comm", "quern-worker\n");            /* ends just now */
    struct available available = read_it();
    ck_assert_uint_eq(available.promised, 5 * GB);
    ck_assert_uint_eq(available.now, 43 * GB);
    ck_assert_uint_eq(available.siblings, 9 * GB);
    ck_assert_uint_eq(available.total, 64 * GB);
    put_process("106", "quern-worker\n", "8", 60, 0, "0::/\n");
    ck_assert_uint_eq(read_it().now, 0);
}
END_TEST

START_TEST(a_group_counts_the_promises_within_it)
{
    put_machine("4:cpu,memory:/pool/worker\n0::/other\n");
    put_number("/sys/fs/cgroup/memory/pool/memory.limit_in_bytes", 20 * GB);
    put_number("/sys/fs/cgroup/memory/pool/memory.usage_in_bytes", 2 * GB);
    put_process("self", "quern-worker\n", "7", 1, 1, NULL);
    put_process("101", "quern-worker\n", "7", 4, 1, "4:cpu,memory:/pool/worker\n0::/other\n");
    put_process("102", "quern-worker\n", "8", 3, 1, "0::/other\n4:cpu,memory:/pool\n");
    put_process("103", "quern-worker\n", "8", 11, 1, "4:cpu,memory:/pools\n0::/other\n");
    put_process("104", "quern-worker\n", "8", 11, 1, "4:cpu,memory:/\n0::/pool\n");
    struct available available = read_it();
    ck_assert_uint_eq(available.promised, 25 * GB);
    ck_assert_uint_eq(available.now, 13 * GB); /* 20 − 2 − 3 − 2; the machine has 23 */
    ck_assert_uint_eq(available.siblings, 4 * GB);
    ck_assert_str_eq(available.by, "control group /pool");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, machine_set_up, machine_tear_down);
    tcase_add_test(tests, without_groups_the_machine_counts);
    tcase_add_test(tests, a_machine_that_does_not_say_is_an_error);
    tcase_add_test(tests, the_lowest_limit_of_all_levels_counts);
    tcase_add_test(tests, a_limit_that_slows_down_counts_like_one_that_kills);
    tcase_add_test(tests, idle_pages_of_files_count_as_free);
    tcase_add_test(tests, version_1_counts_too);
    tcase_add_test(tests, a_group_of_the_host_is_seen_as_the_root_of_the_mount);
    tcase_add_test(tests, junk_limits_nothing);
    tcase_add_test(tests, this_machine_has_some);
    tcase_add_test(tests, what_others_of_the_program_were_promised_is_not_free);
    tcase_add_test(tests, a_group_counts_the_promises_within_it);
}

int main(void)
{
    return run_tests("available", add);
}
