/* SPDX-License-Identifier: MIT */
#ifndef CUDA_EMU_BLOCKS_H
#define CUDA_EMU_BLOCKS_H

/* The blocks of a launch, for the two ways to run them: in turn (blocks_in_turn.cc), or several at once
 * (blocks_at_once.cc). */

#include "cuda/emu/emu.h"

struct emu_blocks {
    const struct emu_launch *launch;
    uint64_t next, n;
    uint64_t skipped; /* number of the block that does nothing; UINT64_MAX: none */
};

/* A block's shared memory: aligned to 16 bytes, with a margin after it. */
void *emu_shared_new(size_t bytes);
void emu_shared_free(void *shared, size_t bytes);

/* Sets emu_launched, and the members of emu_block that are the same for all blocks. */
void emu_blocks_open(struct emu_blocks *blocks, const struct emu_launch *launch);

/* Makes the next block the running one, with fresh shared memory. False: there is none. */
bool emu_blocks_next(struct emu_blocks *blocks, void *shared);

/* The running block has ended: checks for writes after its shared memory, and counts what it read. */
void emu_blocks_end(void);

void emu_blocks_close(void);

#endif
