/* SPDX-License-Identifier: MIT */
#ifndef TESTS_INTEGRATION_SOAK_PROMISE_H
#define TESTS_INTEGRATION_SOAK_PROMISE_H

/* What must not happen in a soak, told by whichever of its processes sees it, and counted over all of them.
 */

#include <stddef.h>

/* Memory that this process shares with those that it forks; zeroed. Ends the program where there is none. */
void *shared_memory(size_t size);

/* Before anything is forked. */
void memory_commitments_init(void);

/* Says so on stderr. */
void promise_broken(const char *format, ...) __attribute__((format(printf, 1, 2)));

long promises_broken(void);

#endif
