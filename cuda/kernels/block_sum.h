/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_BLOCK_SUM_H
#define CUDA_KERNELS_BLOCK_SUM_H

/* Sums over all threads of a block, in one order, whatever else the launch has. */

#include "cuda/device/simt.h"

struct sums_shared {
    float parts[2][1024 / SIMT_LANES];
};

/* Sums over the block, one after the other: two arrays in turn, so that one barrier each is enough. */
struct block_sums {
    struct sums_shared *shared;
    uint32_t turn;
};

static __device__ inline float block_sum(struct block_sums *sums, float value)
{
    float *parts = sums->shared->parts[sums->turn++ % 2];
    const uint32_t lane = threadIdx.x % SIMT_LANES, warp = threadIdx.x / SIMT_LANES;
    value = simt_warp_sum(value);
    if (lane == 0)
        parts[warp] = value;
    simt_barrier();
    return simt_warp_sum(lane < blockDim.x / SIMT_LANES ? parts[lane] : 0);
}

#endif
