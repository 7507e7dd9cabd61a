/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_SIMT_EMU_H
#define CUDA_EMU_SIMT_EMU_H

/* simt.h on the host: the threads of a block are fibers of one thread, which change at barriers and warp
 * operations; blocks run one after the other, in the order of their index. It proves logic: not PTX, not
 * order between blocks, not speed. */

#include <math.h>
#include <new>
#include <stdlib.h>
#include <string.h>

#include "worker/gguf/format.h"

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define SIMT_UNROLL

typedef struct simt_dim dim3;

/* ---- who runs ---- */

struct emu_thread {
    struct simt_dim index;
    uint32_t lane, warp;
};

struct emu_block {
    struct simt_dim index, size, grid;
    void *shared;
    size_t shared_bytes;
};

extern struct emu_thread *emu_self; /* the fiber that runs */
extern struct emu_block emu_block;

#define threadIdx (emu_self->index)
#define blockIdx  (emu_block.index)
#define blockDim  (emu_block.size)
#define gridDim   (emu_block.grid)

template <class T> static inline T *simt_shared()
{
    return (T *)emu_block.shared;
}

/* ---- meetings ---- */

enum emu_meeting { EMU_BARRIER, EMU_WARP_BARRIER, EMU_SHUFFLE, EMU_BALLOT, EMU_MMA };

/* Waits until all threads of the block, or all lanes of the warp, are there. A mixture of meetings, or one
 * that somebody never comes to, ends the process with the kernel's name and who is where. */
void emu_barrier(void);

/* Gives `value` and waits for the other lanes: what each gave, [32], good until this lane's next meeting. */
const uint64_t *emu_exchange(enum emu_meeting meeting, uint64_t value);

static inline void simt_barrier(void)
{
    emu_barrier();
}

static inline void simt_warp_barrier(void)
{
    emu_exchange(EMU_WARP_BARRIER, 0);
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

static inline uint32_t simt_ballot(bool vote)
{
    const uint64_t *votes = emu_exchange(EMU_BALLOT, vote);
    uint32_t set = 0;
    for (uint32_t i = 0; i < 32; i++)
        set |= (uint32_t)votes[i] << i;
    return set;
}

template <class T> static inline T simt_warp_sum(T value)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2)
        value += simt_shuffle_xor(value, mask);
    return value;
}

template <class T> static inline T simt_warp_max(T value)
{
    for (uint32_t mask = 16; mask > 0; mask /= 2) {
        T other = simt_shuffle_xor(value, mask);
        value = other > value ? other : value;
    }
    return value;
}

/* ---- arithmetic ---- */

static inline int32_t simt_dp4a(int32_t a, int32_t b, int32_t c)
{
    for (int i = 0; i < 4; i++)
        c += (int32_t)(int8_t)((uint32_t)a >> 8 * i) * (int32_t)(int8_t)((uint32_t)b >> 8 * i);
    return c;
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

template <class T> static inline T simt_atomic_add(T *at, T value)
{
    T old = *at;
    *at = old + value;
    return old;
}

template <class T> static inline T simt_atomic_max(T *at, T value)
{
    T old = *at;
    *at = value > old ? value : old;
    return old;
}

static inline void simt_fence(void)
{
}

static inline void simt_fence_system(void)
{
}

struct simt_16 {
    uint32_t words[4];
};

/* Ends the process with the kernel's name when the address is not a multiple of 16. */
void emu_check_alignment(const void *from, size_t bytes);

static inline struct simt_16 simt_load16(const void *from)
{
    struct simt_16 value;
    emu_check_alignment(from, 16);
    memcpy(&value, from, sizeof value);
    return value;
}

/* ---- launches ---- */

struct emu_launch {
    const char *name;
    struct simt_dim grid, block;
    size_t shared_bytes;
    void (*run)(void *closure); /* one thread's */
    void (*release)(void *closure);
    void *closure;
};

struct device_stream;
int emu_queue(struct device_stream *stream, const struct emu_launch *launch); /* takes the closure over */

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
        name, grid, block, shared_bytes, emu_run_closure<Body>, emu_release_closure<Body>, closure};
    return emu_queue(stream, &launch);
}

#endif
