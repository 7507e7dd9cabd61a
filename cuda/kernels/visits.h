/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_VISITS_H
#define CUDA_KERNELS_VISITS_H

/* How many places a tile of visits has, which those who make tiles and those who multiply them agree on. */

#include "cuda/kernels/kernels.h"

#define VISITS_THIN KERNELS_LEAST_TILE
#define VISITS_WIDE 64

/* 0: there are no tiles, each visit is multiplied by itself. Both kinds of tiles give the same bits. */
static inline uint32_t visits_tile_of(const struct device_visits *visits, uint32_t n_rows, bool reproducible)
{
    if (!reproducible && n_rows <= KERNELS_GEMV)
        return 0;
    const uint32_t to_each = n_rows * visits->n_used / visits->n_experts;
    return to_each > 2 * VISITS_THIN ? VISITS_WIDE : VISITS_THIN;
}

#endif
