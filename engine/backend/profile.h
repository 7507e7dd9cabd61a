/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_BACKEND_PROFILE_H
#define ENGINE_BACKEND_PROFILE_H

/* The measurements of a profiled backend: the kernels that ran, by name. */

#include <stdio.h>
#include <string.h>

#include "engine/backend/backend.h"

#define PROFILE_MOST 64

struct profile {
    struct backend_kernel kernels[PROFILE_MOST];
    uint32_t n;
    struct backend_kernel taken[PROFILE_MOST];
};

/* The row with that name, created if there is none. The last row is for all names beyond PROFILE_MOST. */
static inline struct backend_kernel *profile_kernel(struct profile *profile, const char *name)
{
    for (uint32_t i = 0; i < profile->n; i++)
        if (strncmp(profile->kernels[i].name, name, BACKEND_KERNEL_NAME - 1) == 0)
            return &profile->kernels[i];
    if (profile->n == PROFILE_MOST)
        return &profile->kernels[PROFILE_MOST - 1];
    struct backend_kernel *kernel = &profile->kernels[profile->n++];
    memset(kernel, 0, sizeof *kernel);
    snprintf(kernel->name, sizeof kernel->name, "%.*s", BACKEND_KERNEL_NAME - 1,
             profile->n == PROFILE_MOST ? "(others)" : name);
    return kernel;
}

/* Returns all rows, valid until the next call, and starts measuring again. */
static inline uint32_t profile_take(struct profile *profile, const struct backend_kernel **ret_kernels)
{
    const uint32_t n = profile->n;
    memcpy(profile->taken, profile->kernels, n * sizeof *profile->kernels);
    profile->n = 0;
    *ret_kernels = profile->taken;
    return n;
}

#endif
