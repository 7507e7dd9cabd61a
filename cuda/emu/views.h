/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_VIEWS_H
#define CUDA_EMU_VIEWS_H

/* What each block of several sees of the device's memory: a memory model as weak as a GPU's.
 *
 * A block's view is memory as it was at its beginning, or at its last fence, and what it has written itself.
 * Its writes stay in its view until a fence of the thread that wrote them, or of another thread of the block
 * after a barrier that both have passed, or until its end; some are seen by others earlier, in no order. What
 * others have let be seen it sees after its own next fence. Atomic operations are on memory itself, where
 * everybody sees them at once. Pinned memory, which the host reads, is let go by fences that reach the host
 * alone; a block must not end without one behind what it has written there, but for what the thread of the
 * fence writes after it: the flag that the host waits for.
 *
 * That is weaker than the PTX memory consistency model in that a block never sees news without a fence, and
 * stronger in that a thread's fence brings news to all threads of its block at once; those who read them must
 * have passed a barrier with it, of which nothing is checked here (ThreadSanitizer does).
 *
 * Kernels are compiled as for ThreadSanitizer, so a function is called before every store (views.cc). While a
 * block runs, memory holds its view; between turns memory is what all see. Bytes that differ are kept. */

#include "cuda/emu/emu.h"

/* A block begins at a seat, and sees what all see. */
void emu_view_open(uint32_t seat);

/* It runs, or goes on; and its turn is over, or it has ended. */
void emu_view_enter(uint32_t seat);
void emu_view_leave(void);
void emu_view_close(void);

/* It will never go on: what it wrote is lost. */
void emu_view_drop(uint32_t seat);

/* The thread that runs passes a fence. */
void emu_view_fence(bool reaches_host);

#endif
