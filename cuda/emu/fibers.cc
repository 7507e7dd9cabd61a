/* SPDX-License-Identifier: MIT */
/* A block of threads as fibers.
 *
 * Each thread has a stack of its own and runs until it meets the others; then it hands over to the next one
 * that can go on: a lane of its warp, or else of another warp, and any thread where orders are random. A
 * warp's meeting is over when its 32 lanes have come, a barrier when all threads have; who came last goes on.
 * When nobody can go on before all have ended that is a divergence: on a GPU it would hang, or mean nothing.
 * Values that lanes exchange lie in two buffers in turn: no lane can be two meetings ahead of another. A
 * thread that has ended waits on its stack for the next block.
 *
 * For ThreadSanitizer, which sees the kernels but not this file, barriers order memory, and so do the start
 * and the end of a block; shuffles and ballots do not, as on a GPU. */

#include "cuda/emu/fibers.h"

#include <stdio.h>
#include <stdlib.h>

#include "cuda/emu/switch.h"

struct warp {
    uint64_t values[2][32], joined[2];
    uint8_t meetings[32];           /* what each lane came to last: enum emu_meeting */
    uint32_t n;                     /* meetings that are over; the next one's values are in n % 2 */
    uint32_t ready, arrived, ended; /* a bit for each lane */
    enum emu_meeting meeting;       /* of those who have arrived */
    emu_join *join;                 /* what they make of their values; NULL: nothing */
    char order[2];                  /* of warp barriers, odd and even */
};

/* What is needed at each switch lies close together: it is the processor's cache that switches wait for. */
static struct emu_thread threads[EMU_MOST_THREADS];
static struct context contexts[EMU_MOST_THREADS], scheduler;
static struct warp warps[EMU_MOST_THREADS / 32];
static uint32_t ready_warps; /* a bit for each with lanes that are ready */
static uint32_t n_threads, n_at_barrier, n_ended;
static uint32_t next_to_run; /* where the block begins, or goes on */
static bool is_random, has_yielded;
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

/* What a thread does: the meeting that it waits in, or one of these. */
enum { RUNS = -1, ENDED = -2 };

static int doing(uint32_t number)
{
    const struct warp *warp = &warps[number / 32];
    const uint32_t lane = 1u << number % 32;
    return warp->ended & lane ? ENDED : warp->ready & lane ? RUNS : (int)warp->meetings[number % 32];
}

/* Who is where: threads in ranges that do the same. */
[[noreturn]] static void diverged(const char *what)
{
    emu_say_where();
    fprintf(stderr, "%s\n", what);
    for (uint32_t i = 0, end; i < n_threads; i = end) {
        const int all = doing(i);
        for (end = i + 1; end < n_threads && doing(end) == all;)
            end++;
        fprintf(stderr, "  threads %u to %u: %s\n", i, end - 1,
                all == ENDED  ? "ended"
                : all == RUNS ? "run"
                              : meeting_name((enum emu_meeting)all));
    }
    abort();
}

/* ---- turns ---- */

static uint32_t running(void)
{
    return (uint32_t)(emu_self - threads);
}

static void let_go_on(uint32_t warp)
{
    warps[warp].ready = UINT32_MAX;
    ready_warps |= 1u << warp;
}

/* A thread waits, or has ended. */
static void stop(uint32_t number)
{
    struct warp *warp = &warps[number / 32];
    warp->ready &= ~(1u << number % 32);
    if (warp->ready == 0)
        ready_warps &= ~(1u << number / 32);
}

/* The first that is set of `bits`, not 0, from number `from` on, and round. */
static uint32_t next_of(uint32_t bits, uint32_t from)
{
    const uint32_t turned = bits >> from % 32 | bits << (32 - from) % 32;
    return (from + (uint32_t)__builtin_ctz(turned)) % 32;
}

/* Any that is set of `bits`, not 0, each as likely as the others. */
static uint32_t any_of(uint32_t bits)
{
    for (uint32_t left = emu_random((uint32_t)__builtin_popcount(bits)); left > 0; left--)
        bits &= bits - 1;
    return (uint32_t)__builtin_ctz(bits);
}

/* Whose turn it is after thread `number`; somebody can go on. */
static uint32_t next_after(uint32_t number)
{
    const uint32_t warp = is_random ? any_of(ready_warps) : next_of(ready_warps, number / 32);
    const uint32_t ready = warps[warp].ready;
    return warp * 32 + (is_random ? any_of(ready) : next_of(ready, number + 1));
}

