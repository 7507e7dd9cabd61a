/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_HOSTILE_CHILDREN_H
#define TESTS_INTEGRATION_HOSTILE_CHILDREN_H

/* The processes of a hostile test, attackers and good clients: children that end with the test, and memory
 * that they share with it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Like fork. */
pid_t fork_child(void);

/* Waits until the children have ended by themselves. False if one had to be killed. */
bool end_children(const pid_t *pids, size_t n, uint64_t patience_s);

/* Zeroed memory shared with children. Ends the program if there is none. */
void *shared_memory(size_t size);

/* The value of a line of /proc/PID/status in KiB; 0: it is missing. */
long status_kib(pid_t pid, const char *key);

/* Raises the limit of descriptors as far as possible, for this process and its children: attackers need more
 * than the usual 1,024. */
void raise_files(void);

#endif
