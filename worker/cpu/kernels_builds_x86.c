/* SPDX-License-Identifier: MIT */
/* The builds of the kernels in an x86 program, best first: AVX-512 VNNI, AVX2 with FMA and half-precision
 * conversion, plain C. */

#include "worker/cpu/kernels.h"

extern const struct kernels kernels_avx512, kernels_avx2, kernels_portable;

const struct kernels *kernels_at(uint32_t i)
{
    __builtin_cpu_init();
    bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vnni");
    const struct kernels *tables[4];
    uint32_t n = 0;
    if (avx2 && avx512)
        tables[n++] = &kernels_avx512;
    if (avx2)
        tables[n++] = &kernels_avx2;
    tables[n++] = &kernels_portable;
    return i < n ? tables[i] : NULL;
}
