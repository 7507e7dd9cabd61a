/* SPDX-License-Identifier: MIT */
/* Weights and activations as bfloat16, for products that a library makes.
 *
 * A thread opens a block of 32 columns as the products do, and makes numbers of it. Its 64 bytes go through
 * shared memory, so that neighbouring threads store neighbouring 16 bytes: what is written is two (Q8_0)
 * to six (Q2_K) times what is read, and counts most. */

#include "cuda/kernels/products/products.h"

#include <errno.h>

#define THREADS 128

/* Four pieces of 16 bytes for each thread, at place_of. */
struct unpack_shared {
    struct word_four pieces[THREADS * 4];
};

/* Where eight threads that write or read at once meet in no bank. */
static __device__ inline uint32_t place_of(uint32_t thread, uint32_t piece)
{
    return thread * 4 + (piece ^ thread / 2 % 4);
}

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

static __device__ inline struct word_four eight_of(const struct float_four &a, const struct float_four &b)
{
    return word_four{
        {two_of(a.v[0], a.v[1]), two_of(a.v[2], a.v[3]), two_of(b.v[0], b.v[1]), two_of(b.v[2], b.v[3])}};
}

/* Eight columns of F32, F16 or BF16, from where they are. */
template <enum format F> static __device__ inline struct word_four eight_floats(const uint8_t *from)
{
    constexpr uint32_t each = F == FORMAT_F32 ? 4 : 8; /* numbers in 16 bytes */
    const struct simt_16 first = simt_load16(from), last = each == 4 ? simt_load16(from + 16) : first;
    struct float_four a, b;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        a.v[i] = float_weight<F>(first, i);
        b.v[i] = float_weight<F>(last, each == 4 ? i : i + 4);
    }
    return eight_of(a, b);
}

/* What is no block needs no detour: 16 bytes to each thread. */
template <enum format F>
static __device__ inline void unpack_floats(const struct device_matrix &matrix, size_t first, size_t n,
                                            uint16_t *out)
{
    constexpr size_t bytes = F == FORMAT_F32 ? 4 : 2;
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t piece = i * THREADS + threadIdx.x;
        const size_t at = first * 32 + (size_t)piece * 8;
        if (first + piece / 4 < n)
            *(struct word_four *)(out + at) = eight_floats<F>((const uint8_t *)matrix.planes[0] + at * bytes);
    }
}

/* Blocks first … n − 1 of all rows, as far as the threads go. */
template <enum format F>
static __device__ inline void unpack_blocks(const struct device_matrix &matrix, size_t first, size_t n,
                                            uint16_t *out)
{
    struct unpack_shared *shared = simt_shared<struct unpack_shared>();
    const uint32_t per_row = matrix.padded_columns / 32;
    const size_t at = first + threadIdx.x;
    if (at < n) {
        struct raw_block raw;
        struct open_block open;
        const uint32_t block = (uint32_t)(at % per_row);
        fetch_block<F>(matrix, (uint32_t)(at / per_row), block, &raw);
        open_block<F>(raw, block, &open);
        SIMT_UNROLL
        for (int i = 0; i < 4; i++)
            shared->pieces[place_of(threadIdx.x, (uint32_t)i)] =
                eight_of(numbers_of<F>(open, 2 * i), numbers_of<F>(open, 2 * i + 1));
    }
    simt_barrier();
    SIMT_UNROLL
    for (uint32_t i = 0; i < 4; i++) {
        const uint32_t piece = i * THREADS + threadIdx.x;
        if (first + piece / 4 < n)
            *(struct word_four *)(out + first * 32 + (size_t)piece * 8) =
                shared->pieces[place_of(piece / 4, piece % 4)];
    }
}

/* A thread to each block of 32 columns. */
template <enum format F>
static __global__ void __launch_bounds__(THREADS)
    unpack_weights(const __grid_constant__ struct device_matrix matrix, uint16_t *out)
{
    simt_start();
    const size_t n = (size_t)matrix.n_rows * (matrix.padded_columns / 32);
    const size_t first = (size_t)blockIdx.x * THREADS;
    if constexpr (is_float<F>())
        unpack_floats<F>(matrix, first, n, out);
    else
        unpack_blocks<F>(matrix, first, n, out);
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
    case FORMAT_LIMIT:
        break;
    }
#undef CASE
    return -EINVAL;
}

/* Grid: [groups of 4 · THREADS columns][rows]. */
static __global__ void __launch_bounds__(THREADS)
    round_rows(const __grid_constant__ struct device_activations x, uint32_t n_rows, uint16_t *out)
{
    simt_start();
    const uint32_t column = (blockIdx.x * THREADS + threadIdx.x) * 4;
    const size_t at = (size_t)blockIdx.y * x.stride + column;
    if (column >= x.stride)
        return;
    struct simt_16 words = {};
    if (blockIdx.y < n_rows)
        words = simt_fresh16(x.values + at);
    const uint32_t *w = words.words;
    *(struct word_two *)(out + at) = word_two{
        {two_of(simt_of_bits(w[0]), simt_of_bits(w[1])), two_of(simt_of_bits(w[2]), simt_of_bits(w[3]))}};
}

int kernels_round(struct device_stream *queue, const struct device_activations *x, uint32_t n_rows,
                  uint32_t n_padded, uint16_t *out)
{
    return simt_launch(queue, "round_rows", round_rows,
                       {(x->stride / 4 + THREADS - 1) / THREADS, n_padded, 1}, {THREADS, 1, 1}, 0, *x, n_rows,
                       out);
}
