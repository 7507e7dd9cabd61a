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
/* The same with 16 bytes for words. */
int counting_kernels_vectors(struct device_stream *stream, void *memory, uint32_t stride);
/* All read the same word of shared memory; then odd threads write to memory, each its word. */
int counting_kernels_broadcast(struct device_stream *stream, uint32_t *memory);
/* Thread i goes i times round a loop, and reads word 32 · round + i of shared memory in each. */
int counting_kernels_loop(struct device_stream *stream, uint32_t *memory);
/* Reads memory before simt_start: out[i] = memory[i]. */
int counting_kernels_early(struct device_stream *stream, const uint32_t *memory, uint32_t *out);

#ifdef __cplusplus
}
#endif

#endif
