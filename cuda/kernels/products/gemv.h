/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_PRODUCTS_GEMV_H
#define CUDA_KERNELS_PRODUCTS_GEMV_H

/* Products of one to four rows of activations, for a warp.
 *
 * With few rows, the bytes of the weights determine the time; they are read once for all rows. A warp has
 * ROWS_EACH neighbouring rows of the matrix. A lane takes every 32nd block of 32 columns (of 16-bit weights
 * every 32nd eight columns), and the lanes' sums are added at the end. So a warp loads 512 neighbouring bytes
 * of a row, and with one row of activations each lane has four such loads in flight. */

#include "cuda/kernels/products/products.h"

#define WARPS          4
#define ROWS_EACH      2
#define ROWS_PER_BLOCK (WARPS * ROWS_EACH)

/* The task of a warp: N rows of x from `x_row` on by ROWS_EACH rows of the matrix, or of several consecutive
 * matrices, from `row` on, up to the ends. Missing rows are computed like the last one. */
struct task {
    const struct device_matrix *matrix;
    const struct device_activations *x;
    uint32_t row, end_row, x_row, end_x_row;
};

static __device__ inline uint32_t matrix_row(const struct task &task, uint32_t r)
{
    return task.row + r < task.end_row ? task.row + r : task.end_row - 1;
}

static __device__ inline uint32_t x_row(const struct task &task, uint32_t n)
{
    return task.x_row + n < task.end_x_row ? task.x_row + n : task.end_x_row - 1;
}

template <enum format F, uint32_t N>
static __device__ __forceinline__ void add_quantized(const struct task &task, float sums[ROWS_EACH][N])
{
    const uint32_t n_blocks = task.matrix->padded_columns / 32;
    SIMT_UNROLL_BY(N == 1 ? 2 : 1)
    for (uint32_t block = threadIdx.x % SIMT_LANES; block < n_blocks; block += SIMT_LANES) {
        struct raw_block raw[ROWS_EACH];
        struct open_block open[ROWS_EACH];
        SIMT_UNROLL
        for (uint32_t r = 0; r < ROWS_EACH; r++)
            fetch_block<F>(*task.matrix, matrix_row(task, r), block, &raw[r]);
        SIMT_UNROLL
        for (uint32_t r = 0; r < ROWS_EACH; r++)
            open_block<F>(raw[r], block, &open[r]);
        SIMT_UNROLL
        for (uint32_t n = 0; n < N; n++) {
            struct x_block x;
            read_x_block<F>(*task.x, x_row(task, n), block, &x);
            SIMT_UNROLL
            for (uint32_t r = 0; r < ROWS_EACH; r++)
                sums[r][n] = add_block<F>(open[r], x, sums[r][n]);
        }
    }
}

template <enum format F, uint32_t N>
static __device__ __forceinline__ void add_floats(const struct task &task, float sums[ROWS_EACH][N])
{
    constexpr uint32_t each = F == FORMAT_F32 ? 4 : 8; /* columns in 16 bytes */
    const uint32_t n_columns = task.matrix->padded_columns;
    const uint8_t *plane = (const uint8_t *)task.matrix->planes[0];
    SIMT_UNROLL_BY(N == 1 ? 2 : 1)
    for (uint32_t k = threadIdx.x % SIMT_LANES * each; k < n_columns; k += SIMT_LANES * each) {
        struct simt_16 words[ROWS_EACH];
        SIMT_UNROLL
        for (uint32_t r = 0; r < ROWS_EACH; r++)
            words[r] = simt_load16(plane + ((size_t)matrix_row(task, r) * n_columns + k) * (16 / each));
        SIMT_UNROLL
        for (uint32_t n = 0; n < N; n++) {
            const float *x = task.x->values + (size_t)x_row(task, n) * task.x->stride + k;
            SIMT_UNROLL
            for (uint32_t i = 0; i < each; i += 4) {
                const struct float_four four = read_four(x + i);
                SIMT_UNROLL
                for (uint32_t r = 0; r < ROWS_EACH; r++) {
                    SIMT_UNROLL
                    for (uint32_t j = 0; j < 4; j++)
                        sums[r][n] = fmaf(float_weight<F>(words[r], i + j), four.v[j], sums[r][n]);
                }
            }
        }
    }
}

template <enum format F, uint32_t N>
static __device__ __forceinline__ void add_rows_of(const struct task &task, float sums[ROWS_EACH][N])
{
    if constexpr (is_float<F>())
        add_floats<F, N>(task, sums);
    else
        add_quantized<F, N>(task, sums);
}

template <uint32_t N>
static __device__ __forceinline__ void add_rows(const struct task &task, float sums[ROWS_EACH][N])
{
#define CASE(name, id, number, elements, bytes)                                                              \
    case FORMAT_##name:                                                                                      \
        return add_rows_of<FORMAT_##name, N>(task, sums);
    switch (task.matrix->format) {
        FORMATS(CASE)
    case FORMAT_LIMIT: /* kernels_multiply refuses it */
        return;
    }
#undef CASE
}

/* The lanes' sums, with one lane for each output, so that they are stored at once: lane n · ROWS_EACH + r has
 * the sum of row r and row n of x. */
template <uint32_t N> static __device__ __forceinline__ float sum_of_lane(const float sums[ROWS_EACH][N])
{
    float mine = 0;
    SIMT_UNROLL
    for (uint32_t n = 0; n < N; n++) {
        SIMT_UNROLL
        for (uint32_t r = 0; r < ROWS_EACH; r++) {
            float sum = simt_warp_sum(sums[r][n]);
            mine = threadIdx.x % SIMT_LANES == n * ROWS_EACH + r ? sum : mine;
        }
    }
    return mine;
}

/* Blocks of threads per multiprocessor, limited by registers: 64 registers for one row, so that the loads of
 * many warps hide each other's latency. Before Hopper, addresses take more registers: 80, or some would be
 * spilled. */
static constexpr uint32_t blocks_at_once(uint32_t n)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    return n == 1 ? 5 : n == 2 ? 6 : 4;
#else
    return n == 1 ? 8 : n == 2 ? 6 : 4;
#endif
}

#endif
