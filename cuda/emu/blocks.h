/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_BLOCKS_H
#define CUDA_EMU_BLOCKS_H

/* The blocks of a launch, for the two ways to run them: in turn (blocks_in_turn.cc), or several at once
 * (blocks_at_once.cc). */

#include "cuda/emu/emu.h"

/* ---- blocks.cc ---- */

struct emu_blocks {
    const struct emu_launch *launch;
    uint64_t next, n;
    uint64_t skipped; /* number of the block that does nothing; UINT64_MAX: none */
};

/* A block's shared memory: aligned to 16, with a margin behind it. */
void *emu_shared_new(size_t bytes);
void emu_shared_free(void *shared, size_t bytes);

/* Sets emu_launched and what all blocks of it have in common in emu_block. */
void emu_blocks_open(struct emu_blocks *blocks, const struct emu_launch *launch);

/* Makes the next block the one that runs, with fresh shared memory. False: there is none. */
bool emu_blocks_next(struct emu_blocks *blocks, void *shared);

/* The block that runs has ended: looks what it wrote behind its memory, and counts what it read. */
void emu_blocks_end(void);

void emu_blocks_close(void);

/* ---- fibers.cc: the threads of the block that runs ---- */

/* Threads for blocks of this size, on stacks of their own for each of EMU_SEATS seats. */
void emu_fibers_open(struct simt_dim size, uint32_t seat);

/* The block's threads are at its beginning. */
void emu_fibers_begin(void);

/* Runs the block until its end: true; or until a thread yields: false. */
bool emu_fibers_run(void);

/* By a thread: returns when the block runs again. */
void emu_fibers_yield(void);

/* Barriers that all of its threads have passed. */
uint32_t emu_fibers_barriers(void);

/* Bytes that simt_load16 has loaded since the last call. */
uint64_t emu_fibers_loaded(void);

/* Where the threads of a block are while another one's run. */
struct emu_fibers *emu_fibers_new(void);
void emu_fibers_park(struct emu_fibers *to);
void emu_fibers_unpark(const struct emu_fibers *from);

#endif
