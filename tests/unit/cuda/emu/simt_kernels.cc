/* SPDX-License-Identifier: MIT */
/* Kernels that ask the emulator what a GPU does. */

#include "tests/unit/cuda/emu/simt_kernels.h"

#include "cuda/device/simt.h"

#define THREADS 128

struct sum_shared {
    float parts[THREADS / SIMT_LANES];
};

static __global__ void sum(const float *x, uint32_t n, float *out)
{
    simt_start();
    struct sum_shared *shared = simt_shared<struct sum_shared>();
    float value = 0;
    for (uint32_t i = blockIdx.x * THREADS + threadIdx.x; i < n; i += gridDim.x * THREADS)
        value += x[i];
    value = simt_warp_sum(value);
    if (threadIdx.x % SIMT_LANES == 0)
        shared->parts[threadIdx.x / SIMT_LANES] = value;
    simt_barrier();
    value = threadIdx.x < THREADS / SIMT_LANES ? shared->parts[threadIdx.x] : 0;
    value = simt_warp_sum(value);
    if (threadIdx.x == 0)
        out[blockIdx.x] = value;
}

int simt_kernels_sum(struct device_stream *stream, const float *x, uint32_t n, uint32_t n_blocks, float *out)
{
    return simt_launch(stream, "sum", sum, {n_blocks, 1, 1}, {THREADS, 1, 1}, sizeof(struct sum_shared), x, n,
                       out);
}

/* Loads and stores fragments as simt.h says they lie; T has `per` values to a register. */
template <class T, class Sum, class Product>
static __device__ void multiply(const T *a, const T *b, Sum *d, uint32_t n_columns, Product product)
{
    const uint32_t per = 4 / sizeof(T), g = threadIdx.x / 4, t = threadIdx.x % 4;
    uint32_t a_registers[4], b_registers[2];
    Sum sums[4];
    for (uint32_t i = 0; i < 4; i++) {
        const T *from = a + (g + 8 * (i % 2)) * n_columns + t * per + 4 * per * (i / 2);
        memcpy(&a_registers[i], from, 4);
        sums[i] = d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2];
    }
    for (uint32_t i = 0; i < 2; i++)
        memcpy(&b_registers[i], b + g * n_columns + t * per + 4 * per * i, 4);
    product(sums, a_registers, b_registers);
    for (uint32_t i = 0; i < 4; i++)
        d[(g + 8 * (i / 2)) * 8 + 2 * t + i % 2] = sums[i];
}

static __global__ void product_s8(const int8_t *a, const int8_t *b, int32_t *d)
{
    simt_start();
    multiply(a, b, d, 32, simt_mma_s8);
}

static __global__ void product_f16(const uint16_t *a, const uint16_t *b, float *d)
{
    simt_start();
    multiply(a, b, d, 16, simt_mma_f16);
}

int simt_kernels_product_s8(struct device_stream *stream, const int8_t *a, const int8_t *b, int32_t *d)
{
    return simt_launch(stream, "product_s8", product_s8, {1, 1, 1}, {SIMT_LANES, 1, 1}, 0, a, b, d);
}

int simt_kernels_product_f16(struct device_stream *stream, const uint16_t *a, const uint16_t *b, float *d)
{
    return simt_launch(stream, "product_f16", product_f16, {1, 1, 1}, {SIMT_LANES, 1, 1}, 0, a, b, d);
}

static __global__ void halves(uint32_t *words, uint32_t n)
{
    simt_start();
    const uint32_t i = threadIdx.x;
    if (i < n) {
        words[2 * n + i] = simt_add_halves(words[i], words[n + i]);
        words[3 * n + i] = simt_multiply_halves(words[i], words[n + i]);
    }
}

int simt_kernels_halves(struct device_stream *stream, uint32_t *words, uint32_t n)
{
    return simt_launch(stream, "halves", halves, {1, 1, 1}, {SIMT_LANES, 1, 1}, 0, words, n);
}
