/* SPDX-License-Identifier: MIT */
/* The builds of the kernels in an x86 program, best first: AVX-512 VNNI with the tiles of AMX and without,
 * AVX2 with FMA and half-precision conversion, plain C. */

#include <sys/syscall.h>
#include <unistd.h>

#include "cpu/kernels/kernels.h"

extern const struct kernels kernels_amx, kernels_avx512, kernels_avxvnni, kernels_avx2, kernels_portable;

/* Tiles have eight kilobytes of state, which Linux gives a process that asks (arch_prctl(2)); it holds for
 * threads made later. A process that confined itself meanwhile keeps what it was told. */
static bool tiles_allowed(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    static int allowed = -1;
    if (allowed < 0)
        allowed = syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
    return allowed;
}

const struct kernels *kernels_at(uint32_t i)
{
    __builtin_cpu_init();
    bool avx2 =
        __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
    bool avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vnni");
    bool amx = __builtin_cpu_supports("amx-tile") && __builtin_cpu_supports("amx-int8");
    const struct kernels *tables[5];
    uint32_t n = 0;
    if (avx2 && avx512 && amx && tiles_allowed())
        tables[n++] = &kernels_amx;
    if (avx2 && avx512)
        tables[n++] = &kernels_avx512;
    if (avx2 && __builtin_cpu_supports("avxvnni"))
        tables[n++] = &kernels_avxvnni;
    if (avx2)
        tables[n++] = &kernels_avx2;
    tables[n++] = &kernels_portable;
    return i < n ? tables[i] : NULL;
}
