/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_MEMORY_H
#define TESTS_INTEGRATION_SOAK_MEMORY_H

/* The memory of processes over a long run: private memory, and memory shared with their successors. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_LEAST_S     90 /* of a run that is judged: two thirds of it must cover all activity */
#define MEMORY_GROWTH(kib) ((kib) / 8 + 8192) /* KiB: growth beyond noise */

struct memory {
    const char *name;
    uint64_t began_ns, looked_ns;
    uint64_t *looks; /* KiB, one per second */
    uint32_t n, cap;
};

struct memory memory_begin(const char *name);

/* Records the memory of the largest of these processes, once a second; pids of 0 are skipped. */
void memory_look(struct memory *memory, const pid_t *pids, int n);

/* Prints the maximum of each tenth of the run. False if the run is long enough and its last third exceeds the
 * maximum before it by more than MEMORY_GROWTH of that. Frees the records. */
bool memory_levels_off(struct memory *memory);

#endif
