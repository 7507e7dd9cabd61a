/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_DEVICE_H
#define TESTS_UNIT_CUDA_DEVICE_H

/* A device for a test, and numbers for it. All memory is pinned: kernels and tests read and write it in
 * place, on emulated and real devices. */

#include "cuda/device/device.h"
#include "tests/unit/run.h"

#include <string.h>

static struct device *device;
static struct device_stream *stream;

static inline void open_device(void)
{
    struct error err = {0};
    ck_assert_msg(device_open(0, &device, &err) == 0, "%s", err.text);
    stream = device_stream(device);
}

static inline void close_device(void)
{
    device = device_close(device);
}

/* `n` zeroed elements of `size` bytes, neither 0; freed when the device is closed. */
static inline void *take(size_t n, size_t size)
{
    void *memory = device_pinned(device, n * size);
    ck_assert_ptr_nonnull(memory);
    return memset(memory, 0, n * size);
}

static inline void run_queue(void)
{
    ck_assert_int_eq(device_synchronize(stream), 0);
}

/* xorshift32: the same numbers on every machine. */
static inline uint32_t next_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* In [−1, 1). */
static inline float next_real(uint32_t *state)
{
    return (float)(next_random(state) >> 8) * 0x1p-23f - 1;
}

#endif
