/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_MEMORY_H
#define CPU_MEMORY_MEMORY_H

/* The backend's memory: zeroed mappings, taken while it opens and released together when it closes. Between
 * two steps the contents of some of them may be forgotten, and their pages go back to the system. */

#include <stddef.h>
#include <stdint.h>

#include "common/system/available.h"

struct memory_piece;

/* A zeroed one is empty and ready. */
struct memory {
    struct memory_piece *pieces;
    size_t total;       /* bytes taken */
    size_t shared;      /* further bytes that all sharers have together: weights */
    size_t reserved;    /* and those of others: prefix store, other workers' weights */
    uint32_t n_sharers; /* processes that divide what is available, this one included; 0 is 1 */
};

/* Takes `size` zero bytes, aligned to a page at least; large pieces ask for huge pages. Pages are committed
 * when first written. 0 or -ENOMEM. */
int memory_take(struct memory *memory, size_t size, void **ret_piece);

/* The same for contents that only a step under way needs. */
int memory_take_scratch(struct memory *memory, size_t size, void **ret_piece);

/* Gives the whole pages of a range back to the system: they hold zeros from now on, and are committed again
 * when they are written. The range lies in a piece. Returns how many of its bytes were committed. */
uint64_t memory_forget(void *start, size_t size);

/* The same for everything of memory_take_scratch. No step is under way. */
uint64_t memory_forget_scratch(struct memory *memory);

void memory_deinit(struct memory *memory);

/* The part of the total that the sharers divide: without what they have together. */
uint64_t memory_divided(const struct memory *memory, const struct available *available);

/* Bytes that the KV cache may still take: half of an equal part of what the sharers can have (what is free
 * plus what they have), minus what this one has. Whatever is taken by then, together they stay below the
 * total. */
uint64_t memory_share(const struct memory *memory, const struct available *available);

#endif
