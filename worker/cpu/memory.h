/* SPDX-License-Identifier: MIT */
#ifndef WORKER_CPU_MEMORY_H
#define WORKER_CPU_MEMORY_H

/* The backend's memory: zeroed mappings taken while it opens and given back together when it closes. */

#include <stddef.h>

struct memory_piece;

/* A zeroed one is empty and ready. */
struct memory {
    struct memory_piece *pieces;
    size_t total; /* bytes taken */
};

/* Takes `size` zero bytes, aligned to a page at least; large pieces ask for huge pages. Pages are committed
 * when first written. 0 or -ENOMEM. */
int memory_take(struct memory *memory, size_t size, void **ret_piece);

void memory_deinit(struct memory *memory);

/* Bytes the machine could give without swapping (MemAvailable); 0 when it does not say. */
size_t memory_available(void);

#endif
