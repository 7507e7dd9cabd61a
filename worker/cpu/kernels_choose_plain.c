/* SPDX-License-Identifier: MIT */
/* The choice where only plain C was built. */

#include "worker/cpu/kernels.h"

extern const struct kernels kernels_portable;

const struct kernels *kernels_choose(bool portable)
{
    (void)portable;
    return &kernels_portable;
}
