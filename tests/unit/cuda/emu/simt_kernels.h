/* SPDX-License-Identifier: MIT */
#ifndef TESTS_UNIT_CUDA_EMU_SIMT_KERNELS_H
#define TESTS_UNIT_CUDA_EMU_SIMT_KERNELS_H

#include "cuda/device/device.h"

#ifdef __cplusplus
extern "C" {
#endif

/* out[block] = the sum of every n_blocks-th group of x. */
int simt_kernels_sum(struct device_stream *stream, const float *x, uint32_t n, uint32_t n_blocks, float *out);

/* Warp matrix products: d [16][8] += a [16][k] · b [8][k], b by columns; k is 32 of int8, 16 of f16. */
int simt_kernels_product_s8(struct device_stream *stream, const int8_t *a, const int8_t *b, int32_t *d);
int simt_kernels_product_f16(struct device_stream *stream, const uint16_t *a, const uint16_t *b, float *d);

/* `words`, [4][n]: pairs of halves a, b, their sums and their products. n ≤ 32. */
int simt_kernels_halves(struct device_stream *stream, uint32_t *words, uint32_t n);

#ifdef __cplusplus
}
#endif

#endif
