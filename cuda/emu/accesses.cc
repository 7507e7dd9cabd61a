/* SPDX-License-Identifier: MIT */
/* What warps do to memory, counted without a word of it in the kernels: in this build they are compiled as
 * for ThreadSanitizer, so a function is called before every load and store, and those functions are here.
 *
 * The threads of a warp run one after the other between two places where they meet. What they did in between
 * is put together again: accesses of one instruction (its return address), each lane's first of it, each
 * lane's second and so on, are the accesses of the warp. Of the device's memory those take as many
 * transactions as sectors of 32 bytes are touched. Of shared memory they take a pass for each further word
 * that lies in a bank with others; 8 and 16 bytes a lane go in two and four parts, as there are 32 banks of
 * four bytes. What lies elsewhere, arguments and what a thread has on its stack, is in registers on a GPU.
 *
 * The host's compiler is not nvcc: what it keeps in registers is about the same, not exactly. */

#include "cuda/emu/emu.h"

#include "engine/backend/backend.h"

#define LANES        32
#define BANKS        32
#define WORD         4
#define SECTOR_BYTES 32
#define MOST_BYTES   16 /* of a lane's access */

struct access {
    uint64_t instruction;
    uint32_t lane, nth; /* in what the lane has done since the last meeting */
    uintptr_t at;
    uint32_t bytes;
    bool is_shared;
};

struct list {
    struct access *items;
    uint32_t n, room;
};

/* One instruction of a warp: where each lane that takes part goes. */
struct together {
    uintptr_t at[LANES];
    uint32_t lanes, bytes; /* a bit for each lane */
    bool is_shared;
};

static struct list lists[EMU_MOST_THREADS / LANES]; /* by warp */

static struct emu_regions device_memory;

void emu_accesses_begin(const struct emu_memory *allocations, const struct emu_memory *pinned)
{
    emu_regions_fill(&device_memory, allocations);
}

/* ---- noting ---- */

static bool lies_in(uintptr_t at, const void *from, size_t bytes)
{
    return at - (uintptr_t)from < bytes;
}

static void note(uint64_t instruction, uintptr_t at, uint32_t bytes)
{
    /* Most are of the thread's own stack, which lies above this frame (stacks.cc). */
    if (!emu_self || lies_in(at, __builtin_frame_address(0), EMU_STACK_BYTES / 2))
        return;
    const bool is_shared = lies_in(at, emu_block.shared, emu_block.shared_bytes);
    if (!is_shared && !emu_regions_hold(&device_memory, at))
        return;
    if (!is_shared && emu_block.overlaps && !emu_self->started)
        emu_die("it touches the device's memory before simt_start, beside the launch before it");
    struct list *list = &lists[emu_self->warp];
    if (list->n == list->room) {
        list->room = list->room ? 2 * list->room : 1024;
        list->items = (struct access *)realloc(list->items, list->room * sizeof *list->items);
        if (!list->items)
            emu_die("not enough memory to record a warp's accesses");
    }
    if (is_shared)
        at -= (uintptr_t)emu_block.shared; /* banks are counted from there */
    list->items[list->n] = access{instruction, emu_self->lane, list->n, at, bytes, is_shared};
    list->n++;
}

/* Longer ones, and such as are not aligned, go in the largest parts that are. */
static void note_range(const void *instruction, uintptr_t at, size_t bytes)
{
    for (uint64_t part = 0; bytes > 0; part++) {
        uint32_t size = MOST_BYTES;
        while (size > bytes || at % size != 0)
            size /= 2;
        note((uint64_t)(uintptr_t)instruction | part << 48, at, size);
        at += size;
        bytes -= size;
    }
}

/* ---- counting ---- */

static void count_device(const struct together *together, struct backend_kernel *kernel)
{
    uintptr_t sectors[LANES];
    uint32_t n = 0;
    for (uint32_t lane = 0; lane < LANES; lane++) {
        if (!(together->lanes >> lane & 1))
            continue;
        const uintptr_t sector = together->at[lane] / SECTOR_BYTES;
        uint32_t i = n;
        while (i > 0 && sectors[i - 1] != sector)
            i--;
        if (i == 0)
            sectors[n++] = sector;
        kernel->asked += together->bytes;
    }
    kernel->sectors += n;
}

/* The passes that lanes first … end − 1 take: words of the fullest bank. */
static uint32_t passes_of(const struct together *together, uint32_t first, uint32_t end)
{
    uintptr_t words[LANES];
    uint32_t n = 0, in_bank[BANKS] = {}, most = 0;
    const uint32_t each = together->bytes > WORD ? together->bytes / WORD : 1;
    for (uint32_t i = 0; i < (end - first) * each; i++) {
        const uint32_t lane = first + i / each;
        if (!(together->lanes >> lane & 1))
            continue;
        const uintptr_t word = together->at[lane] / WORD + i % each;
        uint32_t known = n;
        while (known > 0 && words[known - 1] != word)
            known--;
        if (known > 0)
            continue;
        words[n++] = word;
        uint32_t *count = &in_bank[word % BANKS];
        most = ++*count > most ? *count : most;
    }
    return most;
}

