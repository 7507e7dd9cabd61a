/* SPDX-License-Identifier: MIT */
/* See promise.h. */

#include "tests/integration/soak/promise.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static long *count;

void *shared_memory(size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("shared memory");
        exit(EXIT_FAILURE);
    }
    return memory;
}

void memory_commitments_init(void)
{
    count = shared_memory(sizeof *count);
}

void promise_broken(const char *format, ...)
{
    char text[512];
    va_list args;
    __atomic_add_fetch(count, 1, __ATOMIC_RELAXED);
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "broken promise: %s\n", text);
}

long promises_broken(void)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}
