/* SPDX-License-Identifier: MIT */
/* The choice among the builds of the kernels, which kernels_builds_*.c lists. */

#include "cpu/kernels/kernels.h"

#include <string.h>

const struct kernels *kernels_by_name(const char *name)
{
    const struct kernels *kernels;
    for (uint32_t i = 0; (kernels = kernels_at(i)); i++)
        if (!name || strcmp(kernels->name, name) == 0)
            return kernels;
    return NULL;
}
