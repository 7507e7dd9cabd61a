/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_LANES_H
#define WORKER_CPU_LANES_H

/* The lanes that the kernels are being compiled for: the build defines which (meson.build). */

#if defined(LANES_AVX2)
#include "worker/cpu/lanes_avx2.h"
#else
#include "worker/cpu/lanes_portable.h"
#endif

#endif
