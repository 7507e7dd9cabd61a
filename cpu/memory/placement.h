/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_PLACEMENT_H
#define CPU_MEMORY_PLACEMENT_H

/* Lays out the pieces of an arena. The same code runs twice: without memory, to compute sizes and offsets,
 * then with it. */

#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

struct placement {
    uint8_t *base;   /* NULL: only count */
    size_t size;     /* so far */
    uint64_t layout; /* hash of all pieces so far: equal if sizes, kinds and order are equal */
};

#define PLACEMENT_ALIGNMENT ((size_t)64) /* a line of the cache */

/* The next `size` bytes, with content of this kind; NULL while only counting. */
static inline void *placement_take(struct placement *placement, size_t size, uint64_t kind)
{
    const uint64_t piece[] = {placement->layout, size, kind};
    size_t at = (placement->size + PLACEMENT_ALIGNMENT - 1) / PLACEMENT_ALIGNMENT * PLACEMENT_ALIGNMENT;
    placement->size = at + size;
    placement->layout = hash64(piece, sizeof piece, 0);
    return placement->base ? placement->base + at : NULL;
}

#endif
