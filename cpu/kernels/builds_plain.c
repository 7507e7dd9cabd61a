/* SPDX-License-Identifier: MIT */
/* Where the kernels were built in plain C only: processors that have no header of lanes. */

#include "cpu/kernels/kernels.h"

extern const struct kernels kernels_portable;

const struct kernels *kernels_at(uint32_t i)
{
    return i == 0 ? &kernels_portable : NULL;
}
