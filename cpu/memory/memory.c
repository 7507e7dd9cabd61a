/* SPDX-License-Identifier: MIT */
/* Anonymous mappings in a list. No mapping is released singly: the backend takes all it needs when it opens,
 * so that serving allocates nothing of size. What is forgotten in between are contents: the pages behind
 * addresses, which the kernel provides again, zeroed, when they are touched. */

#include "cpu/memory/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

struct memory_piece {
    struct memory_piece *next;
    void *mapping;
    size_t size;
    bool scratch;
};

#define LOOK_PAGES 4096 /* at once */

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
    piece->scratch = false;
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

int memory_take_scratch(struct memory *memory, size_t size, void **ret_piece)
{
    int r = memory_take(memory, size, ret_piece);
    if (r == 0)
        memory->pieces->scratch = true;
    return r;
}

/* Bytes of whole pages that are committed. */
static uint64_t committed(uint8_t *start, size_t size, size_t page)
{
    unsigned char pages[LOOK_PAGES];
    uint64_t n_committed = 0;
    for (size_t done = 0; done < size; done += LOOK_PAGES * page) {
        const size_t left = (size - done) / page, n = left < LOOK_PAGES ? left : LOOK_PAGES;
        if (mincore(start + done, n * page, pages) < 0)
            return 0;
        for (size_t i = 0; i < n; i++)
            n_committed += pages[i] & 1;
    }
    return n_committed * page;
}

uint64_t memory_forget(void *start, size_t size)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t before = -(uintptr_t)start % page;
    if (size < before + page)
        return 0;
    uint8_t *first = (uint8_t *)start + before;
    size = (size - before) / page * page;
    const uint64_t bytes = committed(first, size, page);
    return bytes > 0 && madvise(first, size, MADV_DONTNEED) == 0 ? bytes : 0;
}

uint64_t memory_forget_scratch(struct memory *memory)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint64_t bytes = 0;
    for (const struct memory_piece *piece = memory->pieces; piece; piece = piece->next)
        if (piece->scratch) /* a mapping ends with a page, which is all its own */
            bytes += memory_forget(piece->mapping, (piece->size + page - 1) / page * page);
    return bytes;
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
