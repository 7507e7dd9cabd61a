/* SPDX-License-Identifier: MIT */
/* A bump allocator in chunks.
 *
 * Most messages need a few hundred bytes, a prompt of ids up to 2 MiB. One small chunk is kept over a reset,
 * so that the hot path never allocates; larger ones live for one message, so that one large prompt does not
 * weigh on a session for the rest of its life. Nothing is given back in between, so the limit bounds all that
 * a template may ask for, however it goes about it. */

#include "common/arena.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define SMALL_CHUNK 16384

struct arena_chunk {
    struct arena_chunk *next;
    size_t used, cap;
    _Alignas(16) uint8_t data[];
};

void *arena_take(struct arena *arena, size_t n, size_t size)
{
    size_t need;
    if (__builtin_mul_overflow(n, size, &need) || need > SIZE_MAX / 2)
        return NULL;
    if (arena->limit > 0 && (need > arena->limit || arena->used > arena->limit - need)) {
        arena->limited = true;
        return NULL;
    }
    need = (need + 15) & ~(size_t)15;
    struct arena_chunk *chunk = arena->chunks;
    if (!chunk || chunk->cap - chunk->used < need) {
        size_t cap = need > SMALL_CHUNK ? need : SMALL_CHUNK;
        chunk = malloc(sizeof *chunk + cap);
        if (!chunk) {
            arena->starved = true;
            return NULL;
        }
        chunk->next = arena->chunks;
        chunk->used = 0;
        chunk->cap = cap;
        arena->chunks = chunk;
    }
    void *memory = chunk->data + chunk->used;
    chunk->used += need;
    arena->used += need;
    return memset(memory, 0, need);
}

void arena_reset(struct arena *arena)
{
    struct arena_chunk *kept = NULL;
    for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (!kept && chunk->cap == SMALL_CHUNK) {
            kept = chunk;
            kept->used = 0;
        } else {
            free(chunk);
        }
    }
    if (kept)
        kept->next = NULL;
    arena->chunks = kept;
    arena->used = 0;
    arena->limited = arena->starved = false;
}

void arena_deinit(struct arena *arena)
{
    for (struct arena_chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    arena->chunks = NULL;
    arena->used = 0;
    arena->limited = arena->starved = false;
}
