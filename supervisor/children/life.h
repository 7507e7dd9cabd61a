/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_LIFE_H
#define SUPERVISOR_CHILDREN_LIFE_H

/* Finds out from the kernel whether a process is active: the only evidence while it loads a model and has not
 * counted progress yet. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* CPU time that counts as activity: more than an idle loop takes. */
#define LIFE_MS 100

struct life { /* zeroed: nothing seen */
    uint64_t cpu_ms;
    uint64_t since; /* clock_ns when it was last seen active */
};

/* True if for `most_ms` the process has neither used LIFE_MS of CPU time nor had a thread waiting for a disk
 * or a device. Call it about once a second. */
bool life_has_ceased(struct life *life, pid_t pid, uint32_t most_ms, uint64_t now);

#endif
