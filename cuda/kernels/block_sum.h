/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_BLOCK_SUM_H
#define CUDA_KERNELS_BLOCK_SUM_H

/* Sums over all threads of a block, in an order that does not depend on the launch. */

#include "cuda/device/simt.h"

struct sums_shared {
    float parts[2][1024 / SIMT_LANES];
};

/* Successive sums over the block: two arrays in turn, so that one barrier per sum suffices. */
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