/* Whether it is the next lane's, as it is nearly always: a guess of the processor, where next_after is a
 * chain of loads that each wait for the one before. */
static bool is_next_lane(uint32_t number)
{
    const uint32_t lane = (number + 1) % 32;
    return !is_random && lane != 0 && (warps[number / 32].ready >> lane & 1);
}

static void switch_to(uint32_t number, uint32_t next)
{
    /* Who comes after it, as a rule: its stack is far from ours. */
    const uint8_t *top = (const uint8_t *)contexts[(next + 1) % EMU_MOST_THREADS].top;
    for (uint32_t line = 0; line < 3; line++)
        __builtin_prefetch(top + line * 64);
    emu_self = &threads[next];
    context_switch(&contexts[number], &contexts[next]);
}

/* Returns when it is the turn of thread `number`, which runs, again. */
static void hand_over(uint32_t number)
{
    if (is_next_lane(number))
        return switch_to(number, number + 1);
    if (ready_warps == 0)
        return context_switch(&contexts[number], &scheduler);
    const uint32_t next = next_after(number);
    if (next != number)
        switch_to(number, next);
}

/* A thread, of one block after the other. */
static void fiber_main(void)
{
    const uint32_t number = running();
    context_arrive(&contexts[number]);
    for (;;) {
        order_take(&start_order);
        threads[number].started = false;
        emu_launched->run(emu_launched->closure);
        if (emu_block.overlaps && !threads[number].started)
            emu_die("it ends without simt_start, beside the launch before it");
        order_pass(&end_order);
        warps[number / 32].ended |= 1u << number % 32;
        n_ended++;
        stop(number);
        hand_over(number);
    }
}

/* ---- meetings ---- */

/* The last thread has come. */
static void end_barrier(void)
{
    n_at_barrier = 0;
    emu_block.n_barriers++;
    for (uint32_t i = 0; i < n_threads / 32; i++) {
        emu_accesses_meet(i);
        let_go_on(i);
    }
}

void emu_barrier(void)
{
    const uint32_t number = running();
    void *order = order_pass(&barrier_orders[emu_block.n_barriers % 2]);
    warps[number / 32].meetings[number % 32] = EMU_BARRIER;
    stop(number);
    const bool is_last = ++n_at_barrier == n_threads;
    if (is_last) {
        end_barrier();
        if (emu_met)
            emu_met();
    }
    if (!is_last || is_random)
        hand_over(number);
    order_take(order);
}

/* The last of a warp has come. */
static void end_meeting(uint32_t number)
{
    struct warp *warp = &warps[number];
    const uint32_t turn = warp->n++ % 2;
    warp->arrived = 0;
    emu_accesses_meet(number);
    if (warp->join)
        warp->joined[turn] = warp->join(warp->values[turn]);
    let_go_on(number);
}

/* Comes to the warp's next meeting, and returns when it is over. */
static void meet(enum emu_meeting meeting, uint64_t value, emu_join *join)
{
    const uint32_t number = running(), lane = number % 32;
    struct warp *warp = &warps[number / 32];
    stop(number);
    warp->meetings[lane] = (uint8_t)meeting;
    if (warp->arrived != 0 && (warp->meeting != meeting || warp->join != join))
        diverged("lanes of a warp meet at different operations");
    warp->meeting = meeting;
    warp->join = join;
    warp->values[warp->n % 2][lane] = value;
    warp->arrived |= 1u << lane;
    const bool is_last = warp->arrived == UINT32_MAX;
    if (is_last)
        end_meeting(number / 32);
    if (!is_last || is_random)
        hand_over(number);
}

/* The buffer of the meeting that the thread which runs was in last: there is none since, for which it would
 * have had to come. */
static uint32_t last_turn(const struct warp *warp)
{
    return (warp->n - 1) % 2;
}

void emu_warp_barrier(void)
{
    struct warp *warp = &warps[emu_self->warp];
    void *order = order_pass(&warp->order[warp->n % 2]);
    meet(EMU_WARP_BARRIER, 0, NULL);
    order_take(order);
}

const uint64_t *emu_exchange(enum emu_meeting meeting, uint64_t value)
{
    meet(meeting, value, NULL);
    const struct warp *warp = &warps[emu_self->warp];
    return warp->values[last_turn(warp)];
}

uint64_t emu_exchange_joined(enum emu_meeting meeting, uint64_t value, emu_join *join)
{
    meet(meeting, value, join);
    const struct warp *warp = &warps[emu_self->warp];
    return warp->joined[last_turn(warp)];
}

