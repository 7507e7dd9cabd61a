/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_NORM_ROW_H
#define CUDA_KERNELS_NORM_ROW_H

/* kernels_norm for a row, by a block of threads that also does other work: the row stays in memory, because
 * the registers are in use. */

#include "cuda/kernels/measure_row.h"

/* Applies the norm to four columns; a vector without a weight leaves them unchanged. */
static __device__ inline void apply_norm(struct float_four *four, const struct row_norm &row,
                                         const struct norm &norm, const struct device_vector &vector,
                                         uint32_t column, uint32_t n_columns)
{
    if (!vector.weight || column >= n_columns)
        return;
    const struct float_four weight = read_columns(vector.weight, column, n_columns);
    struct float_four bias = {};
    if (is_centered(norm.kind) && vector.bias)
        bias = read_columns(vector.bias, column, n_columns);
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        if (column + i < n_columns)
            four->v[i] = fmaf((four->v[i] - row.mean) * row.factor, weight.v[i], bias.v[i]);
}

/* Row 0 of a norm_step without outputs, with a delta that other blocks have written in this launch. All
 * threads of the block take part. */
static __device__ SIMT_APART void norm_first_row(const struct norm_step &step, struct block_sums *sums)
{
    struct row_norm post = {0, 1}, norm = {0, 1};
    if (step.post_vector.weight)
        post = measure_row(step.delta, step.n_columns, step.post_norm, sums);
    const float scale = step.stream_scale ? *step.stream_scale : 1;
    SIMT_UNROLL_BY(1)
    for (uint32_t column = threadIdx.x * 4; column < step.stride; column += blockDim.x * 4) {
        struct float_four x = read_columns(step.stream, column, step.n_columns);
        struct float_four delta = read_fresh(step.delta, column, step.n_columns);
        apply_norm(&delta, post, step.post_norm, step.post_vector, column, step.n_columns);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            x.v[i] = fmaf(delta.v[i], step.residual_scale, x.v[i]) * scale;
        *(struct float_four *)(step.stream + column) = x;
    }
    /* From here on each thread reads only what it has written itself. */
    if (step.vector.weight)
        norm = measure_row(step.stream, step.n_columns, step.norm, sums);
    SIMT_UNROLL_BY(1)
    for (uint32_t column = threadIdx.x * 4; column < step.stride; column += blockDim.x * 4) {
        struct float_four x = read_fresh(step.stream, column, step.n_columns);
        apply_norm(&x, norm, step.norm, step.vector, column, step.n_columns);
        write_activations(x, &step.out, 0, column);
    }
}

#endif
