/* SPDX-License-Identifier: MIT */
/* A block of threads as fibers.
 *
 * Each thread has a stack of its own and runs until it meets the others; then the next one runs. A warp's
 * meeting is over when its 32 lanes have come, a barrier when all threads have. A round in which nobody can
 * go on is a divergence: on a GPU it would hang, or mean nothing. Values that lanes exchange lie in two
 * buffers in turn: no lane can be two meetings ahead of another. */

#include "cuda/emu/emu.h"

#include <stdio.h>
#include <sys/mman.h>

#define MOST_THREADS 1024
#define STACK_BYTES  (128 * 1024)

enum state { READY, WAITS, DONE };

struct fiber {
    struct emu_thread thread; /* first: emu_self points here */
    void *stack_top;          /* of the switched-out fiber */
    enum state state;
    enum emu_meeting meeting;
    uint32_t generation; /* of its warp's meetings, so far */
};

struct warp {
    uint64_t values[2][32];
    uint32_t arrived;
};

struct emu_thread *emu_self;
struct emu_block emu_block;

static struct fiber fibers[MOST_THREADS];
static struct warp warps[MOST_THREADS / 32];
static uint8_t *stacks; /* [MOST_THREADS][STACK_BYTES] */
static uint32_t n_threads, n_at_barrier, n_done;
static const struct emu_launch *current;
static void *scheduler_top;

/* ---- switching ---- */

extern "C" void emu_switch(void **save_top, void *to_top);

#if defined(__x86_64__)
/* Saves what a call must keep on the old stack, and returns on the new one. */
__asm__(".text\n"
        ".globl emu_switch\n"
        ".hidden emu_switch\n"
        ".type emu_switch, @function\n"
        "emu_switch:\n"
        "  pushq %rbp\n  pushq %rbx\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
        "  movq %rsp, (%rdi)\n"
        "  movq %rsi, %rsp\n"
        "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbx\n  popq %rbp\n"
        "  ret\n"
        ".size emu_switch, .-emu_switch\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");
#else
#error "the emulator's switch is written for x86-64"
#endif

static void to_scheduler(struct fiber *fiber)
{
    emu_switch(&fiber->stack_top, scheduler_top);
}

static void fiber_main(void)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    current->run(current->closure);
    fiber->state = DONE;
    n_done++;
    to_scheduler(fiber);
    abort(); /* a finished fiber is never resumed */
}

/* ---- meetings ---- */

static const char *meeting_name(enum emu_meeting meeting)
{
    static const char *const names[] = {"the block's barrier", "a warp barrier", "a shuffle", "a ballot",
                                        "a matrix product"};
    return names[meeting];
}

[[noreturn]] static void diverged(const char *what)
{
    fprintf(stderr, "emulator: kernel %s, block %u,%u,%u: %s\n", current->name, emu_block.index.x,
            emu_block.index.y, emu_block.index.z, what);
    for (uint32_t i = 0, shown = 0; i < n_threads && shown < 8; i++)
        if (i == 0 || fibers[i].state != fibers[i - 1].state || fibers[i].meeting != fibers[i - 1].meeting) {
            fprintf(stderr, "  from thread %u on: %s\n", i,
                    fibers[i].state == DONE ? "ended" : meeting_name(fibers[i].meeting));
            shown++;
        }
    abort();
}

void emu_barrier(void)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    fiber->state = WAITS;
    fiber->meeting = EMU_BARRIER;
    if (++n_at_barrier == n_threads) {
        n_at_barrier = 0;
        for (uint32_t i = 0; i < n_threads; i++)
            fibers[i].state = READY;
    }
    to_scheduler(fiber);
}

const uint64_t *emu_exchange(enum emu_meeting meeting, uint64_t value)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    struct warp *warp = &warps[fiber->thread.warp];
    struct fiber *lanes = &fibers[fiber->thread.warp * 32];
    uint64_t *values = warp->values[fiber->generation++ % 2];
    for (uint32_t i = 0; i < 32 && warp->arrived > 0; i++)
        if (lanes[i].state == WAITS && lanes[i].meeting != EMU_BARRIER && lanes[i].meeting != meeting)
            diverged("lanes of a warp meet at different operations");
    values[fiber->thread.lane] = value;
    fiber->state = WAITS;
    fiber->meeting = meeting;
    if (++warp->arrived == 32) {
        warp->arrived = 0;
        for (uint32_t i = 0; i < 32; i++)
            lanes[i].state = READY;
    }
    to_scheduler(fiber);
    return values;
}

void emu_check_alignment(const void *from, size_t bytes)
{
    if ((uintptr_t)from % bytes != 0)
        diverged("a load of 16 bytes is not aligned");
}

/* ---- running ---- */

static void start(struct fiber *fiber, uint32_t number)
{
    const struct simt_dim size = emu_block.size;
    fiber->thread.index = simt_dim{number % size.x, number / size.x % size.y, number / size.x / size.y};
    fiber->thread.lane = number % 32;
    fiber->thread.warp = number / 32;
    fiber->state = READY;
    fiber->generation = 0;
    void **top = (void **)(stacks + (size_t)(number + 1) * STACK_BYTES) - 2;
    *top = (void *)fiber_main; /* what emu_switch returns to; the stack is then as after a call */
    fiber->stack_top = top - 6;
    memset(fiber->stack_top, 0, 6 * sizeof *top);
}

static void run_block(void)
{
    n_at_barrier = n_done = 0;
    memset(warps, 0, sizeof warps);
    for (uint32_t i = 0; i < n_threads; i++)
        start(&fibers[i], i);
    while (n_done < n_threads) {
        bool any = false;
        for (uint32_t i = 0; i < n_threads; i++) {
            if (fibers[i].state != READY)
                continue;
            any = true;
            emu_self = &fibers[i].thread;
            emu_switch(&scheduler_top, fibers[i].stack_top);
        }
        if (!any)
            diverged("threads wait for others that never come");
    }
}

static void fill(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = 0xa5; /* what shared memory holds before it is written means nothing */
}

void emu_run(const struct emu_launch *launch)
{
    current = launch;
    emu_block.size = launch->block;
    emu_block.grid = launch->grid;
    n_threads = launch->block.x * launch->block.y * launch->block.z;
    if (n_threads == 0 || n_threads > MOST_THREADS || n_threads % 32 != 0)
        diverged("a block is 32 to 1024 threads in whole warps");
    if (!stacks) {
        stacks = (uint8_t *)mmap(NULL, (size_t)MOST_THREADS * STACK_BYTES, PROT_READ | PROT_WRITE,
                                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stacks == MAP_FAILED)
            abort();
    }
    /* As long as it was asked for: what is beyond is not ours. */
    emu_block.shared = launch->shared_bytes ? aligned_alloc(16, (launch->shared_bytes + 15) / 16 * 16) : NULL;
    emu_block.shared_bytes = launch->shared_bytes;
    for (uint32_t z = 0; z < launch->grid.z; z++)
        for (uint32_t y = 0; y < launch->grid.y; y++)
            for (uint32_t x = 0; x < launch->grid.x; x++) {
                emu_block.index = simt_dim{x, y, z};
                fill((uint8_t *)emu_block.shared, launch->shared_bytes);
                run_block();
            }
    free(emu_block.shared);
    emu_block.shared = NULL;
}
