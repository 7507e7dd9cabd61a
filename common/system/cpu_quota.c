/* SPDX-License-Identifier: MIT */
/* The lowest quota of all levels (control_group.h): microseconds in a period of microseconds. Version 2 says
 * both in one file, with "max" for none, version 1 in two, with −1. What cannot be read limits nothing. */

#include "common/system/cpu_quota.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/system/control_group.h"

/* The numbers at the beginning of a file; how many there are. */
static int read_numbers(const struct control_group *group, const char *name, long long ret_numbers[2])
{
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", group->folder, name);
    FILE *file = fopen(path, "re");
    int n = file ? fscanf(file, "%lld %lld", &ret_numbers[0], &ret_numbers[1]) : 0;
    if (file)
        fclose(file);
    return n < 0 ? 0 : n;
}

/* False: there is no limit. */
static bool read_quota(const struct control_group *group, long long *ret_quota, long long *ret_period)
{
    long long numbers[2], period[2];
    bool known = group->is_version_2 ? read_numbers(group, "cpu.max", numbers) == 2
                                     : read_numbers(group, "cpu.cfs_quota_us", numbers) >= 1 &&
                                           read_numbers(group, "cpu.cfs_period_us", period) >= 1;
    *ret_quota = known ? numbers[0] : 0;
    *ret_period = !known ? 0 : group->is_version_2 ? numbers[1] : period[0];
    return *ret_quota > 0 && *ret_period > 0 && *ret_quota < LLONG_MAX / 1000;
}

static void apply_group(void *arg, const struct control_group *group)
{
    struct cpu_quota *quota = arg;
    long long us, period;
    if (!read_quota(group, &us, &period))
        return;
    long long thousandths = us * 1000 / period;
    if (thousandths >= UINT32_MAX || (quota->thousandths > 0 && thousandths >= quota->thousandths))
        return;
    quota->thousandths = thousandths > 0 ? (uint32_t)thousandths : 1;
    snprintf(quota->by, sizeof quota->by, "control group %.160s", group->name);
}

void cpu_quota_read(const char *root, struct cpu_quota *ret_quota)
{
    *ret_quota = (struct cpu_quota){0};
    control_group_each(root, "cpu", apply_group, ret_quota);
}
