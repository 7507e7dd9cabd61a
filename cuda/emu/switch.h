/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_SWITCH_H
#define CUDA_EMU_SWITCH_H

/* Switches stacks, and informs the sanitizers. */

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

/* Saves the callee-saved registers on the old stack, and returns on the new one. */
extern "C" void emu_switch(void **save_top, void *to_top);

#if defined(EMU_ASAN)
static struct context *context_left; /* the stack last switched from */
#endif

/* Called after a switch: learns where the previous stack lies. */
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

/* TSan: everything done before order_pass happens before anything after the order_take that receives
 * `order`. */
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

/* Informs the sanitizers of a new stack. */
static inline void context_tell(struct context *context, const void *bottom, size_t bytes)
{
#if defined(EMU_ASAN)
    context->bottom = bottom;
    context->bytes = bytes;
#elif defined(EMU_TSAN)
    context->sanitizer = __tsan_create_fiber(0);
#endif
}

/* The same for the current stack. */
static inline void context_is_own(struct context *context)
{
#if defined(EMU_TSAN)
    context->sanitizer = __tsan_get_current_fiber();
#endif
}

#endif
