/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_LANES_AVX512_H
#define WORKER_CPU_LANES_AVX512_H

/* Eight lanes with AVX-512 VNNI on 256-bit vectors: four products of bytes are added to a 32-bit lane in one
 * instruction, without the detour over 16 bits, and there are twice as many registers. All else is AVX2's. */

#define LANES_NAME      "avx512"
#define LANES_NAMED(id) id##_avx512

#include "worker/cpu/lanes_avx2.h"

LANES_INLINE i32x8 dot_unsigned(const u8x32 *w, int n_chunks, int max_weight, const int8_t *x, i32x8 factor)
{
    (void)max_weight;
    /* Two sums, so that an addition need not wait for the one before it. */
    __m256i sums[2] = {_mm256_setzero_si256(), _mm256_setzero_si256()};
    UNROLLED
    for (int c = 0; c < n_chunks; c++)
        sums[c % 2] = _mm256_dpbusd_epi32(sums[c % 2], (__m256i)w[c], four_activations(x + 4 * c));
    return ((i32x8)sums[0] + (i32x8)sums[1]) * factor;
}

LANES_INLINE i32x8 dot_signed(const u8x32 *w, int n_chunks, const int8_t *x)
{
    __m256i sum = _mm256_setzero_si256();
    UNROLLED
    for (int c = 0; c < n_chunks; c++) {
        __m256i v = (__m256i)w[c];
        sum = _mm256_dpbusd_epi32(sum, _mm256_abs_epi8(v), _mm256_sign_epi8(four_activations(x + 4 * c), v));
    }
    return (i32x8)sum;
}

#endif
