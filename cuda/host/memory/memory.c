/* SPDX-License-Identifier: MIT */
/* Counting and taking. What is counted is rounded up as the arena does, so that it fits; what is asked for is
 * not, so that an emulated device sees who reads or writes behind it. */

#include "cuda/host/memory/memory.h"

#include <string.h>

static size_t arena_bytes(size_t in_arena)
{
    return in_arena > 0 ? device_taken(in_arena) : 0;
}

struct device_memory device_memory_open(struct device *device, const struct device_memory *counted)
{
    struct device_memory memory = {.device = device};
    if (counted->in_arena > 0)
        memory.arena = device_arena_new(device, counted->in_arena);
    memory.lacking = counted->in_arena > 0 && !memory.arena;
    return memory;
}

static void count(struct device_memory *memory, bool separate, size_t bytes)
{
    if (separate) {
        memory->bytes += device_taken(bytes);
        return;
    }
    memory->bytes -= arena_bytes(memory->in_arena);
    memory->in_arena += device_part(bytes);
    memory->bytes += arena_bytes(memory->in_arena);
}

void *device_memory_take(struct device_memory *memory, size_t bytes)
{
    const bool separate = memory->separate || (memory->device && !memory->arena);
    void *taken = NULL;
    count(memory, separate, bytes);
    if (memory->device && !memory->lacking)
        taken = separate ? device_alloc(memory->device, bytes) : device_arena_take(memory->arena, bytes);
    memory->lacking |= memory->device && !taken;
    return taken;
}

void *device_memory_take_zeroed(struct device_memory *memory, size_t bytes)
{
    void *taken = device_memory_take(memory, bytes);
    if (taken && device_fill(device_stream(memory->device), taken, 0, bytes) < 0)
        memory->lacking = true; /* the device has failed, and says so itself */
    return taken;
}

void *device_memory_take_pinned(struct device_memory *memory, size_t bytes)
{
    if (!memory->device)
        return NULL;
    memory->pinned += bytes;
    void *taken = device_pinned(memory->device, bytes ? bytes : 1);
    memory->unpinned |= !memory->lacking && !taken;
    memory->lacking |= taken == NULL;
    if (taken)
        memset(taken, 0, bytes);
    return taken;
}
