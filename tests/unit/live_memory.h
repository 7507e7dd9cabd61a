/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_LIVE_MEMORY_H
#define TESTS_UNIT_LIVE_MEMORY_H

/* The number of live allocations. A program linked with live_memory.c has counting allocation functions, and
 * each of its tests must free everything that it allocated (run.h). Under a sanitizer, which looks for leaks
 * itself, the number is always 0. */

long live_memory(void) __attribute__((weak));

#endif
