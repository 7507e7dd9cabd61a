/* SPDX-License-Identifier: MIT */
/* What each kernel did: how often it was launched, in how many blocks, the bytes that its streaming loads
 * took from memory, and what accesses.cc counts. */

#include "cuda/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine/backend/profile.h"

#define LAUNCH_NS 1000

static struct profile profile;
static struct backend_kernel *current;

/* The launch that is not on the clock yet: it may still run. */
static struct {
    char name[BACKEND_KERNEL_NAME];
    uint64_t n_blocks, loaded; /* what its row had loaded before */
    bool pending;
} timed;
static double clock_ns_passed;

/* ---- the clock ---- */

static const char *clock_list(void)
{
    return getenv("QUERN_EMU_CLOCK");
}

bool emu_has_clock(void)
{
    return clock_list() != NULL;
}

static double factor_of(const char *name)
{
    const size_t length = strlen(name);
    for (const char *item = clock_list(); item && *item;
         item += strcspn(item, ",") + (strchr(item, ',') != NULL))
        if (strncmp(item, name, length) == 0 && item[length] == '=')
            return strtod(item + length + 1, NULL);
    return 1;
}

static void pass_time(void)
{
    if (!timed.pending || !emu_has_clock())
        return;
    timed.pending = false;
    const uint64_t at_once = 2 * EMU_MULTIPROCESSORS;
    const uint64_t n_rounds = (timed.n_blocks + at_once - 1) / at_once;
    const double loaded = (double)(current->loaded - timed.loaded) / (double)timed.n_blocks;
    clock_ns_passed += factor_of(timed.name) * (LAUNCH_NS + (double)n_rounds * loaded);
}

uint64_t emu_clock_ns(void)
{
    pass_time();
    return (uint64_t)clock_ns_passed;
}

/* ---- the counts ---- */

void emu_profile_launch(const struct emu_launch *launch)
{
    pass_time();
    const struct simt_dim grid = launch->grid, block = launch->block;
    const uint32_t n_threads = block.x * block.y * block.z;
    current = profile_kernel(&profile, launch->name);
    current->n++;
    current->n_blocks += (uint64_t)grid.x * grid.y * grid.z;
    current->n_threads = n_threads > current->n_threads ? n_threads : current->n_threads;
    current->shared_bytes =
        launch->shared_bytes > current->shared_bytes ? launch->shared_bytes : current->shared_bytes;
    current->bytes += launch->expected;
    snprintf(timed.name, sizeof timed.name, "%s", launch->name);
    timed.n_blocks = (uint64_t)grid.x * grid.y * grid.z;
    timed.loaded = current->loaded;
    timed.pending = true;
}

struct backend_kernel *emu_profile_current(void)
{
    return current;
}

uint32_t emu_profile_take(const struct backend_kernel **ret_kernels)
{
    pass_time();
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
