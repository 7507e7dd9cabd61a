/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ARRIVALS_H
#define CUDA_KERNELS_ARRIVALS_H

/* Results that the last of several blocks puts together: each block writes its part and arrives, and the
 * block that completes the count reads all parts. No block waits.
 *
 * One thread orders memory for its block. The first barrier orders all threads' writes before its fence, so a
 * block that sees the count sees the parts; its second fence orders the other blocks' parts before all reads
 * of this block after the second barrier (PTX ISA, memory consistency model: fences are cumulative, and
 * barriers are part of causality order). */

#include "cuda/device/simt.h"

/* The block adds n to a counter, which is 0 before the first block and again after the last. True: the sum is
 * `all`, and all parts may be read. All threads call it with the same arguments; `shared_flag` is in the
 * block's shared memory. */
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
