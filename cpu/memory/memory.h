/* SPDX-License-Identifier: MIT */
#ifndef CPU_MEMORY_MEMORY_H
#define CPU_MEMORY_MEMORY_H

/* The backend's memory: zeroed mappings, allocated while it opens and released together when it closes.
 * Between two steps the contents of some may be discarded, which returns their pages to the system. */

#include <stddef.h>
#include <stdint.h>

#include "common/system/available.h"

struct memory_piece;

/* A zeroed one is empty and ready. */
struct memory {
    struct memory_piece *pieces;
    size_t total;       /* bytes allocated */
    size_t shared;      /* further bytes that all sharers have in common: weights */
    size_t reserved;    /* and bytes of others: prefix store, other workers' weights */
    uint32_t n_sharers; /* processes that divide the available memory, including this one; 0 means 1 */
};

/* Allocates `size` zero bytes, aligned to at least a page; large pieces request huge pages. Pages are
 * committed when first written. 0 or -ENOMEM. */
int memory_take(struct memory *memory, size_t size, void **ret_piece);

/* The same for contents that are only needed during a step. */
int memory_take_scratch(struct memory *memory, size_t size, void **ret_piece);

/* Returns the whole pages of a range, which lies in one piece, to the system: they are zero from now on, and
 * are committed again when written. Returns how many of its bytes were committed. */
uint64_t memory_forget(void *start, size_t size);

/* The same for all memory of memory_take_scratch. No step may be under way. */
uint64_t memory_forget_scratch(struct memory *memory);

void memory_deinit(struct memory *memory);

/* The part of the total that the sharers divide: all but the memory that they have in common. */
uint64_t memory_divided(const struct memory *memory, const struct available *available);

/* Bytes that the KV cache may still allocate: half of an equal part of the memory for the sharers (what is
 * free plus what they have), minus what this process has. However much is allocated by then, together they
 * stay below the total. */
uint64_t memory_share(const struct memory *memory, const struct available *available);

#endif
