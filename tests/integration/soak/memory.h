/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_MEMORY_H
#define TESTS_INTEGRATION_SOAK_MEMORY_H

/* How much memory processes have over a long run: what is their own, and what they share with the next of
 * their kind. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_LEAST_S     90                 /* of a run that is judged: two thirds are to see all of it */
#define MEMORY_GROWTH(kib) ((kib) / 8 + 8192) /* KiB: what is growth, and no noise */

struct memory {
    const char *name;
    uint64_t began_ns, looked_ns;
    uint64_t *looks; /* KiB, one a second */
    uint32_t n, cap;
};

struct memory memory_begin(const char *name);

/* Takes the memory of the largest of these processes down, once a second; 0 is none, and passed over. */
void memory_look(struct memory *memory, const pid_t *pids, int n);

/* Prints the most of each tenth of the run. False when a run that is long enough still grows in its last
 * third, beyond the most that was before: by MEMORY_GROWTH of that. Frees what was taken down. */
bool memory_levels_off(struct memory *memory);

#endif
