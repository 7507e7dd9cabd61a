/* SPDX-License-Identifier: MIT */
/* Products of weight matrices with rows of activations.
 *
 * FEW ROWS, one to four: what counts is the bytes of the weights, which are read once for all of the rows. A
 * warp has ROWS_EACH neighbouring rows of the matrix; a lane takes every 32nd block of 32 columns (of 16-bit
 * weights every 32nd eight columns), and the lanes' sums are added at the end. More rows are such groups of
 * four, each of which reads the weights again.
 *
 * An output's bits depend on its two rows alone: lanes, order of blocks and of the final sum are the same for
 * any number of rows.
 *
 * Up to KERNELS_PRODUCTS matrices share a launch; they may differ in format, which a whole block has one of.
 */

#include "cuda/weight_blocks.h"

#include <errno.h>

#define WARPS          4
#define ROWS_EACH      2
#define ROWS_PER_BLOCK (WARPS * ROWS_EACH)
#define MOST_FEW       4

struct products {
    struct device_matrix matrices[KERNELS_PRODUCTS];
    float *outs[KERNELS_PRODUCTS];
    uint32_t out_strides[KERNELS_PRODUCTS];
    uint32_t ends[KERNELS_PRODUCTS]; /* blockIdx.x of product i: ends[i − 1] … ends[i] − 1 */
};

/* What a warp has to do: N rows of x from `x_row` on by ROWS_EACH rows of the matrix from `row` on. Rows that
 * are not there are computed as the last one. */
struct task {
    const struct device_matrix *matrix;
    const struct device_activations *x;
    uint32_t row, x_row, n_x_rows;
};

static __device__ inline uint32_t matrix_row(const struct task &task, uint32_t r)
{
    return task.row + r < task.matrix->n_rows ? task.row + r : task.matrix->n_rows - 1;
}

static __device__ inline uint32_t x_row(const struct task &task, uint32_t n)
{
    return task.x_row + n < task.n_x_rows ? task.x_row + n : task.n_x_rows - 1;
}

template <enum format F, uint32_t N>
static __device__ void add_quantized(const struct task &task, float sums[ROWS_EACH][N])
{
    const uint32_t n_blocks = task.matrix->padded_columns / 32;
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

/* Element i of 16 bytes of weights. */
template <enum format F> static __device__ inline float float_weight(const struct simt_16 &words, uint32_t i)
{
    if (F == FORMAT_F32) {
        union {
            uint32_t bits;
            float value;
        } word = {words.words[i]};
        return word.value;
    }
    uint16_t bits = (uint16_t)(words.words[i / 2] >> 16 * (i % 2));
    return F == FORMAT_F16 ? simt_float(half_t{bits}) : simt_float(bf16_t{bits});
}

template <enum format F, uint32_t N>
static __device__ void add_floats(const struct task &task, float sums[ROWS_EACH][N])
{
    constexpr uint32_t each = F == FORMAT_F32 ? 4 : 8; /* columns in 16 bytes */
    const uint32_t n_columns = task.matrix->padded_columns;
    const uint8_t *plane = (const uint8_t *)task.matrix->planes[0];
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
                for (uint32_t r = 0; r < ROWS_EACH; r++)
                    SIMT_UNROLL
                for (uint32_t j = 0; j < 4; j++)
                    sums[r][n] = fmaf(float_weight<F>(words[r], i + j), four.v[j], sums[r][n]);
            }
        }
    }
}

