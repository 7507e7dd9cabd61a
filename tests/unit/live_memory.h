/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_LIVE_MEMORY_H
#define TESTS_UNIT_LIVE_MEMORY_H

/* How many pieces of memory the program holds. One that is linked with live_memory.c has allocation functions
 * that count, and each of its tests has to give back all that it took (run.h). Under a sanitizer, which looks
 * for leaks itself, it is always 0. */

long live_memory(void) __attribute__((weak));

#endif
