/* SPDX-License-Identifier: MIT */
/* What a launch's blocks have around them: their index, shared memory with a margin behind it, and the one
 * that a test has skipped. */

#include "cuda/emu/blocks.h"

#include <stdlib.h>

#include "cuda/emu/fibers.h"
#include "engine/backend/backend.h"

#define MARGIN_BYTES 64   /* behind shared memory, to see who writes there */
#define MARGIN_BYTE  0x5c /* what it is full of */

void *emu_shared_new(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 16, bytes + MARGIN_BYTES) != 0)
        abort();
    memset((uint8_t *)memory + bytes, MARGIN_BYTE, MARGIN_BYTES);
    emu_memory_poison((uint8_t *)memory + bytes, MARGIN_BYTES, true);
    return memory;
}

/* Behind the memory of the block that runs. */
static void check_margin(void)
{
    const uint8_t *margin = (const uint8_t *)emu_block.shared + emu_block.shared_bytes;
    for (uint32_t i = 0; i < MARGIN_BYTES; i++)
        if (margin[i] != MARGIN_BYTE)
            emu_die("it wrote past the end of its %zu bytes of shared memory", emu_block.shared_bytes);
}

void emu_shared_free(void *shared, size_t bytes)
{
    emu_memory_poison((uint8_t *)shared + bytes, MARGIN_BYTES, false);
    free(shared);
}

/* $QUERN_EMU_SKIP names a kernel that computes wrongly: its last block does nothing, or that of the number
 * behind a colon, in launches that are so large. UINT64_MAX: all blocks do what they should. */
static uint64_t skipped_block(const struct emu_launch *launch)
{
    const char *name = getenv("QUERN_EMU_SKIP");
    const size_t length = strlen(launch->name);
    if (!name || strncmp(name, launch->name, length) != 0)
        return UINT64_MAX;
    if (name[length] == ':')
        return strtoull(name + length + 1, NULL, 10);
    return name[length] ? UINT64_MAX : (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z - 1;
}

/* $QUERN_EMU_OMIT names a kernel that does not wait for the launch before it. */
static bool omits_wait(const struct emu_launch *launch)
{
    const char *name = getenv("QUERN_EMU_OMIT");
    return name && strcmp(name, launch->name) == 0;
}

void emu_blocks_open(struct emu_blocks *blocks, const struct emu_launch *launch)
{
    blocks->launch = launch;
    blocks->next = 0;
    blocks->n = (uint64_t)launch->grid.x * launch->grid.y * launch->grid.z;
    blocks->skipped = skipped_block(launch);
    emu_launched = launch;
    emu_self = NULL;
    memset(&emu_block, 0, sizeof emu_block);
    emu_block.size = launch->block;
    emu_block.grid = launch->grid;
    emu_block.overlaps = launch->overlaps;
    emu_block.waits = !omits_wait(launch);
    emu_block.shared_bytes = launch->shared_bytes;
    emu_profile_launch(launch);
}

bool emu_blocks_next(struct emu_blocks *blocks, void *shared)
{
    const struct simt_dim grid = blocks->launch->grid;
    blocks->next += blocks->next == blocks->skipped;
    if (blocks->next >= blocks->n)
        return false;
    const uint64_t at = blocks->next++;
    emu_block.index =
        simt_dim{(uint32_t)(at % grid.x), (uint32_t)(at / grid.x % grid.y), (uint32_t)(at / grid.x / grid.y)};
    emu_block.shared = shared;
    memset(shared, emu_fill_byte(), emu_block.shared_bytes);
    return true;
}

void emu_blocks_end(void)
{
    check_margin();
    emu_profile_current()->loaded += emu_fibers_loaded();
}

void emu_blocks_close(void)
{
    emu_block.shared = NULL;
    emu_launched = NULL;
}
