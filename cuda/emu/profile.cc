/* SPDX-License-Identifier: MIT */
/* What each kernel did: how often it was launched, in how many blocks, the bytes that its streaming loads
 * took from memory, and what accesses.cc counts. */

#include "cuda/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>

#include "engine/backend/profile.h"

static struct profile profile;
static struct backend_kernel *current;

void emu_profile_launch(const struct emu_launch *launch)
{
    const struct simt_dim grid = launch->grid, block = launch->block;
    const uint32_t n_threads = block.x * block.y * block.z;
    current = profile_kernel(&profile, launch->name);
    current->n++;
    current->n_blocks += (uint64_t)grid.x * grid.y * grid.z;
    current->n_threads = n_threads > current->n_threads ? n_threads : current->n_threads;
    current->shared_bytes =
        launch->shared_bytes > current->shared_bytes ? launch->shared_bytes : current->shared_bytes;
    current->bytes += launch->expected;
}

struct backend_kernel *emu_profile_current(void)
{
    return current;
}

uint32_t emu_profile_take(const struct backend_kernel **ret_kernels)
{
    return profile_take(&profile, ret_kernels);
}

void emu_profile_print(void)
{
    const char *wanted = getenv("QUERN_EMU_PROFILE");
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    fprintf(stderr, "%-28s %10s %12s %16s\n", "kernel", "launches", "blocks", "bytes streamed");
    for (uint32_t i = 0; i < profile.n; i++)
        fprintf(stderr, "%-28s %10" PRIu64 " %12" PRIu64 " %16" PRIu64 "\n", profile.kernels[i].name,
                profile.kernels[i].n, profile.kernels[i].n_blocks, profile.kernels[i].loaded);
}
