/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_AVX512_H
#define CPU_LANES_AVX512_H

/* Eight lanes with AVX-512 VNNI on 256-bit vectors: four products of bytes are added to a 32-bit lane in one
 * instruction, without going through 16 bits, and there are twice as many registers. Everything else is the
 * same as for AVX2. */

#define LANES_NAME "avx512"
#if defined(LANES_PAIR)
#define LANES_NAMED(id) id##_avx512_pair
#else
#define LANES_NAMED(id)     id##_avx512
#define LANES_ASKS_IN_PARTS /* tile.h */
#endif

#define LANES_VNNI
#define LANES_ADD_WORDS _mm256_dpwssd_epi32

#include "cpu/lanes/avx2.h"

#endif