void emu_misaligned(const void *from, size_t bytes)
{
    emu_die("a load of %zu bytes from %p is not aligned", bytes, from);
}

/* Weights that lie elsewhere are found by AddressSanitizer. */
void simt_prefetch(const void *at)
{
    (void)*(const volatile uint8_t *)at;
}

/* ---- running ---- */

/* A fiber that has not run yet begins in fiber_main; one that has waits there for its next block. */
static void prepare(uint32_t number, struct simt_dim size, uint32_t seat)
{
    struct context *context = &contexts[number];
    struct emu_thread *thread = &threads[number];
    thread->index = simt_dim{number % size.x, number / size.x % size.y, number / size.x / size.y};
    thread->lane = number % 32;
    thread->warp = number / 32;
    if (context->top)
        return;
    uint8_t *stack = emu_stack(seat, number);
    void **top = (void **)(stack + EMU_STACK_BYTES) - SWITCH_WORDS;
    memset(top, 0, SWITCH_WORDS * sizeof *top);
    top[RETURN_WORD] = (void *)fiber_main;
    context->top = top;
    context_tell(context, stack, EMU_STACK_BYTES);
}

void emu_fibers_open(struct simt_dim size, uint32_t seat)
{
    n_threads = size.x * size.y * size.z;
    if (n_threads == 0 || n_threads > EMU_MOST_THREADS || n_threads % 32 != 0)
        emu_die("%u threads; a block has 32 to %d, in whole warps", n_threads, EMU_MOST_THREADS);
    for (uint32_t i = 0; i < n_threads; i++)
        prepare(i, size, seat);
    is_random = emu_is_random();
    context_is_own(&scheduler);
}

void emu_fibers_begin(void)
{
    n_at_barrier = n_ended = emu_block.n_barriers = 0;
    for (uint32_t i = 0; i < n_threads / 32; i++) {
        warps[i].n = warps[i].arrived = warps[i].ended = 0;
        let_go_on(i);
    }
    order_pass(&start_order);
    next_to_run = next_after(31); /* in their order, the first lane of the first warp */
}

bool emu_fibers_run(void)
{
    has_yielded = false;
    emu_self = &threads[next_to_run];
    context_switch(&scheduler, &contexts[next_to_run]);
    emu_self = NULL;
    if (has_yielded)
        return false;
    if (n_ended < n_threads)
        diverged("threads wait for others that never arrive");
    order_take(&end_order);
    for (uint32_t i = 0; i < n_threads / 32; i++)
        emu_accesses_meet(i);
    return true;
}

void emu_fibers_yield(void)
{
    next_to_run = running();
    has_yielded = true;
    context_switch(&contexts[next_to_run], &scheduler);
}

uint64_t emu_fibers_loaded(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n_threads; i++) {
        sum += threads[i].loaded;
        threads[i].loaded = 0;
    }
    return sum;
}

/* ---- several blocks ---- */

struct emu_fibers {
    struct emu_thread threads[EMU_MOST_THREADS];
    struct context contexts[EMU_MOST_THREADS];
    struct warp warps[EMU_MOST_THREADS / 32];
    uint32_t ready_warps, n_threads, n_at_barrier, n_ended, next_to_run;
};

struct emu_fibers *emu_fibers_new(void)
{
    struct emu_fibers *parked = (struct emu_fibers *)calloc(1, sizeof *parked);
    if (!parked)
        emu_die("not enough memory for a block's threads");
    return parked;
}

void emu_fibers_park(struct emu_fibers *to)
{
    memcpy(to->threads, threads, n_threads * sizeof *threads);
    memcpy(to->contexts, contexts, sizeof contexts); /* of all that have run at this seat */
    memcpy(to->warps, warps, n_threads / 32 * sizeof *warps);
    to->ready_warps = ready_warps;
    to->n_threads = n_threads;
    to->n_at_barrier = n_at_barrier;
    to->n_ended = n_ended;
    to->next_to_run = next_to_run;
}

void emu_fibers_unpark(const struct emu_fibers *from)
{
    memcpy(threads, from->threads, from->n_threads * sizeof *threads);
    memcpy(contexts, from->contexts, sizeof contexts);
    memcpy(warps, from->warps, from->n_threads / 32 * sizeof *warps);
    ready_warps = from->ready_warps;
    n_threads = from->n_threads;
    n_at_barrier = from->n_at_barrier;
    n_ended = from->n_ended;
    next_to_run = from->next_to_run;
}
