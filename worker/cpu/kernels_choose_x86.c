/* SPDX-License-Identifier: MIT */
/* The choice on x86: AVX2 with FMA and half-precision conversion, or plain C. */

#include "worker/cpu/kernels.h"

extern const struct kernels kernels_avx2, kernels_portable;

const struct kernels *kernels_choose(bool portable)
{
    __builtin_cpu_init();
    bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    return avx2 && !portable ? &kernels_avx2 : &kernels_portable;
}
