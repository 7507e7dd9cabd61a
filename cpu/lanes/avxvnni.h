/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_AVXVNNI_H
#define CPU_LANES_AVXVNNI_H

/* Eight lanes with AVX-VNNI, which processors without AVX-512 have: AVX2, and the instructions that add four
 * products of bytes to a 32-bit lane. */

#define LANES_NAME      "avxvnni"
#define LANES_NAMED(id) id##_avxvnni

#define LANES_VNNI
#define LANES_ADD_WORDS _mm256_dpwssd_avx_epi32

#include "cpu/lanes/avx2.h"

#endif
