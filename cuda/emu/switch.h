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
    const void *bottom;
    size_t bytes;
    void *sanitizer; /* ASan: its fake stack; TSan: its thread */
};

/* Saves what a call must keep on the old stack, and returns on the new one. */
extern "C" void emu_switch(void **save_top, void *to_top);

static inline void context_switch(struct context *from, struct context *to, bool for_ever)
{
#if defined(EMU_ASAN)
    __sanitizer_start_switch_fiber(for_ever ? NULL : &from->sanitizer, to->bottom, to->bytes);
#elif defined(EMU_TSAN)
    __tsan_switch_to_fiber(to->sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
    emu_switch(&from->top, to->top);
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(from->sanitizer, NULL, NULL);
#endif
}

/* First thing on a new stack: learns where the one it came from lies. */
static inline void context_arrive(struct context *from)
{
#if defined(EMU_ASAN)
    __sanitizer_finish_switch_fiber(NULL, &from->bottom, &from->bytes);
#endif
}

/* TSan: what one did before it passes `order` is done for all who take it up afterwards. */
static inline void order_pass(void *order)
{
#if defined(EMU_TSAN)
    __tsan_release(order);
#endif
}

static inline void order_take(void *order)
{
#if defined(EMU_TSAN)
    __tsan_acquire(order);
#endif
}

static inline void *sanitizer_thread(void)
{
#if defined(EMU_TSAN)
    return __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static inline void *sanitizer_own_thread(void)
{
#if defined(EMU_TSAN)
    return __tsan_get_current_fiber();
#else
    return NULL;
#endif
}

#endif
