/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_SIMT_EMU_H
#define CUDA_EMU_SIMT_EMU_H

/* simt.h on the host: the threads of a block are fibers of one thread, which switch at barriers and warp
 * operations. Blocks run one after another, in the order of their index (blocks_in_turn.cc), or several at
 * once, each with a view of memory that only fences update (blocks_at_once.cc). This verifies logic and the
 * order between blocks, but not PTX or speed. */

#include <math.h>
#include <new>
#include <stdlib.h>
#include <string.h>

#include "gguf/format.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__
#define SIMT_UNROLL
#define SIMT_UNROLL_BY(n)
#define SIMT_APART

typedef struct simt_dim dim3;

/* ---- the running thread and block ---- */

struct emu_thread {
    struct simt_dim index;
    uint32_t lane, warp;
    uint64_t loaded; /* bytes, by simt_load16 */
    bool started;    /* simt_start was called */
};

struct emu_block {
    struct simt_dim index, size, grid;
    void *shared;
    size_t shared_bytes;
    uint32_t n_barriers; /* barriers that all of its threads have passed */
    bool overlaps;       /* the previous launch may still run, until simt_start */
    bool waits;          /* simt_start works as specified */
};

extern struct emu_thread *emu_self; /* the running fiber */
extern struct emu_block emu_block;

#define threadIdx (emu_self->index)
#define blockIdx  (emu_block.index)
#define blockDim  (emu_block.size)
#define gridDim   (emu_block.grid)

template <class T> static inline T *simt_shared()
{
    return (T *)emu_block.shared;
}

/* ---- the launch before ---- */

static inline void simt_start(void)
{
    emu_self->started = emu_block.waits;
}

void simt_prefetch(const void *at); /* fibers.cc */

/* ---- meetings ---- */

enum emu_meeting { EMU_BARRIER, EMU_WARP_BARRIER, EMU_SHUFFLE, EMU_BALLOT, EMU_MMA };

/* Waits until all threads of the block, or all lanes of the warp, are there. Threads at different barriers,
 * or a barrier that a thread never reaches, end the process with the kernel's name and each thread's
 * place. */
void emu_barrier(void);
void emu_warp_barrier(void);

/* Gives `value` and waits for the other lanes. Returns what each gave, [32], valid until this lane's next
 * meeting. */
const uint64_t *emu_exchange(enum emu_meeting meeting, uint64_t value);

/* The same, but returns the result of `join` on the lanes' values, which runs once, when the last lane has
 * arrived. All lanes must pass the same `join`. */
typedef uint64_t emu_join(const uint64_t given[32]);
uint64_t emu_exchange_joined(enum emu_meeting meeting, uint64_t value, emu_join *join);

static inline void simt_barrier(void)
{
    emu_barrier();
}

static inline void simt_warp_barrier(void)
{
    emu_warp_barrier();
}

template <class T> static inline uint64_t emu_bits(T value)
{
    static_assert(sizeof value <= 8, "at most eight bytes are exchanged");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    return bits;
}

