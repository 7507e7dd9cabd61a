/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_MEMORY_COMMITMENTS_H
#define COMMON_SYSTEM_MEMORY_COMMITMENTS_H

/* Memory that other processes of this program were promised: mapped to be written, and not written yet. The
 * system counts it as available, and it is not. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_commitment {
    uint64_t open;     /* bytes that were not written yet */
    uint64_t kept;     /* bytes of its own in memory */
    bool sibling;      /* it has the same parent as this process */
    char groups[1024]; /* its /proc/PID/cgroup, behind a newline */
};

struct memory_commitments {
    struct memory_commitment *all; /* [n] */
    size_t n;
};

/* Reads /proc below `root`, "" being this machine's. What cannot be read counts as nothing; so does a process
 * that has mapped more than `most` bytes, the machine's memory: that is address space, as sanitizers and
 * drivers reserve it. A process is of this program when it has the same name. 0 or -ENOMEM. */
int memory_commitments_read(const char *root, uint64_t most, struct memory_commitments *ret_commitments);
void memory_commitments_deinit(struct memory_commitments *commitments);

/* Bytes that are open, of those in a control group or below it: `line` is the beginning of its line in
 * /proc/PID/cgroup, "0::/pool". "": of all. */
uint64_t memory_commitments_open(const struct memory_commitments *commitments, const char *line);

/* Bytes that siblings have, written or not. */
uint64_t memory_commitments_of_siblings(const struct memory_commitments *commitments);

#endif
