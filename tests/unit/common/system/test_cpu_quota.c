/* SPDX-License-Identifier: MIT */
/* Quotas, read from a folder that stands for a machine. */

#include "common/system/cpu_quota.h"
#include "tests/unit/common/system/machine.h"
#include "tests/unit/run.h"

#include <string.h>
#include <sys/stat.h>

static struct cpu_quota read_quota(void)
{
    struct cpu_quota quota;
    cpu_quota_read(machine, &quota);
    return quota;
}

START_TEST(the_lowest_quota_of_all_levels_counts)
{
    machine_put("/proc/self/cgroup", "0::/pool/worker\n");
    machine_put("/sys/fs/cgroup/pool/worker/cpu.max", "max 100000\n");
    ck_assert_uint_eq(read_quota().thousandths, 0);
    machine_put("/sys/fs/cgroup/pool/cpu.max", "150000 100000\n");
    struct cpu_quota quota = read_quota();
    ck_assert_uint_eq(quota.thousandths, 1500);
    ck_assert_str_eq(quota.by, "control group /pool");
    machine_put("/sys/fs/cgroup/cpu.max", "600000 200000\n");
    ck_assert_uint_eq(read_quota().thousandths, 1500);
    machine_put("/sys/fs/cgroup/pool/worker/cpu.max", "5000 10000\n");
    quota = read_quota();
    ck_assert_uint_eq(quota.thousandths, 500);
    ck_assert_str_eq(quota.by, "control group /pool/worker");
}
END_TEST

START_TEST(a_container_sees_its_own_group_as_the_root)
{
    machine_put("/proc/self/cgroup", "0::/of/the/host\n");
    machine_put("/sys/fs/cgroup/cpu.max", "250000 100000\n");
    struct cpu_quota quota = read_quota();
    ck_assert_uint_eq(quota.thousandths, 2500);
    ck_assert_str_eq(quota.by, "control group /");
}
END_TEST

START_TEST(version_1_says_it_in_two_files)
{
    machine_put("/proc/self/cgroup", "3:cpuset:/other\n2:cpuacct,cpu:/slice\n1:memory:/m\n");
    machine_put("/sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "-1\n");
    machine_put("/sys/fs/cgroup/cpu/slice/cpu.cfs_period_us", "100000\n");
    ck_assert_uint_eq(read_quota().thousandths, 0);
    machine_put("/sys/fs/cgroup/cpu/slice/cpu.cfs_quota_us", "75000\n");
    ck_assert_uint_eq(read_quota().thousandths, 750);
    ck_assert_str_eq(read_quota().by, "control group /slice");
}
END_TEST

START_TEST(what_cannot_be_read_limits_nothing)
{
    static const char *const wrong[] = {"",           "garbage\n", "100000\n",  "0 100000\n",
                                        "100000 0\n", "-5 100000", "5 -100000", "9223372036854775807 1\n"};
    ck_assert_uint_eq(read_quota().thousandths, 0);
    machine_put("/proc/self/cgroup", "0::/\nno line\n::\n7\n");
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        machine_put("/sys/fs/cgroup/cpu.max", wrong[i]);
        ck_assert_msg(read_quota().thousandths == 0, "\"%s\"", wrong[i]);
    }
    machine_put("/sys/fs/cgroup/cpu.max", "1 1000000\n"); /* little, but a limit */
    ck_assert_uint_eq(read_quota().thousandths, 1);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, machine_set_up, machine_tear_down);
    tcase_add_test(tests, the_lowest_quota_of_all_levels_counts);
    tcase_add_test(tests, a_container_sees_its_own_group_as_the_root);
    tcase_add_test(tests, version_1_says_it_in_two_files);
    tcase_add_test(tests, what_cannot_be_read_limits_nothing);
}

int main(void)
{
    return run_tests("common/cpu_quota", add);
}