template <class T> static inline T emu_value(uint64_t bits)
{
    T value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

template <class T> static inline T simt_shuffle(T value, uint32_t lane)
{
    return emu_value<T>(emu_exchange(EMU_SHUFFLE, emu_bits(value))[lane % 32]);
}

template <class T> static inline T simt_shuffle_xor(T value, uint32_t mask)
{
    return emu_value<T>(emu_exchange(EMU_SHUFFLE, emu_bits(value))[(emu_self->lane ^ mask) % 32]);
}

static uint64_t emu_set_of_votes(const uint64_t votes[32])
{
    uint64_t set = 0;
    for (uint32_t i = 0; i < 32; i++)
        set |= votes[i] << i;
    return set;
}

static inline uint32_t simt_ballot(bool vote)
{
    return (uint32_t)emu_exchange_joined(EMU_BALLOT, vote, emu_set_of_votes);
}

struct emu_sum {
    template <class T> static T of(T a, T b)
    {
        return (T)(a + b);
    }
};

struct emu_larger {
    template <class T> static T of(T a, T b)
    {
        return b > a ? b : a;
    }
};

/* Five shuffles on a GPU, a single meeting here: the same tree, so the same bits. */
template <class T, class Pair> static uint64_t emu_reduced(const uint64_t given[32])
{
    T values[32];
    for (uint32_t i = 0; i < 32; i++)
        values[i] = emu_value<T>(given[i]);
    for (uint32_t n = 16; n > 0; n /= 2)
        for (uint32_t i = 0; i < n; i++)
            values[i] = Pair::of(values[i], values[i + n]);
    return emu_bits(values[0]);
}

template <class T> static inline T simt_warp_sum(T value)
{
    return emu_value<T>(emu_exchange_joined(EMU_SHUFFLE, emu_bits(value), emu_reduced<T, emu_sum>));
}

template <class T> static inline T simt_warp_max(T value)
{
    return emu_value<T>(emu_exchange_joined(EMU_SHUFFLE, emu_bits(value), emu_reduced<T, emu_larger>));
}

/* ---- warp matrix products (matrix.cc) ---- */

/* A lane's registers; the lane gives their address. */
struct emu_operands {
    void *d;
    const uint32_t *a, *b;
};

emu_join emu_mma_s8, emu_mma_f16;

/* Works on copies: the code that accesses the caller's registers is compiled with the kernel, so that
 * sanitizers see it. */
template <class T> static inline void emu_mma(T *d, const uint32_t *a, const uint32_t *b, emu_join *join)
{
    T own_d[4];
    uint32_t own_a[4], own_b[2];
    for (int i = 0; i < 4; i++) {
        own_d[i] = d[i];
        own_a[i] = a[i];
    }
    for (int i = 0; i < 2; i++)
        own_b[i] = b[i];
    const struct emu_operands operands = {own_d, own_a, own_b};
    emu_exchange_joined(EMU_MMA, (uintptr_t)&operands, join);
    for (int i = 0; i < 4; i++)
        d[i] = own_d[i];
}

static inline void simt_mma_s8(int32_t *d, const uint32_t *a, const uint32_t *b)
{
    emu_mma(d, a, b, emu_mma_s8);
}

static inline void simt_mma_f16(float *d, const uint32_t *a, const uint32_t *b)
{
    emu_mma(d, a, b, emu_mma_f16);
}

/* ---- arithmetic ---- */

#if defined(__x86_64__) && !defined(__FMA__)
/* Kernels are compiled for any x86-64, where fmaf is a call; most processors have the instruction. */
extern const bool emu_has_fma; /* matrix.cc */

static inline float emu_fmaf(float a, float b, float c)
{
    if (!emu_has_fma)
        return fmaf(a, b, c);
    __asm__("vfmadd213ss %2, %1, %0" : "+x"(a) : "x"(b), "x"(c));
    return a;
}
#define fmaf emu_fmaf
#endif

static inline int32_t simt_dp4a(int32_t a, int32_t b, int32_t c)
{
    for (int i = 0; i < 4; i++)
        c += (int32_t)(int8_t)((uint32_t)a >> 8 * i) * (int32_t)(int8_t)((uint32_t)b >> 8 * i);
    return c;
}

static inline uint32_t simt_permute(uint32_t a, uint32_t b, uint32_t places)
{
    const uint64_t bytes = a | (uint64_t)b << 32;
    uint32_t picked = 0;
    for (int i = 0; i < 4; i++)
        picked |= (uint32_t)(bytes >> 8 * (places >> 4 * i & 7) & 255) << 8 * i;
    return picked;
}

/* A float has at least two bits more than twice those of f16, so sums and products are rounded as if once. */
static inline uint32_t emu_halves(float lower, float upper)
{
    return format_f32_to_f16(lower) | (uint32_t)format_f32_to_f16(upper) << 16;
}

static inline uint32_t simt_add_halves(uint32_t a, uint32_t b)
{
    return emu_halves(format_f16_to_f32((uint16_t)a) + format_f16_to_f32((uint16_t)b),
                      format_f16_to_f32((uint16_t)(a >> 16)) + format_f16_to_f32((uint16_t)(b >> 16)));
}

static inline uint32_t simt_multiply_halves(uint32_t a, uint32_t b)
{
    return emu_halves(format_f16_to_f32((uint16_t)a) * format_f16_to_f32((uint16_t)b),
                      format_f16_to_f32((uint16_t)(a >> 16)) * format_f16_to_f32((uint16_t)(b >> 16)));
}

static inline int32_t simt_nearest(float x)
{
    return (int32_t)lrintf(x);
}

static inline float simt_float(half_t x)
{
    return format_f16_to_f32(x.bits);
}

static inline float simt_float(bf16_t x)
{
    return format_bf16_to_f32(x.bits);
}

static inline half_t simt_half(float x)
{
    return half_t{format_f32_to_f16(x)};
}

static inline bf16_t simt_bf16(float x)
{
    return bf16_t{format_f32_to_bf16(x)};
}

static inline float simt_multiply(float a, float b)
{
    return a * b;
}

static inline uint32_t simt_bits(float x)
{
    return format_bits_of_float(x);
}

static inline float simt_of_bits(uint32_t bits)
{
    return format_float_of_bits(bits);
}

/* No other thread runs in between; for ThreadSanitizer they are atomic too. */
template <class T> static inline T simt_atomic_add(T *at, T value)
{
    T old, sum;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    sum = old + value;
    __atomic_store(at, &sum, __ATOMIC_RELAXED);
    return old;
}

template <class T> static inline T simt_atomic_max(T *at, T value)
{
    T old;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    if (value > old)
        __atomic_store(at, &value, __ATOMIC_RELAXED);
    return old;
}

static inline uint32_t simt_atomic_and(uint32_t *at, uint32_t value)
{
    const uint32_t old = __atomic_load_n(at, __ATOMIC_RELAXED);
    __atomic_store_n(at, old & value, __ATOMIC_RELAXED);
    return old;
}

/* A fence of the running thread, and its location. `reaches_host`: it also orders what the host sees. */
void emu_fence(const char *file, uint32_t line, bool reaches_host);

#define simt_fence()        emu_fence(__FILE__, __LINE__, false)
#define simt_fence_system() emu_fence(__FILE__, __LINE__, true)

struct alignas(16) simt_16 {
    uint32_t words[4];
};

/* Ends the process with the kernel's name. */
[[noreturn]] void emu_misaligned(const void *from, size_t bytes);

static inline struct simt_16 simt_load16(const void *from)
{
    struct simt_16 value;
    if ((uintptr_t)from % sizeof value != 0)
        emu_misaligned(from, sizeof value);
    emu_self->loaded += sizeof value;
    memcpy(&value, from, sizeof value);
    return value;
}

static inline struct simt_16 simt_fresh16(const void *from)
{
    return simt_load16(from);
}

/* ---- launches ---- */

struct emu_launch {
    const char *name;
    struct simt_dim grid, block;
    size_t shared_bytes;
    void (*run)(void *closure); /* for one thread */
    void (*release)(void *closure);
    void *closure;
    uint64_t expected; /* from device_expect; set when queued */
    bool overlaps;     /* it follows another launch; set when queued */
};

struct device_stream;
int emu_queue(struct device_stream *stream, const struct emu_launch *launch); /* takes over the closure */

template <class Body> static void emu_run_closure(void *closure)
{
    (*(Body *)closure)();
}

template <class Body> static void emu_release_closure(void *closure)
{
    ((Body *)closure)->~Body();
    free(closure);
}

template <class... P, class... A>
static inline int simt_launch(struct device_stream *stream, const char *name, void (*kernel)(P...),
                              struct simt_dim grid, struct simt_dim block, size_t shared_bytes, A... args)
{
    auto body = [=] { kernel(args...); };
    typedef decltype(body) Body;
    void *closure = malloc(sizeof(Body));
    if (!closure)
        abort();
    new (closure) Body(body);
    const struct emu_launch launch = {
        name, grid, block, shared_bytes, emu_run_closure<Body>, emu_release_closure<Body>, closure, 0, false};
    return emu_queue(stream, &launch);
}

#endif
