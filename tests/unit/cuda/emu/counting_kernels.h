/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_EMU_COUNTING_KERNELS_H
#define TESTS_UNIT_CUDA_EMU_COUNTING_KERNELS_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of one block of 32 threads whose accesses can be counted by hand.
 *
 * Thread i reads word i · stride of `memory`, and writes it to word i · stride of shared memory. */
int counting_kernels_words(struct device_stream *stream, uint32_t *memory, uint32_t stride);
/* The same with 16-byte elements. */
int counting_kernels_vectors(struct device_stream *stream, void *memory, uint32_t stride);
/* All threads read the same word of shared memory; then each odd thread writes its word of memory. */
int counting_kernels_broadcast(struct device_stream *stream, uint32_t *memory);
/* Thread i runs a loop i times and reads word 32 · round + i of shared memory in each round. */
int counting_kernels_loop(struct device_stream *stream, uint32_t *memory);
/* Reads memory before simt_start: out[i] = memory[i]. */
int counting_kernels_early(struct device_stream *stream, const uint32_t *memory, uint32_t *out);

#ifdef __cplusplus
}
#endif

#endif
