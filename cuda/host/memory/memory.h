/* SPDX-License-Identifier: MIT */
#ifndef CUDA_HOST_MEMORY_MEMORY_H
#define CUDA_HOST_MEMORY_MEMORY_H

/* Memory that the backend allocates when it opens. The same code runs twice: with device NULL it only counts,
 * so a model that does not fit is rejected, with all numbers, before anything is allocated; with the device
 * it allocates. device_close frees everything. */

#include <stdbool.h>
#include <stddef.h>

#include "cuda/device/device.h"

struct device_memory {
    struct device *device; /* NULL: count only */
    size_t bytes;          /* of device memory, allocated or counted */
    bool lacking;          /* an allocation failed; check it once, after all of them */
    size_t pinned;         /* bytes of pinned memory, allocated */
};

/* Device memory with undefined contents. NULL when counting, or out of memory. */
void *device_memory_take(struct device_memory *memory, size_t bytes);

/* The same, zeroed in the order of the stream. */
void *device_memory_take_zeroed(struct device_memory *memory, size_t bytes);

/* Zeroed pinned host memory for copies. None is needed when counting. */
void *device_memory_take_pinned(struct device_memory *memory, size_t bytes);

#endif
