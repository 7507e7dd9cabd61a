/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_CPU_QUOTA_H
#define COMMON_SYSTEM_CPU_QUOTA_H

/* How much of the processors' time this process's control groups may take, of either version. Beyond it all
 * their processes stand still until the next period begins, broker and clients in them too. */

#include <stdint.h>

struct cpu_quota {
    uint32_t thousandths; /* of one processor; 0: no limit */
    char by[192];         /* "control group /pool" */
};

/* Reads /proc and /sys/fs/cgroup below `root`: "" is this machine. */
void cpu_quota_read(const char *root, struct cpu_quota *ret_quota);

#endif
