/* SPDX-License-Identifier: MIT */
/* Kernels that do what the emulator is there to find. */

#include "tests/unit/cuda/emu/emulator_kernels.h"

#include "cuda/device/simt.h"

#define THREADS 64

static const struct simt_dim one = {1, 1, 1}, block = {THREADS, 1, 1};

static __global__ void barrier_without_all(void)
{
    simt_start();
    if (threadIdx.x == 5)
        return;
    simt_barrier();
}

int emulator_kernels_barrier_without_all(struct device_stream *stream)
{
    return simt_launch(stream, "barrier_without_all", barrier_without_all, one, block, 0);
}

static __global__ void lanes_apart(void)
{
    simt_start();
    if (threadIdx.x % 2)
        simt_shuffle(1, 0);
    else
        simt_ballot(true);
}

int emulator_kernels_lanes_apart(struct device_stream *stream)
{
    return simt_launch(stream, "lanes_apart", lanes_apart, one, block, 0);
}

static __global__ void sums_apart(void)
{
    simt_start();
    if (threadIdx.x % 2)
        simt_warp_sum(1u);
    else
        simt_warp_max(1u);
}

int emulator_kernels_sums_apart(struct device_stream *stream)
{
    return simt_launch(stream, "sums_apart", sums_apart, one, block, 0);
}

static __global__ void misaligned(const uint8_t *memory)
{
    simt_start();
    simt_load16(memory + 8);
}

int emulator_kernels_misaligned(struct device_stream *stream, const void *memory)
{
    return simt_launch(stream, "misaligned", misaligned, one, block, 0, (const uint8_t *)memory);
}

static __global__ void misaligned_vector(struct simt_16 *out, const uint8_t *memory)
{
    simt_start();
    *out = *(const struct simt_16 *)(memory + 8);
}

static __global__ void misaligned_store(uint8_t *memory)
{
    simt_start();
    *(uint64_t *)(memory + 4) = threadIdx.x;
}

int emulator_kernels_misaligned_access(struct device_stream *stream, void *memory, bool stores)
{
    if (stores)
        return simt_launch(stream, "misaligned_store", misaligned_store, one, block, 0, (uint8_t *)memory);
    return simt_launch(stream, "misaligned_vector", misaligned_vector, one, block, 0,
                       (struct simt_16 *)memory, (const uint8_t *)memory);
}

static __global__ void behind_shared(void)
{
    simt_start();
    uint8_t *shared = simt_shared<uint8_t>();
    shared[threadIdx.x + 1] = 1;
}

int emulator_kernels_behind_shared(struct device_stream *stream)
{
    return simt_launch(stream, "behind_shared", behind_shared, one, block, THREADS);
}

static __global__ void nothing(void)
{
    simt_start();
}

static __global__ void hasty(void)
{
}

int emulator_kernels_hasty(struct device_stream *stream)
{
    return simt_launch(stream, "hasty", hasty, one, block, 0);
}

int emulator_kernels_shared(struct device_stream *stream, size_t bytes)
{
    return simt_launch(stream, "shared", nothing, one, block, bytes);
}

int emulator_kernels_grid(struct device_stream *stream, uint32_t y)
{
    return simt_launch(stream, "grid", nothing, {1, y, 1}, block, 0);
}

static uint32_t sum_down(uint32_t depth)
{
    volatile uint32_t frame[256];
    frame[depth % 256] = depth;
    return depth == 0 ? 0 : sum_down(depth - 1) + frame[depth % 256];
}

static __global__ void deep(uint32_t depth, uint32_t *out)
{
    simt_start();
    out[threadIdx.x] = sum_down(depth);
}

int emulator_kernels_deep(struct device_stream *stream, uint32_t depth, uint32_t *out)
{
    return simt_launch(stream, "deep", deep, one, block, 0, depth, out);
}

static __global__ void neighbour(bool with_barrier, uint32_t *out)
{
    simt_start();
    uint32_t *shared = simt_shared<uint32_t>();
    shared[threadIdx.x] = threadIdx.x;
    if (with_barrier)
        simt_barrier();
    out[threadIdx.x] = shared[(threadIdx.x + 1) % THREADS];
}

int emulator_kernels_neighbour(struct device_stream *stream, bool with_barrier, uint32_t *out)
{
    return simt_launch(stream, "neighbour", neighbour, {3, 1, 1}, block, THREADS * sizeof *out, with_barrier,
                       out);
}

static __global__ void fresh(uint32_t *out)
{
    simt_start();
    if (threadIdx.x == 0)
        *out = *simt_shared<uint32_t>();
}

int emulator_kernels_fresh(struct device_stream *stream, uint32_t *out)
{
    return simt_launch(stream, "fresh", fresh, one, block, sizeof *out, out);
}

static __global__ void turns(uint32_t *count, uint32_t *out)
{
    simt_start();
    out[simt_atomic_add(count, 1u)] = threadIdx.x;
}

int emulator_kernels_turns(struct device_stream *stream, uint32_t *count, uint32_t *out)
{
    return simt_launch(stream, "turns", turns, one, block, 0, count, out);
}

static __global__ void warps_after_a_sum(uint32_t *count, uint32_t *out)
{
    simt_start();
    simt_warp_sum(1u);
    if (threadIdx.x % SIMT_LANES == 0)
        out[threadIdx.x / SIMT_LANES] = simt_atomic_add(count, 1u);
}

int emulator_kernels_warps_after_a_sum(struct device_stream *stream, uint32_t *count, uint32_t *out)
{
    return simt_launch(stream, "warps_after_a_sum", warps_after_a_sum, one, {8 * SIMT_LANES, 1, 1}, 0, count,
                       out);
}

static __global__ void read_one(const uint32_t *memory, uint32_t i, uint32_t *out)
{
    simt_start();
    if (threadIdx.x == 0)
        *out += memory[i];
}

int emulator_kernels_read(struct device_stream *stream, const uint32_t *memory, uint32_t i, uint32_t *out)
{
    return simt_launch(stream, "read_one", read_one, one, block, 0, memory, i, out);
}
