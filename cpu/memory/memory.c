/* SPDX-License-Identifier: MIT */
/* Anonymous mappings in a list. Nothing is given back singly: the backend takes all it needs when it opens,
 * so that serving allocates nothing of size. */

#include "cpu/memory/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

struct memory_piece {
    struct memory_piece *next;
    void *mapping;
    size_t size;
};

int memory_take(struct memory *memory, size_t size, void **ret_piece)
{
    /* Room to begin on a huge page's border, for pieces that fill some. */
    size_t slack = size >= 2 * HUGE_PAGE ? HUGE_PAGE : 0;
    if (size > SIZE_MAX - slack)
        return -ENOMEM;
    struct memory_piece *piece = malloc(sizeof *piece);
    if (!piece)
        return -ENOMEM;
    piece->size = size + slack ? size + slack : 1;
    piece->mapping =
        mmap(NULL, piece->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (piece->mapping == MAP_FAILED) {
        free(piece);
        return -ENOMEM;
    }
    piece->next = memory->pieces;
    memory->pieces = piece;
    memory->total += size;
    uint8_t *start = piece->mapping;
    if (slack) {
        start += -(uintptr_t)start % HUGE_PAGE;
        madvise(start, size, MADV_HUGEPAGE); /* advice: a kernel without them is no error */
    }
    *ret_piece = start;
    return 0;
}

void memory_deinit(struct memory *memory)
{
    while (memory->pieces) {
        struct memory_piece *piece = memory->pieces;
        memory->pieces = piece->next;
        munmap(piece->mapping, piece->size);
        free(piece);
    }
    memory->total = 0;
}

uint64_t memory_divided(const struct memory *memory, const struct available *available)
{
    uint64_t together = (uint64_t)memory->shared + memory->reserved;
    return available->total > together ? available->total - together : 0;
}

/* What one of n may have beyond what it has. */
static uint64_t part_of(uint64_t all, uint64_t n, const struct memory *memory)
{
    return all / n > memory->total ? all / n - memory->total : 0;
}

uint64_t memory_share(const struct memory *memory, const struct available *available)
{
    uint64_t n = memory->n_sharers ? memory->n_sharers : 1;
    uint64_t total = memory_divided(memory, available);
    uint64_t siblings = n > 1 ? available->siblings : 0;
    uint64_t left = part_of(total, n, memory);
    left -= left / 8; /* workspaces, requests, the model's file */
    uint64_t half = part_of(available->now + siblings + memory->total, n, memory) / 2;
    half = half < available->now ? half : available->now;
    return left < half ? left : half;
}
