/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_CPU_QUOTA_H
#define COMMON_SYSTEM_CPU_QUOTA_H

/* How much CPU time this process's control groups may use, of either version. Beyond that all their
 * processes, including a broker and clients, stop until the next period begins. */

#include <stdint.h>

struct cpu_quota {
    uint32_t thousandths; /* of one processor; 0: no limit */
    char by[192];         /* "control group /pool" */
};

/* Reads /proc and /sys/fs/cgroup below `root`: "" is this machine. */
void cpu_quota_read(const char *root, struct cpu_quota *ret_quota);

#endif
