/* SPDX-License-Identifier: MIT */
/* See views.h. A view is a table of the bytes that differ, or did: what it sees there while it does not run,
 * and what all see while it does. */

#include "cuda/emu/views.h"

#include <stdlib.h>
#include <string.h>

#define DRAINED_AT_ONCE 16 /* aligned bytes that are let go together: a store is never torn */
#define DRAIN_ONE_IN    4  /* of them, when a turn is over */

enum cell_state {
    SAME, /* the block sees what all see */
    OWN,  /* it has written there, and nobody sees it */
    STALE /* it does not see what others have written */
};

struct cell {
    uintptr_t at;
    uint8_t other; /* of the view while it does not run; of memory while it does */
    uint8_t state; /* enum cell_state */
    bool is_flag;  /* the thread had passed a fence that reaches the host */
    uint16_t thread;
    uint32_t n_barriers; /* that its thread had passed */
};

struct view {
    struct cell *cells;
    uint32_t *places; /* [n_places], by the hash of an address: number of its cell, from 1 on; 0: none */
    uint32_t n, room, n_places;
    bool is_open;
    bool has_told[EMU_MOST_THREADS]; /* threads that have passed a fence that reaches the host */
};

static struct view views[EMU_SEATS];
static struct view *current; /* of the block that runs; NULL: none does */
static struct emu_regions device_memory, host_memory;

void emu_accesses_begin(const struct emu_memory *allocations, const struct emu_memory *pinned)
{
    emu_regions_fill(&device_memory, allocations);
    emu_regions_fill(&host_memory, pinned);
}

void emu_accesses_meet(uint32_t warp)
{
}

/* ---- cells ---- */

static uint32_t *place_of(const struct view *view, uintptr_t at)
{
    uint64_t hash = at * 0x9e3779b97f4a7c15;
    for (uint32_t i = (uint32_t)(hash >> 32);; i++) {
        uint32_t *place = &view->places[i & (view->n_places - 1)];
        if (*place == 0 || view->cells[*place - 1].at == at)
            return place;
    }
}

static struct cell *find(const struct view *view, uintptr_t at)
{
    const uint32_t number = view->n_places ? *place_of(view, at) : 0;
    return number ? &view->cells[number - 1] : NULL;
}

static void grow(struct view *view)
{
    view->room = view->room ? 2 * view->room : 1024;
    view->n_places = 2 * view->room;
    view->cells = (struct cell *)realloc(view->cells, view->room * sizeof *view->cells);
    free(view->places);
    view->places = (uint32_t *)calloc(view->n_places, sizeof *view->places);
    if (!view->cells || !view->places)
        emu_die("not enough memory for a block's view");
    for (uint32_t i = 0; i < view->n; i++)
        *place_of(view, view->cells[i].at) = i + 1;
}

static struct cell *find_or_add(struct view *view, uintptr_t at)
{
    if (view->n == view->room)
        grow(view);
    uint32_t *place = place_of(view, at);
    if (*place == 0) {
        view->cells[view->n++] = cell{at, 0, SAME, false, 0, 0};
        *place = view->n;
    }
    return &view->cells[*place - 1];
}

/* The last that was added first, so that those before it are still found. */
static void empty(struct view *view)
{
    while (view->n > 0) {
        *place_of(view, view->cells[view->n - 1].at) = 0;
        view->n--;
    }
}

/* ---- what is let go, and what is learnt ---- */

/* By the view that runs, or whose turn is just over: all see `now` there, where they saw `before`. */
static void let_go(struct cell *cell, uint8_t before)
{
    for (uint32_t i = 0; i < EMU_SEATS; i++) {
        if (!views[i].is_open || &views[i] == current)
            continue;
        struct cell *theirs = find_or_add(&views[i], cell->at);
        if (theirs->state != SAME)
            continue;
        theirs->state = STALE;
        theirs->other = before;
    }
    cell->state = SAME;
}

static uint8_t *memory_at(const struct cell *cell)
{
    return (uint8_t *)cell->at;
}

void emu_view_fence(bool reaches_host)
{
    const uint32_t thread = emu_self->warp * SIMT_LANES + emu_self->lane;
    current->has_told[thread] |= reaches_host;
    for (uint32_t i = 0; i < current->n; i++) {
        struct cell *cell = &current->cells[i];
        if (cell->state == STALE) {
            *memory_at(cell) = cell->other;
            cell->state = SAME;
        } else if (cell->state == OWN &&
                   (cell->thread == thread || cell->n_barriers < emu_block.n_barriers) &&
                   (reaches_host || !emu_regions_hold(&host_memory, cell->at))) {
            let_go(cell, cell->other);
        }
    }
}

