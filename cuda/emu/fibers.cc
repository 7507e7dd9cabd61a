/* SPDX-License-Identifier: MIT */
/* A block of threads as fibers.
 *
 * Each thread has a stack of its own and runs until it meets the others; then it hands over to the next one
 * that can go on, and the last one of a round to the scheduler, who begins another. A warp's
 * meeting is over when its 32 lanes have come, a barrier when all threads have. A round in which nobody can
 * go on is a divergence: on a GPU it would hang, or mean nothing. Values that lanes exchange lie in two
 * buffers in turn: no lane can be two meetings ahead of another.
 *
 * For ThreadSanitizer, which sees the kernels but not this file, barriers order memory, and so do the start
 * and the end of a block; shuffles and ballots do not, as on a GPU. */

#include "cuda/emu/emu.h"

#include <stdarg.h>
#include <stdio.h>

#include "cuda/emu/switch.h"
#include "worker/engine/backend.h"

#define MARGIN_BYTES 64   /* behind shared memory, to see who writes there */
#define MARGIN_BYTE  0x5c /* what it is full of */

enum state { READY, WAITS, DONE };

struct fiber {
    struct emu_thread thread; /* first: emu_self points here */
    struct context context;
    enum state state;
    enum emu_meeting meeting;
    uint32_t generation; /* of its warp's meetings, so far */
};

struct warp {
    uint64_t values[2][32];
    uint32_t arrived;
    enum emu_meeting meeting; /* of those who have arrived */
    char order[2];            /* of warp barriers, odd and even */
};

struct emu_thread *emu_self;
struct emu_block emu_block;

static struct fiber fibers[EMU_MOST_THREADS];
static struct warp warps[EMU_MOST_THREADS / 32];
static uint16_t turns[EMU_MOST_THREADS]; /* in which threads run */
static uint32_t n_threads, n_at_barrier, n_done, n_barriers;
static const struct emu_launch *current;
static struct context scheduler, *left; /* left: what was switched from last */
static uint32_t place;                  /* in turns, of the fiber that runs */
static char start_order, end_order, barrier_orders[2];

/* What a call must keep lies on the stack that is switched out: so many words, one of them where the switch
 * back returns to. */
#if defined(__x86_64__)
enum { SWITCH_WORDS = 8, RETURN_WORD = 6 }; /* the last is what a call leaves on an aligned stack */
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
#elif defined(__aarch64__)
enum { SWITCH_WORDS = 20, RETURN_WORD = 1 };
__asm__(".text\n"
        ".globl emu_switch\n"
        ".hidden emu_switch\n"
        ".type emu_switch, %function\n"
        "emu_switch:\n"
        "  stp x29, x30, [sp, #-160]!\n"
        "  stp x19, x20, [sp, #16]\n  stp x21, x22, [sp, #32]\n  stp x23, x24, [sp, #48]\n"
        "  stp x25, x26, [sp, #64]\n  stp x27, x28, [sp, #80]\n"
        "  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n  stp d12, d13, [sp, #128]\n"
        "  stp d14, d15, [sp, #144]\n"
        "  mov x2, sp\n  str x2, [x0]\n"
        "  mov sp, x1\n"
        "  ldp x19, x20, [sp, #16]\n  ldp x21, x22, [sp, #32]\n  ldp x23, x24, [sp, #48]\n"
        "  ldp x25, x26, [sp, #64]\n  ldp x27, x28, [sp, #80]\n"
        "  ldp d8, d9, [sp, #96]\n  ldp d10, d11, [sp, #112]\n  ldp d12, d13, [sp, #128]\n"
        "  ldp d14, d15, [sp, #144]\n"
        "  ldp x29, x30, [sp], #160\n"
        "  ret\n"
        ".size emu_switch, .-emu_switch\n"
        ".section .note.GNU-stack,\"\",%progbits\n"
        ".text\n");
#else
#error "the emulator's switch is written for x86-64 and 64-bit ARM"
#endif

/* ---- errors ---- */

static const char *meeting_name(enum emu_meeting meeting)
{
    static const char *const names[] = {"the block's barrier", "a warp barrier", "a shuffle", "a ballot",
                                        "a matrix product"};
    return names[meeting];
}

