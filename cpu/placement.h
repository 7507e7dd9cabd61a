/* SPDX-License-Identifier: MIT */
#ifndef CPU_PLACEMENT_H
#define CPU_PLACEMENT_H

/* Where the pieces of an arena lie. The same code runs twice: without memory, to learn how much is needed and
 * what is where, then with it. */

#include <stddef.h>
#include <stdint.h>

#include "common/hash.h"

struct placement {
    uint8_t *base;   /* NULL: only counts */
    size_t size;     /* so far */
    uint64_t layout; /* of all pieces so far: equal for equal sizes and kinds in the same order */
};

#define PLACEMENT_ALIGNMENT ((size_t)64) /* a line of the cache */

/* The next `size` bytes, whose content is of this kind, or NULL when it only counts. */
static inline void *placement_take(struct placement *placement, size_t size, uint64_t kind)
{
    const uint64_t piece[] = {placement->layout, size, kind};
    size_t at = (placement->size + PLACEMENT_ALIGNMENT - 1) / PLACEMENT_ALIGNMENT * PLACEMENT_ALIGNMENT;
    placement->size = at + size;
    placement->layout = hash64(piece, sizeof piece, 0);
    return placement->base ? placement->base + at : NULL;
}

#endif