static void count_shared(const struct together *together, struct backend_kernel *kernel)
{
    const uint32_t each = together->bytes > WORD ? together->bytes / WORD : 1, lanes = LANES / each;
    for (uint32_t first = 0; first < LANES; first += lanes) {
        const uint32_t passes = passes_of(together, first, first + lanes);
        kernel->passes += passes;
        kernel->conflicts += passes > 0 ? passes - 1 : 0;
    }
}

/* By instruction, lane, and the order in which it was done. */
static int by_instruction(const void *a, const void *b)
{
    const struct access *x = (const struct access *)a, *y = (const struct access *)b;
    if (x->instruction != y->instruction)
        return x->instruction < y->instruction ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return x->nth < y->nth ? -1 : 1;
}

/* All that lanes did by one instruction: items[0 … n − 1], lane after lane. */
static void count_instruction(const struct access *items, uint32_t n, struct backend_kernel *kernel)
{
    uint32_t next[LANES], end[LANES];
    for (uint32_t lane = 0, i = 0; lane < LANES; lane++) {
        for (next[lane] = i; i < n && items[i].lane == lane;)
            i++;
        end[lane] = i;
    }
    for (uint32_t done = 0; done < n;) {
        struct together together = {};
        for (uint32_t lane = 0; lane < LANES; lane++) {
            if (next[lane] == end[lane])
                continue;
            const struct access *access = &items[next[lane]++];
            together.at[lane] = access->at;
            together.lanes |= 1u << lane;
            together.bytes = access->bytes;
            together.is_shared = access->is_shared;
            done++;
        }
        if (together.is_shared)
            count_shared(&together, kernel);
        else
            count_device(&together, kernel);
    }
}

void emu_accesses_meet(uint32_t warp)
{
    struct list *list = &lists[warp];
    struct backend_kernel *kernel = emu_profile_current();
    if (list->n == 0)
        return;
    qsort(list->items, list->n, sizeof *list->items, by_instruction);
    for (uint32_t i = 0, end; i < list->n; i = end) {
        for (end = i + 1; end < list->n && list->items[end].instruction == list->items[i].instruction;)
            end++;
        count_instruction(list->items + i, end - i, kernel);
    }
    list->n = 0;
}

/* ---- what the compiler calls ---- */

#define HERE ((uint64_t)(uintptr_t)__builtin_return_address(0))

#define NOTED(name, size)                                                                                    \
    void __tsan_##name##size(void *at)                                                                       \
    {                                                                                                        \
        note(HERE, (uintptr_t)at, size);                                                                     \
    }
#define NOTED_RANGE(name, size)                                                                              \
    void __tsan_##name##size(void *at)                                                                       \
    {                                                                                                        \
        note_range(__builtin_return_address(0), (uintptr_t)at, size);                                        \
    }
#define ATOMIC(bits)                                                                                         \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)                  \
    {                                                                                                        \
        return *at;                                                                                          \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order)           \
    {                                                                                                        \
        note(HERE, (uintptr_t)at, bits / 8);                                                                 \
        *at = value;                                                                                         \
    }

extern "C" {
NOTED(read, 1)
NOTED(read, 2)
NOTED(read, 4)
NOTED(read, 8)
NOTED(read, 16)
NOTED(write, 1)
NOTED(write, 2)
NOTED(write, 4)
NOTED(write, 8)
NOTED(write, 16)
NOTED_RANGE(unaligned_read, 2)
NOTED_RANGE(unaligned_read, 4)
NOTED_RANGE(unaligned_read, 8)
NOTED_RANGE(unaligned_read, 16)
NOTED_RANGE(unaligned_write, 2)
NOTED_RANGE(unaligned_write, 4)
NOTED_RANGE(unaligned_write, 8)
NOTED_RANGE(unaligned_write, 16)
ATOMIC(32)
ATOMIC(64)

void __tsan_read_range(void *at, size_t bytes)
{
    note_range(__builtin_return_address(0), (uintptr_t)at, bytes);
}

void __tsan_write_range(void *at, size_t bytes)
{
    note_range(__builtin_return_address(0), (uintptr_t)at, bytes);
}

void __tsan_init(void)
{
}

void __tsan_func_entry(void *caller)
{
}

void __tsan_func_exit(void)
{
}
}
