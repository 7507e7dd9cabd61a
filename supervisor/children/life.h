/* SPDX-License-Identifier: MIT */
#ifndef SUPERVISOR_CHILDREN_LIFE_H
#define SUPERVISOR_CHILDREN_LIFE_H

/* Whether a process does anything, as the kernel tells: of one that loads a model and has not counted any
 * progress yet, there is nothing else to judge by. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Time on processors before that counts as something: more than a loop takes that only waits. */
#define LIFE_MS 100

struct life { /* zeroed: nothing seen */
    uint64_t cpu_ms;
    uint64_t since; /* clock_ns of when it was last seen to do something */
};

/* True when since `most_ms` the process has neither used a processor, LIFE_MS or more, nor has a thread of it
 * been seen to wait for a disk or a device. Called now and then, a second apart. */
bool life_has_ceased(struct life *life, pid_t pid, uint32_t most_ms, uint64_t now);

#endif
