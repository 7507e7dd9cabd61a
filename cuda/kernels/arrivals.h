/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ARRIVALS_H
#define CUDA_KERNELS_ARRIVALS_H

/* Results that the last of several blocks puts together: each writes its part and arrives, and the one that
 * completes the count reads the parts of all. Nobody waits.
 *
 * One thread orders memory for its block. The first barrier puts what all threads have written before its
 * fence, so whoever sees the count sees the parts; its second fence puts the other blocks' parts before all
 * that this block reads after the second barrier (PTX ISA, memory consistency model: fences are cumulative,
 * and barriers are part of causality order). */

#include "cuda/device/simt.h"

/* The block adds n to a counter, which is 0 before the first and again after the last. True: that makes
 * `all`, and the parts of all may be read. All threads ask, with the same; `shared_flag` is the block's. */
static __device__ inline bool last_to_arrive(uint32_t *counter, uint32_t n, uint32_t all,
                                             uint32_t *shared_flag)
{
    simt_barrier();
    if (threadIdx.x == 0) {
        simt_fence();
        *shared_flag = simt_atomic_add(counter, n) + n == all;
        if (*shared_flag) {
            simt_fence();
            *counter = 0;
        }
    }
    simt_barrier();
    return *shared_flag;
}

#endif
