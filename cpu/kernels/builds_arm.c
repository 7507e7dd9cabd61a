/* SPDX-License-Identifier: MIT */
/* The builds of the kernels in a program for 64-bit ARM, best first: dot products of bytes with the matrix
 * products of i8mm and without, NEON as every such processor has it, plain C.
 *
 * The kernel says what all cores can do, those of the smaller kind included. */

#include <sys/auxv.h>

#include "cpu/kernels/kernels.h"

/* Bits of AT_HWCAP and AT_HWCAP2, as asm/hwcap.h has them; headers may be older than the processor. */
#define HAS_DOTPROD (1ul << 20)
#define HAS_I8MM    (1ul << 13)

extern const struct kernels kernels_i8mm, kernels_dotprod, kernels_neon, kernels_portable;

const struct kernels *kernels_at(uint32_t i)
{
    bool dotprod = getauxval(AT_HWCAP) & HAS_DOTPROD;
    bool i8mm = getauxval(AT_HWCAP2) & HAS_I8MM;
    const struct kernels *tables[4];
    uint32_t n = 0;
    if (dotprod && i8mm)
        tables[n++] = &kernels_i8mm;
    if (dotprod)
        tables[n++] = &kernels_dotprod;
    tables[n++] = &kernels_neon;
    tables[n++] = &kernels_portable;
    return i < n ? tables[i] : NULL;
}