static void say_where(void)
{
    fprintf(stderr, "emulator: ");
    if (current)
        fprintf(stderr, "kernel %s, block %u,%u,%u", current->name, emu_block.index.x, emu_block.index.y,
                emu_block.index.z);
    if (emu_self)
        fprintf(stderr, ", thread %u,%u,%u", emu_self->index.x, emu_self->index.y, emu_self->index.z);
    if (current)
        fprintf(stderr, ": ");
}

[[noreturn]] void emu_die(const char *format, ...)
{
    va_list args;
    say_where();
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, "\n");
    abort();
}

/* Who is where: threads in ranges of the same state. */
[[noreturn]] static void diverged(const char *what)
{
    say_where();
    fprintf(stderr, "%s\n", what);
    for (uint32_t i = 0, end; i < n_threads; i = end) {
        const struct fiber *first = &fibers[i];
        for (end = i + 1; end < n_threads && fibers[end].state == first->state &&
                          (first->state != WAITS || fibers[end].meeting == first->meeting);)
            end++;
        fprintf(stderr, "  threads %u to %u: %s\n", i, end - 1,
                first->state == DONE    ? "ended"
                : first->state == READY ? "run"
                                        : meeting_name(first->meeting));
    }
    abort();
}

/* ---- meetings ---- */

/* The fiber whose turn it is from `place` on; NULL: this round is over. */
static struct fiber *next_fiber(void)
{
    for (; place < n_threads; place++) {
        struct fiber *fiber = &fibers[turns[place]];
        if (fiber->state == READY) {
            emu_self = &fiber->thread;
            return fiber;
        }
    }
    return NULL;
}

static void hand_over(struct fiber *fiber)
{
    struct fiber *next = next_fiber();
    if (next == fiber)
        return;
    left = &fiber->context;
    context_switch(&fiber->context, next ? &next->context : &scheduler, fiber->state == DONE);
}

static void fiber_main(void)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    context_arrive(left);
    order_take(&start_order);
    current->run(current->closure);
    order_pass(&end_order);
    fiber->state = DONE;
    n_done++;
    hand_over(fiber);
    abort(); /* a finished fiber is never resumed */
}

void emu_barrier(void)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    char *order = &barrier_orders[n_barriers % 2];
    order_pass(order);
    fiber->state = WAITS;
    fiber->meeting = EMU_BARRIER;
    if (++n_at_barrier == n_threads) {
        n_at_barrier = 0;
        n_barriers++;
        for (uint32_t i = 0; i < n_threads / 32; i++)
            emu_accesses_meet(i);
        for (uint32_t i = 0; i < n_threads; i++)
            fibers[i].state = READY;
    }
    hand_over(fiber);
    order_take(order);
}

const uint64_t *emu_exchange(enum emu_meeting meeting, uint64_t value)
{
    struct fiber *fiber = (struct fiber *)emu_self;
    struct warp *warp = &warps[fiber->thread.warp];
    uint32_t parity = fiber->generation++ % 2;
    uint64_t *values = warp->values[parity];
    if (warp->arrived > 0 && warp->meeting != meeting) {
        fiber->state = WAITS;
        fiber->meeting = meeting;
        diverged("lanes of a warp meet at different operations");
    }
    if (meeting == EMU_WARP_BARRIER)
        order_pass(&warp->order[parity]);
    warp->meeting = meeting;
    values[fiber->thread.lane] = value;
    fiber->state = WAITS;
    fiber->meeting = meeting;
    if (++warp->arrived == 32) {
        warp->arrived = 0;
        emu_accesses_meet(fiber->thread.warp);
        for (uint32_t i = 0; i < 32; i++)
            fibers[fiber->thread.warp * 32 + i].state = READY;
    }
    hand_over(fiber);
    if (meeting == EMU_WARP_BARRIER)
        order_take(&warp->order[parity]);
    return values;
}

void emu_before_load(const void *from, size_t bytes)
{
    if ((uintptr_t)from % bytes != 0)
        emu_die("a load of %zu bytes from %p is not aligned", bytes, from);
    emu_profile_current()->loaded += bytes;
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
    if (!fiber->context.bottom) {
        fiber->context.bottom = emu_stack(number);
        fiber->context.bytes = EMU_STACK_BYTES;
        fiber->context.sanitizer = sanitizer_thread();
    }
    void **top = (void **)((uint8_t *)fiber->context.bottom + EMU_STACK_BYTES) - SWITCH_WORDS;
    memset(top, 0, SWITCH_WORDS * sizeof *top);
    top[RETURN_WORD] = (void *)fiber_main;
    fiber->context.top = top;
}

