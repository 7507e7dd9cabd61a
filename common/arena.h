/* SPDX-License-Identifier: MIT */
#ifndef COMMON_ARENA_H
#define COMMON_ARENA_H

/* Memory that is freed all at once: for one decoded message, one parsed template. Pointers stay valid until
 * the next reset. A zeroed arena is empty, has no limit, and is ready. */

#include <stdbool.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
    size_t limit; /* bytes that may be taken; 0: unlimited */
    size_t used;
    struct arena_chunk *chunks; /* the current one first */
    /* Why an allocation failed since the last reset, for callers that check only at the end. */
    bool limited; /* the limit was reached */
    bool starved; /* the machine had no memory */
};

/* Zeroed memory for n items, aligned for any type; NULL: beyond the limit, or out of memory. n ≥ 1. */
void *arena_take(struct arena *arena, size_t n, size_t size);

/* Drops everything; keeps one small chunk for the next use. */
void arena_reset(struct arena *arena);
void arena_deinit(struct arena *arena);

#endif
