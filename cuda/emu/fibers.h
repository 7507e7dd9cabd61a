/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_FIBERS_H
#define CUDA_EMU_FIBERS_H

/* The threads of the running block. */

#include "cuda/emu/emu.h"

/* Makes threads for blocks of this size, with separate stacks for each of EMU_SEATS seats. */
void emu_fibers_open(struct simt_dim size, uint32_t seat);

/* Puts the block's threads at the beginning of the kernel. */
void emu_fibers_begin(void);

/* Runs the block until its end (true) or until a thread yields (false). */
bool emu_fibers_run(void);

/* Called by a thread: returns when the block runs again. */
void emu_fibers_yield(void);

/* Bytes loaded by simt_load16 since the last call. */
uint64_t emu_fibers_loaded(void);

/* The threads of a block while those of another run. */
struct emu_fibers *emu_fibers_new(void);
void emu_fibers_park(struct emu_fibers *to);
void emu_fibers_unpark(const struct emu_fibers *from);

#endif
