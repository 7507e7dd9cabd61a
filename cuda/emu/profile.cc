/* SPDX-License-Identifier: MIT */
/* What each kernel did: how often it was launched, in how many blocks, and the bytes that its streaming loads
 * took from memory. */

#include "cuda/emu/emu.h"

#include <inttypes.h>
#include <stdio.h>

#define MOST_KERNELS 256

struct row {
    const char *kernel;
    uint64_t n_launches, n_blocks, bytes;
};

static struct row rows[MOST_KERNELS];
static uint32_t n_rows, current;

void emu_profile_launch(const char *kernel, uint64_t n_blocks)
{
    for (current = 0; current < n_rows && strcmp(rows[current].kernel, kernel) != 0; current++)
        ;
    if (current == MOST_KERNELS)
        emu_die("more than %d different kernels", MOST_KERNELS);
    if (current == n_rows)
        rows[n_rows++] = row{kernel, 0, 0, 0};
    rows[current].n_launches++;
    rows[current].n_blocks += n_blocks;
}

void emu_profile_load(size_t bytes)
{
    rows[current].bytes += bytes;
}

void emu_profile_print(void)
{
    const char *wanted = getenv("QUERN_EMU_PROFILE");
    if (!wanted || strcmp(wanted, "1") != 0)
        return;
    fprintf(stderr, "%-28s %10s %12s %16s\n", "kernel", "launches", "blocks", "bytes streamed");
    for (uint32_t i = 0; i < n_rows; i++)
        fprintf(stderr, "%-28s %10" PRIu64 " %12" PRIu64 " %16" PRIu64 "\n", rows[i].kernel,
                rows[i].n_launches, rows[i].n_blocks, rows[i].bytes);
}
