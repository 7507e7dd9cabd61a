/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_EXPERT_TILES_H
#define CUDA_KERNELS_EXPERT_TILES_H

/* How many places a tile of assignments has, shared by the kernel that makes tiles and the one that
 * multiplies them. */

#include "cuda/kernels/kernels.h"

#define EXPERT_TILE_THIN KERNELS_LEAST_TILE
#define EXPERT_TILE_WIDE 64

/* 0: there are no tiles, and each assignment is multiplied separately. Both kinds of tiles give the same
 * bits. */
static inline uint32_t expert_tile_rows(const struct device_assignments *assignments, uint32_t n_rows,
                                        bool reproducible)
{
    if (!reproducible && n_rows <= KERNELS_GEMV)
        return 0;
    const uint32_t to_each = n_rows * assignments->n_used / assignments->n_experts;
    return to_each > 2 * EXPERT_TILE_THIN ? EXPERT_TILE_WIDE : EXPERT_TILE_THIN;
}

#endif
