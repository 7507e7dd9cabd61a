/* SPDX-License-Identifier: MIT */
#ifndef PROTO_ARENA_H
#define PROTO_ARENA_H

/* Private to proto/: memory for the arrays of one decoded message. Pointers stay where they are until the
 * next reset. A zeroed arena is empty and ready. */

#include <stddef.h>

struct arena_chunk;
struct arena {
    struct arena_chunk *chunks; /* the one in use first */
};

/* Zeroed memory for n items, aligned for anything; NULL when there is none. n ≥ 1. */
void *arena_take(struct arena *arena, size_t n, size_t size);

/* Forgets everything; keeps one small chunk for the next message. */
void arena_reset(struct arena *arena);
void arena_deinit(struct arena *arena);

#endif
