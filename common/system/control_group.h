/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_CONTROL_GROUP_H
#define COMMON_SYSTEM_CONTROL_GROUP_H

/* The control groups that this process is in, of either version. A group's limit applies to its members and
 * all groups below it together, so a caller that wants to know what is left must look at each of them. */

#include <stdbool.h>

struct control_group {
    const char *folder; /* where its files are, below `root` */
    const char *name;   /* "/pool/worker"; "/" is the mount's root */
    const char *line;   /* prefix of the /proc/PID/cgroup lines of processes in it or below it: "0::/pool" */
    bool is_version_2;
};

/* Calls visit(arg, group) for this process's group and each above it that `controller` ("cpu", "memory") may
 * limit. Reads /proc below `root` ("": this machine's); skips what it cannot read. */
void control_group_each(const char *root, const char *controller,
                        void (*visit)(void *arg, const struct control_group *group), void *arg);

#endif
