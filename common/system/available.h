/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_AVAILABLE_H
#define COMMON_SYSTEM_AVAILABLE_H

/* How much memory is available to this process: the machine's, within the limits of its control group and all
 * groups above it, of either version. */

#include <stdint.h>

struct available {
    /* Bytes that could be taken without swapping or exceeding a limit, not counting memory that other
     * processes of this program were promised. */
    uint64_t now;
    uint64_t total;    /* bytes if nothing else ran: the machine's, or the lowest limit */
    uint64_t promised; /* bytes that others were promised and have not touched; not part of `now` */
    uint64_t siblings; /* bytes that processes with the same program and parent have, touched or promised */
    char by[192];      /* the source of the total: "the machine", "control group /pool" */
};

/* Reads /proc and /sys/fs/cgroup below `root`: "" is this machine. 0; -ENOENT if they lack it. */
int available_read(const char *root, struct available *ret_available);

#endif
