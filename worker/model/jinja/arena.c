/* SPDX-License-Identifier: MIT */
/* An arena: blocks of at least 16 KiB, filled from the front, freed together.
 *
 * Nothing is ever given back before the end, so the limit bounds all that a template may ask for, however it
 * goes about it. */

#include "worker/model/jinja/arena.h"

#include <stdalign.h>
#include <stdlib.h>

struct arena_block {
    struct arena_block *older;
    size_t size, used;
    alignas(max_align_t) char data[];
};

enum { BLOCK_SIZE = 16 * 1024 };

void *jinja_arena_alloc(struct arena *arena, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > arena->limit || arena->used > arena->limit - size)
        return NULL;
    size = (size + align - 1) & ~(align - 1);
    struct arena_block *block = arena->blocks;
    if (!block || block->size - block->used < size) {
        size_t room = size > BLOCK_SIZE ? size : BLOCK_SIZE;
        block = calloc(1, sizeof *block + room);
        if (!block)
            return NULL;
        block->size = room;
        block->older = arena->blocks;
        arena->blocks = block;
    }
    void *memory = block->data + block->used;
    block->used += size;
    arena->used += size;
    return memory;
}

void jinja_arena_deinit(struct arena *arena)
{
    for (struct arena_block *block = arena->blocks, *older; block; block = older) {
        older = block->older;
        free(block);
    }
    arena->blocks = NULL;
    arena->used = 0;
}
