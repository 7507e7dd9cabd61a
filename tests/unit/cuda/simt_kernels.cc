/* SPDX-License-Identifier: MIT */
/* Kernels that ask the emulator what a GPU does. */

#include "tests/unit/cuda/simt_kernels.h"

#include "cuda/simt.h"

#define THREADS 128

struct sum_shared {
    float parts[THREADS / SIMT_LANES];
};

static __global__ void sum(const float *x, uint32_t n, float *out)
{
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
