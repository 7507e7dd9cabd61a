/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_BINS_H
#define CUDA_KERNELS_SAMPLING_BINS_H

/* Candidates counted by their distance from the best, in bins of equal width in logit / temperature, for
 * kernels only: one pass over all candidates shows which few need exact treatment. */

#include "cuda/device/simt.h"

#define BINS 2048
#define BIN_WIDTH                                                                                            \
    64.0f /* per unit of logit / temperature: 32 units in all                                                \
           */

/* Never larger for a larger logit. */
__device__ static inline uint32_t bin_of(float logit, float best, float temperature)
{
    const float distance = (best - logit) / temperature * BIN_WIDTH;
    return distance < BINS - 1 ? (uint32_t)distance : BINS - 1;
}

/* The first bin at which the amounts reach the target (BINS − 2: none), and the sum of all amounts. One warp,
 * a lane for BINS / 32 neighbouring bins. */
template <class T>
__device__ static inline uint32_t find_bin(const T *amounts, uint64_t target, uint64_t *ret_total)
{
    const uint32_t lane = threadIdx.x % SIMT_LANES, each = BINS / SIMT_LANES;
    uint64_t own = 0;
    for (uint32_t i = 0; i < each; i++)
        own += amounts[lane * each + i];
    uint64_t sum = own;
    for (uint32_t apart = 1; apart < SIMT_LANES; apart *= 2) {
        uint64_t other = simt_shuffle(sum, (lane - apart) % SIMT_LANES);
        sum += lane >= apart ? other : 0;
    }
    uint32_t bin = BINS - 2;
    if (sum >= target && sum - own < target) {
        uint64_t left = target - (sum - own);
        for (bin = lane * each; amounts[bin] < left; bin++)
            left -= amounts[bin];
    }
    *ret_total = simt_shuffle(sum, SIMT_LANES - 1);
    const uint32_t reached = simt_ballot(sum >= target);
    uint32_t lane_of = 0; /* the first that reaches it */
    while (reached && !(reached >> lane_of & 1))
        lane_of++;
    return simt_shuffle(bin, lane_of);
}

#endif
