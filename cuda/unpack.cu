/* SPDX-License-Identifier: MIT */
/* Weights and activations as bfloat16, for products that a library makes.
 *
 * A thread opens a block of 32 columns as the products do, and makes numbers of it. Its 64 bytes go through
 * shared memory, so that neighbouring threads store neighbouring 16 bytes: what is written is twice to four
 * times what is read, and counts most. */

#include "cuda/products.h"

#include <errno.h>

#define THREADS     128
#define BLOCK_BYTES (64 + 16) /* in shared memory: eight threads' 16 bytes meet in no bank */

struct unpack_shared {
    alignas(16) uint8_t blocks[THREADS][BLOCK_BYTES];
};

static __device__ inline uint32_t two_of(float first, float second)
{
    return simt_bf16(first).bits | (uint32_t)simt_bf16(second).bits << 16;
}

/* Four columns: word c of an open block. */
template <enum format F>
static __device__ inline struct float_four numbers_of(const struct open_block &open, int c)
{
    const int half = c / 4;
    const float scale = open.scale * (float)open.factors[has_factors<F>() ? half : 0];
    float minimum = 0;
    if (has_minimum<F>() || has_minimums<F>())
        minimum = open.min_scale * (float)open.mins[has_minimums<F>() ? half : 0];
    struct float_four four;
    SIMT_UNROLL
    for (int i = 0; i < 4; i++)
        four.v[i] = fmaf(scale, (float)((int32_t)(int8_t)(open.w[c] >> 8 * i) - offset_of<F>()), -minimum);
    return four;
}

/* Block `at` of the matrix, 32 columns, to 64 bytes. */
template <enum format F>
static __device__ inline void unpack_block(const struct device_matrix &matrix, uint32_t row, uint32_t block,
                                           uint8_t *to)
{
    if constexpr (is_float<F>()) {
        constexpr uint32_t each = F == FORMAT_F32 ? 4 : 8; /* numbers in 16 bytes */
        const uint8_t *from = (const uint8_t *)matrix.planes[0] +
                              ((size_t)row * matrix.padded_columns + (size_t)block * 32) * (16 / each);
        SIMT_UNROLL
        for (uint32_t i = 0; i < 32; i += each) {
            const struct simt_16 words = simt_load16(from + i * (16 / each));
            SIMT_UNROLL
            for (uint32_t j = 0; j < each; j += 2)
                *(uint32_t *)(to + 2 * (i + j)) =
                    two_of(float_weight<F>(words, j), float_weight<F>(words, j + 1));
        }
    } else {
        struct raw_block raw;
        struct open_block open;
        fetch_block<F>(matrix, row, block, &raw);
        open_block<F>(raw, block, &open);
        SIMT_UNROLL
        for (int c = 0; c < 8; c += 2) {
            const struct float_four a = numbers_of<F>(open, c), b = numbers_of<F>(open, c + 1);
            *(struct word_four *)(to + 8 * c) = word_four{{two_of(a.v[0], a.v[1]), two_of(a.v[2], a.v[3]),
                                                           two_of(b.v[0], b.v[1]), two_of(b.v[2], b.v[3])}};
        }
    }
}

/* A thread to each block of 32 columns. */
template <enum format F>
static __global__ void __launch_bounds__(THREADS)
    unpack_weights(const __grid_constant__ struct device_matrix matrix, uint16_t *out)
{
    struct unpack_shared *shared = simt_shared<struct unpack_shared>();
    const uint32_t per_row = matrix.padded_columns / 32;
    const size_t n = (size_t)matrix.n_rows * per_row, first = (size_t)blockIdx.x * THREADS;
    const size_t at = first + threadIdx.x;
    if (at < n)
        unpack_block<F>(matrix, (uint32_t)(at / per_row), (uint32_t)(at % per_row),
                        shared->blocks[threadIdx.x]);
    simt_barrier();
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t piece = i * THREADS + threadIdx.x;
        if (first + piece / 4 < n)
            *(struct word_four *)(out + first * 32 + (size_t)piece * 8) =
                *(const struct word_four *)(shared->blocks[piece / 4] + piece % 4 * 16);
    }
}

int kernels_unpack(struct device_stream *queue, const struct device_matrix *matrix, uint16_t *out)
{
    const size_t n = (size_t)matrix->n_rows * (matrix->padded_columns / 32);
    const struct simt_dim grid = {(uint32_t)((n + THREADS - 1) / THREADS), 1, 1}, block = {THREADS, 1, 1};
#define CASE(name, id, number, elements, bytes)                                                              \
    case FORMAT_##name:                                                                                      \
        return simt_launch(queue, "unpack_weights", unpack_weights<FORMAT_##name>, grid, block,              \
                           sizeof(struct unpack_shared), *matrix, out);
    switch (matrix->format) {
        FORMATS(CASE)
    default:
        return -EINVAL;
    }
#undef CASE
}

/* Grid: [groups of 8 · THREADS columns][rows]. */
static __global__ void __launch_bounds__(THREADS)
    round_rows(const __grid_constant__ struct device_activations x, uint32_t n_rows, uint16_t *out)
{
    const uint32_t column = (blockIdx.x * THREADS + threadIdx.x) * 8;
    const size_t at = (size_t)blockIdx.y * x.stride + column;
    struct float_four a = {}, b = {};
    if (column >= x.stride)
        return;
    if (blockIdx.y < n_rows) {
        a = read_four(x.values + at);
        b = read_four(x.values + at + 4);
    }
    *(struct word_four *)(out + at) = word_four{
        {two_of(a.v[0], a.v[1]), two_of(a.v[2], a.v[3]), two_of(b.v[0], b.v[1]), two_of(b.v[2], b.v[3])}};
}

int kernels_round(struct device_stream *queue, const struct device_activations *x, uint32_t n_rows,
                  uint32_t n_padded, uint16_t *out)
{
    return simt_launch(queue, "round_rows", round_rows,
                       {(x->stride / 8 + THREADS - 1) / THREADS, n_padded, 1}, {THREADS, 1, 1}, 0, *x, n_rows,
                       out);
}
