/* SPDX-License-Identifier: MIT */
/* The C library's own functions, counted. They are called from any thread. */

#include "tests/unit/live_memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__GLIBC__)

long live_memory(void)
{
    return 0;
}

#else

#include <stdlib.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static atomic_long live;

long live_memory(void)
{
    return atomic_load(&live);
}

static void *counted(void *memory)
{
    atomic_fetch_add(&live, memory != NULL);
    return memory;
}

void *malloc(size_t size)
{
    return counted(__libc_malloc(size));
}

void *calloc(size_t n, size_t size)
{
    return counted(__libc_calloc(n, size));
}

void *realloc(void *memory, size_t size)
{
    void *moved = __libc_realloc(memory, size);
    atomic_fetch_add(&live, (moved && !memory) - (memory && !moved && size == 0));
    return moved;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return counted(__libc_memalign(alignment, size));
}

int posix_memalign(void **ret_memory, size_t alignment, size_t size)
{
    void *memory = counted(__libc_memalign(alignment, size));
    if (!memory)
        return ENOMEM;
    *ret_memory = memory;
    return 0;
}

void free(void *memory)
{
    atomic_fetch_sub(&live, memory != NULL);
    __libc_free(memory);
}

#endif
