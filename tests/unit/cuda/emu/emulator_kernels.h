/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_EMU_EMULATOR_KERNELS_H
#define TESTS_UNIT_CUDA_EMU_EMULATOR_KERNELS_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Kernels of one block of 64 threads with mistakes that a GPU would report, or not even notice. */
int emulator_kernels_barrier_without_all(struct device_stream *stream);
int emulator_kernels_lanes_apart(struct device_stream *stream);
int emulator_kernels_sums_apart(struct device_stream *stream);
int emulator_kernels_misaligned(struct device_stream *stream, const void *memory);
/* The same without simt_load16. */
int emulator_kernels_misaligned_access(struct device_stream *stream, void *memory, bool stores);
int emulator_kernels_behind_shared(struct device_stream *stream);
int emulator_kernels_shared(struct device_stream *stream, size_t bytes);
int emulator_kernels_deep(struct device_stream *stream, uint32_t depth, uint32_t *out);
int emulator_kernels_grid(struct device_stream *stream, uint32_t y);
int emulator_kernels_hasty(struct device_stream *stream); /* never calls simt_start */

/* out[i] = the next thread's value, through shared memory, with or without a barrier in between. */
int emulator_kernels_neighbour(struct device_stream *stream, bool with_barrier, uint32_t *out);

/* *out = the contents of shared memory before the first write. */
int emulator_kernels_fresh(struct device_stream *stream, uint32_t *out);

/* out[i] = the i-th thread to run. */
int emulator_kernels_turns(struct device_stream *stream, uint32_t *count, uint32_t *out);
/* out[warp] = the warp's place among 8 in the order of counting after a sum. */
int emulator_kernels_warps_after_a_sum(struct device_stream *stream, uint32_t *count, uint32_t *out);

/* *out += memory[i] */
int emulator_kernels_read(struct device_stream *stream, const uint32_t *memory, uint32_t i, uint32_t *out);

#ifdef __cplusplus
}
#endif

#endif
