/* SPDX-License-Identifier: MIT */
/* Kernels whose accesses can be counted by hand. */

#include "tests/unit/cuda/emu/counting_kernels.h"

#include "cuda/device/simt.h"

static const struct simt_dim one = {1, 1, 1}, block = {SIMT_LANES, 1, 1};

static __global__ void words(uint32_t *memory, uint32_t stride)
{
    simt_start();
    uint32_t *shared = simt_shared<uint32_t>();
    shared[threadIdx.x * stride] = memory[threadIdx.x * stride];
}

int counting_kernels_words(struct device_stream *stream, uint32_t *memory, uint32_t stride)
{
    return simt_launch(stream, "words", words, one, block, SIMT_LANES * stride * sizeof *memory, memory,
                       stride);
}

static __global__ void vectors(struct simt_16 *memory, uint32_t stride)
{
    simt_start();
    struct simt_16 *shared = simt_shared<struct simt_16>();
    shared[threadIdx.x * stride] = memory[threadIdx.x * stride];
}

int counting_kernels_vectors(struct device_stream *stream, void *memory, uint32_t stride)
{
    return simt_launch(stream, "vectors", vectors, one, block, SIMT_LANES * stride * sizeof(struct simt_16),
                       (struct simt_16 *)memory, stride);
}

static __global__ void broadcast(uint32_t *memory)
{
    simt_start();
    uint32_t *shared = simt_shared<uint32_t>();
    if (threadIdx.x == 0)
        shared[7] = 1;
    simt_warp_barrier();
    const uint32_t value = shared[7];
    if (threadIdx.x % 2)
        memory[threadIdx.x] = value;
}

int counting_kernels_broadcast(struct device_stream *stream, uint32_t *memory)
{
    return simt_launch(stream, "broadcast", broadcast, one, block, 64, memory);
}

static __global__ void loop(uint32_t *memory)
{
    simt_start();
    const uint32_t *shared = simt_shared<uint32_t>();
    uint32_t sum = 0;
    for (uint32_t round = 0; round < threadIdx.x; round++)
        sum += shared[32 * round + threadIdx.x];
    memory[threadIdx.x] = sum;
}

int counting_kernels_loop(struct device_stream *stream, uint32_t *memory)
{
    return simt_launch(stream, "loop", loop, one, block, 32 * 32 * sizeof *memory, memory);
}

static __global__ void early(const uint32_t *memory, uint32_t *out)
{
    const uint32_t value = memory[threadIdx.x];
    simt_start();
    out[threadIdx.x] = value;
}

int counting_kernels_early(struct device_stream *stream, const uint32_t *memory, uint32_t *out)
{
    return simt_launch(stream, "early", early, one, block, 0, memory, out);
}