template <uint32_t N> static __device__ void add_rows(const struct task &task, float sums[ROWS_EACH][N])
{
    switch (task.matrix->format) {
    case FORMAT_F32:
        return add_floats<FORMAT_F32, N>(task, sums);
    case FORMAT_F16:
        return add_floats<FORMAT_F16, N>(task, sums);
    case FORMAT_BF16:
        return add_floats<FORMAT_BF16, N>(task, sums);
    case FORMAT_Q8_0:
        return add_quantized<FORMAT_Q8_0, N>(task, sums);
    case FORMAT_Q4_0:
        return add_quantized<FORMAT_Q4_0, N>(task, sums);
    case FORMAT_Q5_0:
        return add_quantized<FORMAT_Q5_0, N>(task, sums);
    case FORMAT_Q4_K:
        return add_quantized<FORMAT_Q4_K, N>(task, sums);
    case FORMAT_Q5_K:
        return add_quantized<FORMAT_Q5_K, N>(task, sums);
    case FORMAT_Q6_K:
        return add_quantized<FORMAT_Q6_K, N>(task, sums);
    default: /* kernels_multiply refuses it */
        return;
    }
}

/* Grid: [groups of ROWS_PER_BLOCK rows of all matrices][groups of N rows of x]. */
template <uint32_t N>
static __global__ void __launch_bounds__(WARPS *SIMT_LANES)
    multiply_few(struct products products, struct device_activations x, uint32_t n_x_rows)
{
    uint32_t p = 0;
    while (blockIdx.x >= products.ends[p])
        p++;
    const struct device_matrix &matrix = products.matrices[p];
    const uint32_t lane = threadIdx.x % SIMT_LANES;
    const uint32_t group = blockIdx.x - (p ? products.ends[p - 1] : 0);
    const struct task task = {&matrix, &x, group * ROWS_PER_BLOCK + threadIdx.x / SIMT_LANES * ROWS_EACH,
                              blockIdx.y * N, n_x_rows};
    float sums[ROWS_EACH][N] = {};
    add_rows<N>(task, sums);
    /* One lane to each output, so that they are stored at once. */
    float mine = 0;
    SIMT_UNROLL
    for (uint32_t n = 0; n < N; n++)
        SIMT_UNROLL
    for (uint32_t r = 0; r < ROWS_EACH; r++) {
        float sum = simt_warp_sum(sums[r][n]);
        mine = lane == n * ROWS_EACH + r ? sum : mine;
    }
    const uint32_t row = task.row + lane % ROWS_EACH, x_row = task.x_row + lane / ROWS_EACH;
    if (lane < ROWS_EACH * N && row < matrix.n_rows && x_row < n_x_rows)
        products.outs[p][(size_t)x_row * products.out_strides[p] + row] =
            mine + (matrix.bias ? matrix.bias[row] : 0);
}

template <uint32_t N>
static int launch_few(struct device_stream *queue, const struct products *products, uint32_t n_blocks,
                      const struct device_activations *x, uint32_t n_rows)
{
    return simt_launch(queue, "multiply_few", multiply_few<N>, {n_blocks, (n_rows + N - 1) / N, 1},
                       {WARPS * SIMT_LANES, 1, 1}, 0, *products, *x, n_rows);
}

int kernels_multiply(struct device_stream *queue, const struct device_product *given, uint32_t n_products,
                     const struct device_activations *x, uint32_t n_rows, bool reproducible)
{
    struct products products = {};
    uint32_t n_blocks = 0;
    if (n_products > KERNELS_PRODUCTS)
        return -EINVAL;
    for (uint32_t i = 0; i < KERNELS_PRODUCTS; i++) {
        if (i < n_products) {
            const struct device_matrix *matrix = given[i].matrix;
            if (!layout_of(matrix->format) || matrix->padded_columns > x->stride)
                return -EINVAL;
            products.matrices[i] = *matrix;
            products.outs[i] = given[i].out;
            products.out_strides[i] = given[i].out_stride;
            n_blocks += (matrix->n_rows + ROWS_PER_BLOCK - 1) / ROWS_PER_BLOCK;
        }
        products.ends[i] = n_blocks;
    }
    switch (n_rows) {
    case 1:
        return launch_few<1>(queue, &products, n_blocks, x, n_rows);
    case 2:
        return launch_few<2>(queue, &products, n_blocks, x, n_rows);
    case 3:
        return launch_few<3>(queue, &products, n_blocks, x, n_rows);
    default:
        return launch_few<MOST_FEW>(queue, &products, n_blocks, x, n_rows);
    }
}