static void shuffle_turns(void)
{
    for (uint32_t i = n_threads; i > 1; i--) {
        uint32_t other = emu_random(i);
        uint16_t turn = turns[i - 1];
        turns[i - 1] = turns[other];
        turns[other] = turn;
    }
}

static void run_block(void)
{
    n_at_barrier = n_done = n_barriers = 0;
    for (uint32_t i = 0; i < n_threads / 32; i++)
        warps[i].arrived = 0;
    for (uint32_t i = 0; i < n_threads; i++)
        start(&fibers[i], i);
    order_pass(&start_order);
    while (n_done < n_threads) {
        if (emu_is_random())
            shuffle_turns();
        place = 0;
        struct fiber *first = next_fiber();
        if (!first)
            diverged("threads wait for others that never come");
        left = &scheduler;
        context_switch(&scheduler, &first->context, false);
        emu_self = NULL;
    }
    order_take(&end_order);
    for (uint32_t i = 0; i < n_threads / 32; i++)
        emu_accesses_meet(i);
}

/* A block's shared memory: as long as it was asked for, and a margin behind it. */
static void open_shared(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 16, bytes + MARGIN_BYTES) != 0)
        abort();
    memset((uint8_t *)memory + bytes, MARGIN_BYTE, MARGIN_BYTES);
    emu_block.shared = memory;
    emu_block.shared_bytes = bytes;
    emu_memory_poison((uint8_t *)memory + bytes, MARGIN_BYTES, true);
}

static void check_margin(void)
{
    const uint8_t *margin = (const uint8_t *)emu_block.shared + emu_block.shared_bytes;
    for (uint32_t i = 0; i < MARGIN_BYTES; i++)
        if (margin[i] != MARGIN_BYTE)
            emu_die("it wrote behind its %zu bytes of shared memory", emu_block.shared_bytes);
}

static void close_shared(void)
{
    emu_memory_poison((uint8_t *)emu_block.shared + emu_block.shared_bytes, MARGIN_BYTES, false);
    free(emu_block.shared);
    emu_block.shared = NULL;
}

static void open_launch(const struct emu_launch *launch)
{
    current = launch;
    emu_self = NULL;
    emu_block.index = simt_dim{0, 0, 0};
    emu_block.size = launch->block;
    emu_block.grid = launch->grid;
    n_threads = launch->block.x * launch->block.y * launch->block.z;
    if (n_threads == 0 || n_threads > EMU_MOST_THREADS || n_threads % 32 != 0)
        emu_die("%u threads; a block has 32 to %d, in whole warps", n_threads, EMU_MOST_THREADS);
    for (uint32_t i = 0; i < n_threads; i++)
        turns[i] = (uint16_t)i;
    scheduler.sanitizer = sanitizer_own_thread();
    open_shared(launch->shared_bytes);
}

/* $QUERN_EMU_SKIP names a kernel whose last block does nothing: one that computes wrongly. */
static bool skips_last(const struct emu_launch *launch)
{
    const char *name = getenv("QUERN_EMU_SKIP");
    return name && strcmp(name, launch->name) == 0;
}

void emu_run(const struct emu_launch *launch)
{
    const struct simt_dim grid = launch->grid;
    const bool skips = skips_last(launch);
    open_launch(launch);
    emu_profile_launch(launch->name, (uint64_t)grid.x * grid.y * grid.z, launch->expected);
    for (uint32_t z = 0; z < grid.z; z++)
        for (uint32_t y = 0; y < grid.y; y++)
            for (uint32_t x = 0; x < grid.x; x++) {
                emu_block.index = simt_dim{x, y, z};
                if (skips && x + 1 == grid.x && y + 1 == grid.y && z + 1 == grid.z)
                    continue;
                memset(emu_block.shared, emu_fill_byte(), launch->shared_bytes);
                run_block();
                check_margin();
            }
    close_shared();
    current = NULL;
}
