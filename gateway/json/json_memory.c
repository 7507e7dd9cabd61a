/* SPDX-License-Identifier: MIT */
/* See json_memory.h. A bump allocator: freeing does nothing, and the end of the region frees everything. What
 * jansson frees while a region is in use was allocated there, because trees do not outlive the pair of calls
 * that they are made in; anything else goes to free. */

#include "gateway/json/json_memory.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#define KEEP_BYTES (256u << 10) /* pages that the next tree finds ready */
#define ALIGNMENT  sizeof(uint64_t)

static _Thread_local struct json_memory *in_use;

static void *take(size_t bytes)
{
    struct json_memory *memory = in_use;
    if (!memory)
        return malloc(bytes);
    bytes = (bytes + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
    if (bytes > memory->size - memory->used) {
        memory->limited = true;
        return NULL;
    }
    void *taken = memory->base + memory->used;
    memory->used += bytes;
    return taken;
}

static void give(void *taken)
{
    const struct json_memory *memory = in_use;
    uintptr_t at = (uintptr_t)taken;
    bool inside = memory && at >= (uintptr_t)memory->base && at < (uintptr_t)memory->base + memory->size;
    if (!inside)
        free(taken);
}

static void install(void)
{
    json_set_alloc_funcs(take, give);
}

int json_memory_init(struct json_memory *memory, size_t size)
{
    static pthread_once_t installed = PTHREAD_ONCE_INIT;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED)
        return -ENOMEM;
    pthread_once(&installed, install);
    *memory = (struct json_memory){.base = base, .size = size};
    return 0;
}

void json_memory_deinit(struct json_memory *memory)
{
    if (memory->base)
        munmap(memory->base, memory->size);
    *memory = (struct json_memory){0};
}

void json_memory_begin(struct json_memory *memory)
{
    memory->used = 0;
    memory->limited = false;
    in_use = memory;
}

void json_memory_end(struct json_memory *memory)
{
    in_use = NULL;
    if (memory->used > KEEP_BYTES)
        madvise(memory->base + KEEP_BYTES, memory->size - KEEP_BYTES, MADV_DONTNEED);
    memory->used = 0;
}

bool json_memory_limited(void)
{
    return in_use && in_use->limited;
}
