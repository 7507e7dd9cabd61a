/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_SWITCH_H
#define CUDA_EMU_SWITCH_H

/* Changing stacks, and telling the sanitizer of it. */

#include "cuda/emu/emu.h"

#if defined(EMU_ASAN)
#include <sanitizer/common_interface_defs.h>
#elif defined(EMU_TSAN)
#include <sanitizer/tsan_interface.h>
#endif

struct context { /* a stack that can be switched to */
    void *top;   /* while it is switched out */
#if defined(EMU_ASAN) || defined(EMU_TSAN)
    const void *bottom;
    size_t bytes;
    void *sanitizer; /* ASan: its fake stack; TSan: its thread */
#endif
};

/* Saves what a call must keep on the old stack, and returns on the new one. */
extern "C" void emu_switch(void **save_top, void *to_top);

#if defined(EMU_ASAN)
static struct context *context_left; /* what was switched from last */
#endif

/* Where one was switched to: learns where the stack lies that it came from. */
static inline void context_arrive(struct context *to)
{
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(to->sanitizer, &context_left->bottom, &context_left->bytes);
#endif
}

static inline void context_switch(struct context *from, struct context *to)
{
#if defined(EMU_ASAN)
    context_left = from;
    __sanitizer_start_switch_fiber(&from->sanitizer, to->bottom, to->bytes);
#elif defined(EMU_TSAN)
    __tsan_switch_to_fiber(to->sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
    emu_switch(&from->top, to->top);
    context_arrive(from);
}

/* TSan: what one did before it passes `order` is done for all who take it up afterwards. */
static inline void *order_pass(void *order)
{
#if defined(EMU_TSAN)
    __tsan_release(order);
#endif
    return order;
}

static inline void order_take(void *order)
{
#if defined(EMU_TSAN)
    __tsan_acquire(order);
#endif
}

/* Of a new stack, for what watches stacks or threads. */
static inline void context_tell(struct context *context, const void *bottom, size_t bytes)
{
#if defined(EMU_ASAN)
    context->bottom = bottom;
    context->bytes = bytes;
#elif defined(EMU_TSAN)
    context->sanitizer = __tsan_create_fiber(0);
#endif
}

/* Of the stack that it is called on. */
static inline void context_is_own(struct context *context)
{
#if defined(EMU_TSAN)
    context->sanitizer = __tsan_get_current_fiber();
#endif
}

#endif
