/* SPDX-License-Identifier: MIT */
/* Norms: a block of threads to a row, which stays in registers from its first load to its last store.
 *
 * A thread holds EACH times four columns, a block's width apart. The row is read once (stream and delta, 8
 * bytes a column), and written once: stream 4 bytes, quants 1 and a quarter, floats 4 where they are wanted.
 * A sum over the row is two stages of warp sums, in the same order whatever the launch has of other rows. */

#include "cuda/kernels/activations.h"
#include "cuda/kernels/block_sum.h"

#include <errno.h>

#define MOST_THREADS 1024
#define MOST_COLUMNS KERNELS_NORM_COLUMNS /* of fewer threads each may have more registers */

/* The columns of one thread. */
static __device__ inline uint32_t column_of(uint32_t e)
{
    return (e * blockDim.x + threadIdx.x) * 4;
}

template <uint32_t EACH>
static __device__ void normalize(struct float_four x[EACH], const struct norm &norm,
                                 const struct device_vector &vector, uint32_t n_columns,
                                 struct block_sums *sums)
{
    float mean = 0, squares = 0;
    if (is_centered(norm.kind)) {
        float total = 0;
        SIMT_UNROLL
        for (uint32_t e = 0; e < EACH; e++)
            total += (x[e].v[0] + x[e].v[1]) + (x[e].v[2] + x[e].v[3]);
        mean = block_sum(sums, total) / (float)n_columns;
    }
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e++) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++) {
            float v = column_of(e) + i < n_columns ? x[e].v[i] - mean : 0;
            x[e].v[i] = v;
            squares = fmaf(v, v, squares);
        }
    }
    const float factor = 1.0f / sqrtf(block_sum(sums, squares) / (float)n_columns + norm.epsilon);
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e++) {
        if (column_of(e) >= n_columns)
            continue;
        struct float_four weight = read_columns(vector.weight, column_of(e), n_columns), bias = {};
        if (is_centered(norm.kind) && vector.bias)
            bias = read_columns(vector.bias, column_of(e), n_columns);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            if (column_of(e) + i < n_columns)
                x[e].v[i] = fmaf(x[e].v[i] * factor, weight.v[i], bias.v[i]);
    }
}

/* The thread's columns of a row. */
template <uint32_t EACH>
static __device__ inline void read_row(const float *row, const struct norm_step &step,
                                       struct float_four ret_x[EACH])
{
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e++)
        ret_x[e] =
            column_of(e) < step.stride ? read_columns(row, column_of(e), step.n_columns) : float_four{};
}

/* A delta of two parts: the sum of what each is normed to. */
template <uint32_t EACH>
static __device__ inline void join_parts(struct float_four delta[EACH], const struct norm_step &step,
                                         const float *row, struct block_sums *sums)
{
    struct float_four beside[EACH];
    normalize<EACH>(delta, step.post_norm, step.delta_vector, step.n_columns, sums);
    read_row<EACH>(row, step, beside);
    normalize<EACH>(beside, step.post_norm, step.beside_vector, step.n_columns, sums);
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e++) {
        SIMT_UNROLL
        for (uint32_t i = 0; i < 4; i++)
            delta[e].v[i] += beside[e].v[i];
    }
}

template <uint32_t EACH, bool PARTS>
static __global__ void __launch_bounds__(EACH == 4 ? 768 : MOST_THREADS) norm_rows(struct norm_step step)
{
    simt_start();
    struct block_sums sums = {simt_shared<struct sums_shared>(), 0};
    const uint32_t row = blockIdx.x, from = step.outputs ? step.outputs[row] : row;
    float *stream = step.stream + (size_t)from * step.stride;
    struct float_four x[EACH];
    if (!PARTS) /* else later: the parts take the registers */
        read_row<EACH>(stream, step, x);
    if (step.delta) {
        struct float_four d[EACH];
        read_row<EACH>(step.delta + (size_t)from * step.stride, step, d);
        if (PARTS) {
            join_parts<EACH>(d, step, step.beside + (size_t)from * step.stride, &sums);
            read_row<EACH>(stream, step, x);
        }
        if (step.post_vector.weight)
            normalize<EACH>(d, step.post_norm, step.post_vector, step.n_columns, &sums);
        const float scale = step.stream_scale ? *step.stream_scale : 1;
        SIMT_UNROLL
        for (uint32_t e = 0; e < EACH; e++) {
            SIMT_UNROLL
            for (uint32_t i = 0; i < 4; i++)
                x[e].v[i] = fmaf(d[e].v[i], step.residual_scale, x[e].v[i]) * scale;
            if (!step.outputs && column_of(e) < step.stride)
                *(struct float_four *)(stream + column_of(e)) = x[e];
        }
    }
    if (step.vector.weight)
        normalize<EACH>(x, step.norm, step.vector, step.n_columns, &sums);
    SIMT_UNROLL
    for (uint32_t e = 0; e < EACH; e++)
        if (column_of(e) < step.out.stride) /* the same for all lanes of a warp: strides are whole warps */
            write_activations(x[e], &step.out, row, column_of(e));
}

/* Threads: enough for `each` times four columns of a row, in whole warps. */
template <uint32_t EACH, bool PARTS>
static int launch(struct device_stream *queue, const struct norm_step *norm, uint32_t n_rows)
{
    uint32_t threads = (norm->stride / 4 + EACH - 1) / EACH;
    threads = (threads + SIMT_LANES - 1) / SIMT_LANES * SIMT_LANES;
    return simt_launch(queue, PARTS ? "norm_parts" : "norm", norm_rows<EACH, PARTS>, {n_rows, 1, 1},
                       {threads, 1, 1}, sizeof(struct sums_shared), *norm);
}

template <bool PARTS>
static int launch_for(struct device_stream *queue, const struct norm_step *norm, uint32_t n_rows)
{
    const uint32_t each = (norm->stride / 4 + MOST_THREADS - 1) / MOST_THREADS;
    return each <= 1   ? launch<1, PARTS>(queue, norm, n_rows)
           : each <= 2 ? launch<2, PARTS>(queue, norm, n_rows)
                       : launch<4, PARTS>(queue, norm, n_rows);
}

int kernels_norm(struct device_stream *queue, const struct norm_step *norm, uint32_t n_rows)
{
    const bool parts = norm->beside != NULL;
    if (norm->stride % LAYOUT_COLUMNS != 0 || norm->out.stride != norm->stride ||
        norm->stride > KERNELS_NORM_COLUMNS)
        return -EINVAL;
    if (parts && (!norm->delta || !norm->delta_vector.weight || !norm->beside_vector.weight))
        return -EINVAL;
    return parts ? launch_for<true>(queue, norm, n_rows) : launch_for<false>(queue, norm, n_rows);
}
