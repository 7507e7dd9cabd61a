/* SPDX-License-Identifier: MIT */
/* Counting and taking. What is counted is rounded up as allocators do, so that it fits; what is asked for is
 * not, so that an emulated device sees who reads or writes behind it. */

#include "cuda/host/memory/memory.h"

#include <string.h>

void *device_memory_take(struct device_memory *memory, size_t bytes)
{
    memory->bytes += device_taken(bytes);
    if (!memory->device)
        return NULL;
    void *taken = device_alloc(memory->device, bytes);
    memory->lacking |= taken == NULL;
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
    memory->lacking |= taken == NULL;
    if (taken)
        memset(taken, 0, bytes);
    return taken;
}
