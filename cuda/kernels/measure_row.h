/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_MEASURE_ROW_H
#define CUDA_KERNELS_MEASURE_ROW_H

/* The statistics of a row for a norm, computed by a block of threads in an order that does not depend on the
 * launch. */

#include "cuda/kernels/activations.h"
#include "cuda/kernels/block_sum.h"

/* A norm subtracts `mean` and multiplies by `factor`, before the weights. */
struct row_norm {
    float mean, factor;
};

/* Four columns that other blocks may have written in this launch; zeros beyond n_columns. The array extends
 * to a multiple of 4. */
static __device__ inline struct float_four read_fresh(const float *from, uint32_t column, uint32_t n_columns)
{
    const struct simt_16 words = simt_fresh16(from + column);
    struct float_four four;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        four.v[i] = column + i < n_columns ? simt_of_bits(words.words[i]) : 0;
    return four;
}

static __device__ inline struct row_norm measure_row(const float *x, uint32_t n_columns,
                                                     const struct norm &norm, struct block_sums *sums)
{
    struct row_norm row = {0, 1};
    float total = 0, squares = 0;
    if (is_centered(norm.kind)) {
        SIMT_UNROLL_BY(1)
        for (uint32_t column = threadIdx.x * 4; column < n_columns; column += blockDim.x * 4) {
            const struct float_four four = read_fresh(x, column, n_columns);
            total += (four.v[0] + four.v[1]) + (four.v[2] + four.v[3]);
        }
        row.mean = block_sum(sums, total) / (float)n_columns;
    }
    SIMT_UNROLL_BY(1)
    for (uint32_t column = threadIdx.x * 4; column < n_columns; column += blockDim.x * 4) {
        const struct float_four four = read_fresh(x, column, n_columns);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float v = column + i < n_columns ? four.v[i] - row.mean : 0;
            squares = fmaf(v, v, squares);
        }
    }
    row.factor = 1.0f / sqrtf(block_sum(sums, squares) / (float)n_columns + norm.epsilon);
    return row;
}

#endif
