/* SPDX-License-Identifier: MIT */
#ifndef CPU_LANES_LANES_H
#define CPU_LANES_LANES_H

/* Selects the lanes of this build (meson.build defines which), and whether loops of constant length are
 * unrolled. Plain C and sanitized builds do not unroll: compilation would take minutes, for no gain. */

#if defined(LANES_UNROLL)
#define UNROLLED _Pragma("GCC unroll 8")
#else
#define UNROLLED
#endif

#if defined(LANES_AVX512)
#include "cpu/lanes/avx512.h"
#elif defined(LANES_AVXVNNI)
#include "cpu/lanes/avxvnni.h"
#elif defined(LANES_AVX2)
#include "cpu/lanes/avx2.h"
#elif defined(LANES_NEON)
#include "cpu/lanes/neon.h"
#else
#include "cpu/lanes/portable.h"
#endif

#endif
