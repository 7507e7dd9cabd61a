/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_PTX_PRIMITIVES_H
#define TESTS_UNIT_CUDA_PTX_PRIMITIVES_H

/* What on_emulator.c queues on the emulated device. */

#include "cuda/kernels/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Queues the kernel of primitives.cu of that name, one block of n_threads. -ENOENT: there is none. */
int launch_primitive(struct device_stream *stream, const char *name, uint32_t n_threads, const void *in,
                     void *out);

/* A launch of multiply_thin<1>, with its arguments as they lie in memory. */
struct thin_launch {
    uint32_t grid[2], n_threads, shared_bytes;
    struct {
        uint8_t bytes[512];
        size_t n;
    } parameters[3];
};

/* Queues the product by the thin tile, eight rows of x at most. */
int launch_thin(struct device_stream *stream, const struct device_product *product,
                const struct device_activations *x, uint32_t n_rows, struct thin_launch *ret_launch);

#ifdef __cplusplus
}
#endif

#endif
