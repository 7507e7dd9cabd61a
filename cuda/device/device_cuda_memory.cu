/* SPDX-License-Identifier: MIT */
/* The memory of a device: allocations, arenas, and pinned memory of the host. A list remembers each of them,
 * so that device_close frees what is left and the counts know its size. */

#include "cuda/device/device_cuda_parts.h"

#include <stdlib.h>

static bool remember(struct allocation **list, void *memory, size_t bytes)
{
    struct allocation *entry = (struct allocation *)malloc(sizeof *entry);
    if (!entry)
        return false;
    *entry = allocation{memory, bytes, *list};
    *list = entry;
    return true;
}

/* The bytes of what is forgotten. */
static size_t forget(struct allocation **list, const void *memory)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->memory == memory) {
            struct allocation *entry = *list;
            size_t bytes = entry->bytes;
            *list = entry->next;
            free(entry);
            return bytes;
        }
    abort(); /* it is not ours */
}

void *device_alloc(struct device *device, size_t bytes)
{
    void *memory = NULL;
    if (device_cuda_check_memory(device, "cudaMalloc", cudaMalloc(&memory, bytes ? bytes : 1)) < 0)
        return NULL;
    if (!remember(&device->allocations, memory, bytes)) {
        cudaFree(memory);
        return NULL;
    }
    device->counts.allocations++;
    device->counts.bytes += device_taken(bytes);
    return memory;
}

void device_free(struct device *device, void *memory)
{
    if (!memory)
        return;
    device->counts.bytes -= device_taken(forget(&device->allocations, memory));
    device_cuda_check(device, "cudaFree", cudaFree(memory));
}

struct device_arena *device_arena_new(struct device *device, size_t bytes)
{
    struct device_arena *arena = (struct device_arena *)calloc(1, sizeof *arena);
    uint8_t *memory = arena ? (uint8_t *)device_alloc(device, bytes) : NULL;
    if (!memory) {
        free(arena);
        return NULL;
    }
    *arena = device_arena{memory, bytes, 0, device->arenas};
    device->arenas = arena;
    return arena;
}

void *device_arena_take(struct device_arena *arena, size_t bytes)
{
    const size_t taken = device_part(bytes);
    if (taken > arena->bytes - arena->used)
        return NULL;
    arena->used += taken;
    return arena->memory + arena->used - taken;
}

void *device_pinned(struct device *device, size_t bytes)
{
    void *memory = NULL;
    if (device_cuda_check_memory(device, "cudaHostAlloc",
                                 cudaHostAlloc(&memory, bytes ? bytes : 1, cudaHostAllocMapped)) < 0)
        return NULL;
    if (!remember(&device->pinned, memory, bytes)) {
        cudaFreeHost(memory);
        return NULL;
    }
    device->counts.allocations++;
    return memory;
}

void device_pinned_free(struct device *device, void *memory)
{
    if (!memory)
        return;
    forget(&device->pinned, memory);
    device_cuda_check(device, "cudaFreeHost", cudaFreeHost(memory));
}
