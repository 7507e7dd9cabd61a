/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_MEMORY_H
#define TESTS_INTEGRATION_SOAK_MEMORY_H

/* How much memory a process has over a long run: what is its own, and what it shares with the next of its
 * kind. */

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_LEAST_S 180 /* of a run that is judged: ended requests are kept for 60 s */

struct memory {
    const char *name;
    uint64_t began_ns, looked_ns;
    uint64_t *looks; /* KiB, one a second */
    uint32_t n, cap;
};

struct memory memory_begin(const char *name);

/* Takes the memory of the process down, once a second; 0 is none, and passed over. */
void memory_look(struct memory *memory, pid_t pid);

/* Prints the most of each third of the run. False when a run that is long enough still grows in the last
 * third: by more than an eighth and 8 MiB. Frees what was taken down. */
bool memory_levels_off(struct memory *memory);

#endif
