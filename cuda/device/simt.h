/* SPDX-License-Identifier: MIT */
#ifndef CUDA_DEVICE_SIMT_H
#define CUDA_DEVICE_SIMT_H

/* The only header that kernels use. Under nvcc it is CUDA, under the host's C++ compiler an emulator (emu/),
 * so every kernel runs in the ordinary tests.
 *
 * Kernels are C with templates: no exceptions, no library, no global state. They use
 *
 *   __global__, __device__, threadIdx, blockIdx, blockDim, gridDim (of type uint3/dim3)
 *   simt_shared<T>()                the block's dynamic shared memory as a T; simt_launch gets its size
 *   simt_start()                    by all threads, once, before anything else: OVERLAP, below
 *   simt_prefetch(p)                requests the 128 bytes of weights around p, before simt_start
 *   simt_barrier()                  __syncthreads
 *   simt_warp_barrier()             __syncwarp, all lanes
 *   simt_shuffle(v, lane), simt_shuffle_xor(v, mask), simt_ballot(p)    all 32 lanes of a warp take part
 *   simt_warp_sum(v), simt_warp_max(v)    reductions by xor: every lane gets the same bits
 *   simt_dp4a(a, b, c)              c + the dot product of four int8 pairs
 *   simt_permute(a, b, places)      byte i is byte (places >> 4 i & 7) of the eight of a and b, a's first
 *   simt_add_halves(a, b), simt_multiply_halves(a, b)    two f16 to a register, each result rounded
 *   simt_mma_s8(d, a, b)            d += a · b, 16 × 32 by 32 × 8 int8 into int32: MATRICES, below
 *   simt_mma_f16(d, a, b)           the same, 16 × 16 by 16 × 8 f16 into float
 *   simt_atomic_add, simt_atomic_max, simt_atomic_and
 *                                   uint32_t, uint64_t; add also float, where order does not matter
 *   simt_fence()                    __threadfence
 *   simt_fence_system()             the same before a flag that the host polls
 *   simt_load16(p)                  one 16-byte load of weights, or of what no launch writes (streaming)
 *   simt_fresh16(p)                 the same of memory that launches write, this one included
 *   simt_nearest(x)                 the nearest int32_t, ties to even
 *   simt_multiply(a, b)             a product that is never fused with a sum
 *   simt_bits(f), simt_of_bits(u)   a float's bits
 *   SIMT_UNROLL                     before a loop of constant length whose arrays must stay in registers
 *   SIMT_APART                      before a function that is called, so its caller keeps its registers
 *   SIMT_UNROLL_BY(n)               before any loop: n rounds' loads are in flight together
 *   half_t, bf16_t                  16 bits of storage; simt_float(x), simt_half(f), simt_bf16(f)
 *
 * MATRICES. d[4], a[4] and b[2] are a lane's registers, laid out as in PTX's m16n8k32 and m16n8k16. With
 * g = lane / 4, t = lane % 4, and p values to a register:
 *
 *   a[i]    row g + 8 (i % 2), from column t p + 4 p (i / 2) on
 *   b[i]    column g, from row t p + 4 p i on
 *   d[i]    row g + 8 (i / 2), column 2 t + i % 2
 *
 * Only this header (with simt_cuda.h) has PTX and launches. No block waits for another. Every lane of a
 * warp, and every thread of a block, reaches every warp operation and barrier: a thread without work takes
 * part with a neutral value, and may leave a kernel early only together with its whole block. */

#include <stddef.h>
#include <stdint.h>

/* Queues kernel<<<grid, block, shared_bytes>>>(arguments). 0, or a fault of the device (device.h); faults and
 * timings are reported under `name`, a constant.
 *
 * OVERLAP. A launch's blocks may be placed while those of the previous launch still run (programmatic
 * dependent launch, from Hopper on), so the time between two kernels is short. Only simt_start enforces the
 * order, so each kernel calls it. Since every launch waits for the previous one, it waits for all earlier
 * ones.
 *
 *     simt_launch(stream, "norm", norm_rows<256>, {n_rows, 1, 1}, {256, 1, 1}, sizeof(struct norm_shared),
 *                 args); */

#define SIMT_LANES 32

struct half_t {
    uint16_t bits;
};
struct bf16_t {
    uint16_t bits;
};

struct simt_dim {
    uint32_t x, y, z;
};

#ifdef __CUDACC__
#include "cuda/device/simt_cuda.h"
#else
#include "cuda/emu/simt_emu.h"
#endif

#endif
