/* SPDX-License-Identifier: MIT */
#ifndef CPU_KERNELS_PACKING_INTERNAL_H
#define CPU_KERNELS_PACKING_INTERNAL_H

/* Shared by the packings of formats: chunks, and the names for the table. */

#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/packing.h"

#define ROWS KERNELS_ROWS

#define PACKINGS(name, id, number, elements, bytes)                                                          \
    void pack_##id(const uint8_t *const rows[8], uint32_t n_blocks, uint8_t *out);                           \
    void unpack_##id(const uint8_t *group, uint32_t n_blocks, float *out);
FORMATS(PACKINGS)
#undef PACKINGS

/* The offset of column k of a run of chunks for row r. */
static inline size_t chunk_at(uint32_t k, int r)
{
    return (size_t)(k / 4) * 32 + (size_t)r * 4 + k % 4;
}

/* Packs n columns of one row into a run of chunks. */
static inline void put_chunks(const void *columns, uint32_t n, int r, uint8_t *chunks)
{
    for (uint32_t k = 0; k < n; k += 4)
        memcpy(chunks + chunk_at(k, r), (const uint8_t *)columns + k, 4);
}

#endif
