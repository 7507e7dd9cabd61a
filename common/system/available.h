/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_AVAILABLE_H
#define COMMON_SYSTEM_AVAILABLE_H

/* How much memory this process may count on: what the machine has, within the limits of its control group
 * and of all those above it, of either version. */

#include <stdint.h>

struct available {
    /* Bytes that could be taken without swapping, without passing a limit, and without what other processes
     * of this program were promised. */
    uint64_t now;
    uint64_t total;    /* bytes there would be if nothing else ran: the machine's, or the lowest limit */
    uint64_t promised; /* bytes that others were promised and have not touched; `now` is without them */
    uint64_t siblings; /* bytes that processes of this program and parent have, touched or promised */
    char by[192];      /* what sets the total: "the machine", "control group /pool" */
};

/* Reads /proc and /sys/fs/cgroup below `root`: "" is this machine. 0; -ENOENT when it does not say. */
int available_read(const char *root, struct available *ret_available);

#endif
