/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_PROMISE_H
#define TESTS_INTEGRATION_SOAK_PROMISE_H

/* Broken promises in a soak, reported by any of its processes and counted over all of them. */

#include <stddef.h>

/* Zeroed memory shared with forked processes. Ends the program if there is none. */
void *shared_memory(size_t size);

/* Call it before the first fork. */
void memory_commitments_init(void);

/* Counts a broken promise and prints it on stderr. */
void promise_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

long promises_broken(void);

#endif
