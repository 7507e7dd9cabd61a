/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_ATTENTION_KV_SCALED_H
#define CUDA_KERNELS_ATTENTION_KV_SCALED_H

/* The common parts of the types with scales (kv_q8.h, kv_q4.h). After the quants of a part come its scales,
 * f16, one for KV_SCALED neighbouring dims of a position:
 *
 *   [⌈dim / 32⌉][32 positions]
 *
 * Quants and scales are those that cpu/memory/kv_quants.c computes from the same numbers, within the range of
 * f16, and depend on nothing else.
 *
 * Quants are exact as halves. Keys are multiplied as quants, the dims of one scale at a time, and the sums by
 * the scale: nothing is rounded beyond float. Values are summed over positions with different scales, so they
 * become halves, like numbers in f16. */

#include "cuda/kernels/attention/kv.h"

#define KV_SCALED     32
#define KV_SCALE_NAN  0x7e00
#define KV_1024       0x64646464u /* the upper bytes of halves: 1024 + the lower byte */
#define KV_LOWER_HALF 0x4140      /* bytes 0 and 1 as the lower bytes of two halves */
#define KV_UPPER_HALF 0x4342

/* Widens four bytes to four halves, and adds `less`, which has −1024 or less twice. */
__device__ static inline void kv_widen(uint32_t bytes, uint32_t less, uint32_t ret_halves[2])
{
    ret_halves[0] = simt_add_halves(simt_permute(bytes, KV_1024, KV_LOWER_HALF), less);
    ret_halves[1] = simt_add_halves(simt_permute(bytes, KV_1024, KV_UPPER_HALF), less);
}

#endif
