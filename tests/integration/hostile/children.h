/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_CHILDREN_H
#define TESTS_INTEGRATION_HOSTILE_CHILDREN_H

/* The processes of a hostile test, attackers and good clients: children that end with it, and memory that
 * they share with it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* As fork. */
pid_t fork_child(void);

/* Waits until they have ended by themselves. False when one had to be killed. */
bool end_children(const pid_t *pids, size_t n, uint64_t patience_s);

/* Zeroed memory that children see too. Ends the program where there is none. */
void *shared_memory(size_t size);

/* A line of /proc/PID/status in KiB; 0 where it is not there. */
long status_kib(pid_t pid, const char *key);

/* As many descriptors as this process may have, for it and its children: attackers need more than the usual
 * 1,024. */
void raise_files(void);

#endif
