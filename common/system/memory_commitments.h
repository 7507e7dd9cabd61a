/* SPDX-License-Identifier: MIT */
#ifndef COMMON_SYSTEM_MEMORY_COMMITMENTS_H
#define COMMON_SYSTEM_MEMORY_COMMITMENTS_H

/* Memory that other processes of this program were promised: mapped for writing but not yet written. The
 * system counts it as available, although it is not. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory_commitment {
    uint64_t open;     /* bytes not written yet */
    uint64_t kept;     /* private bytes in memory */
    bool sibling;      /* it has the same parent as this process */
    char groups[1024]; /* its /proc/PID/cgroup, after a newline */
};

struct memory_commitments {
    struct memory_commitment *all; /* [n] */
    size_t n;
};

/* Reads /proc below `root` ("": this machine's). Processes that cannot be read are ignored; so are those that
 * have mapped more than `most` bytes, the machine's memory: that is address space reserved by sanitizers or
 * drivers. A process belongs to this program if it has the same name. 0 or -ENOMEM. */
int memory_commitments_read(const char *root, uint64_t most, struct memory_commitments *ret_commitments);
void memory_commitments_deinit(struct memory_commitments *commitments);

/* Open bytes of processes in a control group or below it: `line` is the beginning of the group's line in
 * /proc/PID/cgroup, "0::/pool". "": of all. */
uint64_t memory_commitments_open(const struct memory_commitments *commitments, const char *line);

/* Bytes of siblings, written or not. */
uint64_t memory_commitments_of_siblings(const struct memory_commitments *commitments);

#endif