/* An atomic operation: on what all see. What the block has written there is seen, as by the same operation.
 */
static void meet_memory(uintptr_t at, uint32_t bytes)
{
    for (uint32_t i = 0; current && i < bytes; i++) {
        struct cell *cell = find(current, at + i);
        if (!cell || cell->state == SAME)
            continue;
        if (cell->state == STALE)
            *memory_at(cell) = cell->other;
        else
            let_go(cell, cell->other);
        cell->state = SAME;
    }
}

/* ---- turns ---- */

void emu_view_open(uint32_t seat)
{
    empty(&views[seat]);
    memset(views[seat].has_told, 0, sizeof views[seat].has_told);
    views[seat].is_open = true;
}

/* Exchanges what all see for what this view sees, or back. */
static void exchange(struct view *view)
{
    for (uint32_t i = 0; i < view->n; i++) {
        struct cell *cell = &view->cells[i];
        if (cell->state == SAME)
            continue;
        const uint8_t other = cell->other;
        cell->other = *memory_at(cell);
        *memory_at(cell) = other;
    }
}

void emu_view_enter(uint32_t seat)
{
    current = &views[seat];
    exchange(current);
}

/* Some of what was written is seen early, in no order. */
static void drain(void)
{
    const uint64_t salt = (uint64_t)emu_order_random(UINT32_MAX) << 32 | 1;
    for (uint32_t i = 0; i < current->n; i++) {
        struct cell *cell = &current->cells[i];
        const uint64_t hash = (cell->at / DRAINED_AT_ONCE ^ salt) * 0x9e3779b97f4a7c15;
        if (cell->state == OWN && (hash >> 40) % DRAIN_ONE_IN == 0)
            let_go(cell, cell->other);
    }
}

void emu_view_leave(void)
{
    drain();
    exchange(current);
    current = NULL;
}

void emu_view_close(void)
{
    for (uint32_t i = 0; i < current->n; i++) {
        struct cell *cell = &current->cells[i];
        if (cell->state == OWN && !cell->is_flag && emu_regions_hold(&host_memory, cell->at))
            emu_die("it ends, and no fence that reaches the host is behind what thread %u has written for it",
                    cell->thread);
        if (cell->state == OWN)
            let_go(cell, cell->other);
        else if (cell->state == STALE)
            *memory_at(cell) = cell->other;
    }
    current->is_open = false;
    current = NULL;
}

void emu_view_drop(uint32_t seat)
{
    views[seat].is_open = false;
}

/* ---- what the compiler calls ---- */

static void note_write(uintptr_t at, size_t bytes)
{
    if (!emu_self || !current ||
        !(emu_regions_hold(&device_memory, at) || emu_regions_hold(&host_memory, at)))
        return;
    for (size_t i = 0; i < bytes; i++) {
        struct cell *cell = find_or_add(current, at + i);
        if (cell->state == SAME)
            cell->other = *memory_at(cell);
        cell->state = OWN;
        cell->thread = (uint16_t)(emu_self->warp * SIMT_LANES + emu_self->lane);
        cell->is_flag = current->has_told[cell->thread];
        cell->n_barriers = emu_block.n_barriers;
    }
}

#define READ(size)                                                                                           \
    void __tsan_read##size(void *at)                                                                         \
    {                                                                                                        \
    }                                                                                                        \
    void __tsan_unaligned_read##size(void *at)                                                               \
    {                                                                                                        \
    }
#define WRITE(size)                                                                                          \
    void __tsan_write##size(void *at)                                                                        \
    {                                                                                                        \
        note_write((uintptr_t)at, size);                                                                     \
    }                                                                                                        \
    void __tsan_unaligned_write##size(void *at)                                                              \
    {                                                                                                        \
        note_write((uintptr_t)at, size);                                                                     \
    }
#define ATOMIC(bits)                                                                                         \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t *at, int order)                  \
    {                                                                                                        \
        meet_memory((uintptr_t)at, bits / 8);                                                                \
        return *at;                                                                                          \
    }                                                                                                        \
    void __tsan_atomic##bits##_store(volatile uint##bits##_t *at, uint##bits##_t value, int order)           \
    {                                                                                                        \
        meet_memory((uintptr_t)at, bits / 8);                                                                \
        *at = value;                                                                                         \
    }

extern "C" {
READ(1)
READ(2)
READ(4)
READ(8)
READ(16)
WRITE(1)
WRITE(2)
WRITE(4)
WRITE(8)
WRITE(16)
ATOMIC(32)
ATOMIC(64)

void __tsan_read_range(void *at, size_t bytes)
{
}

void __tsan_write_range(void *at, size_t bytes)
{
    note_write((uintptr_t)at, bytes);
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
