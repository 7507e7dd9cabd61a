/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_SIMT_KERNELS_H
#define TESTS_UNIT_CUDA_SIMT_KERNELS_H

#include "cuda/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[block] = the sum of every n_blocks-th group of x. */
int simt_kernels_sum(struct device_stream *stream, const float *x, uint32_t n, uint32_t n_blocks, float *out);

#ifdef __cplusplus
}
#endif

#endif
