/* SPDX-License-Identifier: MIT */
#ifndef WORKER_MODEL_JINJA_ARENA_H
#define WORKER_MODEL_JINJA_ARENA_H

/* Memory that is freed all at once, up to a limit. */

#include <stddef.h>

struct arena_block;

struct arena {    /* set `limit`, the rest zero */
    size_t limit; /* bytes */
    size_t used;
    struct arena_block *blocks; /* the newest first */
};

/* Zeroed memory, aligned for any type; NULL beyond the limit or when the machine has none. */
void *jinja_arena_alloc(struct arena *arena, size_t size);
void jinja_arena_deinit(struct arena *arena);

#endif
