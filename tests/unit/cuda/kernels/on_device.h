/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_KERNELS_ON_DEVICE_H
#define TESTS_UNIT_CUDA_KERNELS_ON_DEVICE_H

/* The emulated device for tests of kernels: memory filled from the host and read back. */

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "cuda/device/device.h"

static struct device *device;
static struct device_stream *queue;

static inline void open_device(void)
{
    struct error err = {0};
    ck_assert_msg(device_open(0, &device, &err) == 0, "%s", err.text);
    queue = device_stream(device);
}

static inline void close_device(void)
{
    device = device_close(device);
}

/* Device memory with `bytes` bytes copied from `from`; NULL: uninitialized. */
static inline void *on_device(const void *from, size_t bytes)
{
    void *memory = device_alloc(device, bytes);
    ck_assert_ptr_nonnull(memory);
    if (from) {
        void *pinned = device_pinned(device, bytes);
        memcpy(pinned, from, bytes);
        ck_assert_int_eq(device_copy(queue, memory, pinned, bytes), 0);
        ck_assert_int_eq(device_synchronize(queue), 0);
        device_pinned_free(device, pinned);
    }
    return memory;
}

/* The contents of device memory after all queued work, in pinned memory owned by the device. */
static inline void *from_device(const void *memory, size_t bytes)
{
    void *pinned = device_pinned(device, bytes);
    ck_assert_ptr_nonnull(pinned);
    ck_assert_int_eq(device_copy(queue, pinned, memory, bytes), 0);
    ck_assert_int_eq(device_synchronize(queue), 0);
    return pinned;
}

#endif
