/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_DEVICE_CUDA_H
#define CUDA_DEVICE_DEVICE_CUDA_H

/* Functions of the device for launches, for nvcc only. */

#include <cuda_runtime.h>

#include "cuda/device/device.h"

cudaStream_t device_cuda_stream(struct device_stream *stream);

/* Whether the next launch may begin while the previous one, which is also Quern's, still runs. */
bool device_cuda_overlaps(const struct device_stream *stream);

/* before_launch loads the kernel, and raises its limit of dynamic shared memory if it needs more than 48 KiB;
 * after_launch counts it, and notes a fault with the kernel's name. 0 or the fault. */
int device_cuda_before_launch(struct device_stream *stream, const char *name, const void *kernel,
                              size_t shared_bytes);
int device_cuda_after_launch(struct device_stream *stream, const char *name, dim3 grid, dim3 block);

#endif
