/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_VIEWS_H
#define CUDA_EMU_VIEWS_H

/* Gives each of several blocks its own view of the device's memory: a memory model as weak as a GPU's.
 *
 * A block's view is memory as it was at its beginning or at its last fence, plus its own writes. Its writes
 * stay in its view until a fence of the thread that wrote them, or of another thread of the block after a
 * barrier that both have passed, or until its end; some become visible to others earlier, in no particular
 * order. A block sees what others have published after its own next fence. Atomic operations act on memory
 * itself, where all blocks see them at once. Writes to pinned memory, which the host reads, are published
 * only by fences that reach the host. A block must not end with writes there that no such fence follows,
 * except writes of the fence's thread after it: the flag that the host waits for.
 *
 * This is weaker than the PTX memory consistency model in that a block never sees new values without a fence,
 * and stronger in that a thread's fence updates the view of all threads of its block at once; threads that
 * read the new values must have passed a barrier with it, which is not checked here (ThreadSanitizer does
 * that).
 *
 * Kernels are compiled as for ThreadSanitizer, so a function is called before every store (views.cc). While a
 * block runs, memory holds its view; between turns it holds the common state. Differing bytes are kept
 * separately. */

#include "cuda/emu/emu.h"

/* A block begins at a seat, with the common state as its view. */
void emu_view_open(uint32_t seat);

/* The block starts or continues to run; its turn is over; it has ended. */
void emu_view_enter(uint32_t seat);
void emu_view_leave(void);
void emu_view_close(void);

/* The block will never continue: its writes are lost. */
void emu_view_drop(uint32_t seat);

/* The running thread passes a fence. */
void emu_view_fence(bool reaches_host);

#endif
