/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_FIBERS_H
#define CUDA_EMU_FIBERS_H

/* The threads of the block that runs. */

#include "cuda/emu/emu.h"

/* Threads for blocks of this size, on stacks of their own for each of EMU_SEATS seats. */
void emu_fibers_open(struct simt_dim size, uint32_t seat);

/* The block's threads are at its beginning. */
void emu_fibers_begin(void);

/* Runs the block until its end: true; or until a thread yields: false. */
bool emu_fibers_run(void);

/* By a thread: returns when the block runs again. */
void emu_fibers_yield(void);

/* Bytes that simt_load16 has loaded since the last call. */
uint64_t emu_fibers_loaded(void);

/* Where the threads of a block are while another one's run. */
struct emu_fibers *emu_fibers_new(void);
void emu_fibers_park(struct emu_fibers *to);
void emu_fibers_unpark(const struct emu_fibers *from);

#endif
