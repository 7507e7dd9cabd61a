/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_EMU_EMULATOR_KERNELS_H
#define TESTS_UNIT_CUDA_EMU_EMULATOR_KERNELS_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of one block of 64 threads that do what a GPU would punish, or not even that. */
int emulator_kernels_barrier_without_all(struct device_stream *stream);
int emulator_kernels_lanes_apart(struct device_stream *stream);
int emulator_kernels_sums_apart(struct device_stream *stream);
int emulator_kernels_misaligned(struct device_stream *stream, const void *memory);
/* Not through simt_load16. */
int emulator_kernels_misaligned_access(struct device_stream *stream, void *memory, bool stores);
int emulator_kernels_behind_shared(struct device_stream *stream);
int emulator_kernels_shared(struct device_stream *stream, size_t bytes);
int emulator_kernels_deep(struct device_stream *stream, uint32_t depth, uint32_t *out);
int emulator_kernels_grid(struct device_stream *stream, uint32_t y);
int emulator_kernels_hasty(struct device_stream *stream); /* never calls simt_start */

/* out[i] = values of the next thread, which are in shared memory: with a barrier between, or without. */
int emulator_kernels_neighbour(struct device_stream *stream, bool with_barrier, uint32_t *out);

/* *out = what was in shared memory before anybody wrote there. */
int emulator_kernels_fresh(struct device_stream *stream, uint32_t *out);

/* out[i] = the thread that was the i-th to run. */
int emulator_kernels_turns(struct device_stream *stream, uint32_t *count, uint32_t *out);
/* out[warp] = its place among 8 after a sum: which of them counted first. */
int emulator_kernels_warps_after_a_sum(struct device_stream *stream, uint32_t *count, uint32_t *out);

/* *out += memory[i] */
int emulator_kernels_read(struct device_stream *stream, const uint32_t *memory, uint32_t i, uint32_t *out);

#ifdef __cplusplus
}
#endif

#endif
