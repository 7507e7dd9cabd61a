/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_MEMORY_H
#define CUDA_HOST_MEMORY_MEMORY_H

/* Memory that the backend allocates when it opens. The same code runs twice: with device NULL it only counts,
 * so a model that does not fit is rejected, with all numbers, before anything is allocated; opened with the
 * counted sizes, it takes buffers from a single allocation. A driver rounds each allocation up to 2 MiB,
 * which would add up over the tensors of a model. device_close frees everything. */

#include <stdbool.h>
#include <stddef.h>

#include "cuda/device/device.h"

struct device_memory {
    struct device *device; /* NULL: count only */
    struct device_arena *arena;
    size_t bytes;    /* of device memory, allocated or counted, after rounding */
    size_t in_arena; /* of buffers in the arena, allocated or counted */
    bool separate;   /* the next buffers are separate allocations, as all are without an arena */
    bool lacking;    /* an allocation failed; check it once, after all of them */
    bool unpinned;   /* the failed one was pinned memory */
    size_t pinned;   /* bytes of pinned memory, allocated */
};

/* Allocates an arena for the counted buffers. If that fails, `lacking` is set, and there are no buffers. */
struct device_memory device_memory_open(struct device *device, const struct device_memory *counted);

/* Device memory with undefined contents. NULL when counting, or out of memory. */
void *device_memory_take(struct device_memory *memory, size_t bytes);

/* The same, zeroed in the order of the stream. */
void *device_memory_take_zeroed(struct device_memory *memory, size_t bytes);

/* Zeroed pinned host memory for copies. NULL when counting, or out of memory. */
void *device_memory_take_pinned(struct device_memory *memory, size_t bytes);

#endif
