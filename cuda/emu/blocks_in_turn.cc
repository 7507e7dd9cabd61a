/* SPDX-License-Identifier: MIT */
/* Blocks run one after the other, in the order of their index: each sees all that those before have written,
 * and fences change nothing. */

#include "cuda/emu/blocks.h"
#include "cuda/emu/fibers.h"

bool emu_run(const struct emu_launch *launch)
{
    struct emu_blocks blocks;
    void *shared = emu_shared_new(launch->shared_bytes);
    emu_blocks_open(&blocks, launch);
    emu_fibers_open(launch->block, 0);
    while (emu_blocks_next(&blocks, shared)) {
        emu_fibers_begin();
        emu_fibers_run();
        emu_blocks_end();
    }
    emu_shared_free(shared, launch->shared_bytes);
    emu_blocks_close();
    return true;
}

void emu_drop(void)
{
}

void emu_fence(const char *file, uint32_t line, bool reaches_host)
{
}
