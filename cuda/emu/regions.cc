/* SPDX-License-Identifier: MIT */
/* Regions in the order of their addresses: most of what is looked for is in none. */

#include "cuda/emu/emu.h"

struct emu_region {
    uintptr_t first, end;
};

static int by_address(const void *a, const void *b)
{
    const struct emu_region *x = (const struct emu_region *)a, *y = (const struct emu_region *)b;
    return x->first < y->first ? -1 : x->first > y->first;
}

void emu_regions_fill(struct emu_regions *regions, const struct emu_memory *list)
{
    regions->n = 0;
    for (const struct emu_memory *entry = list; entry; entry = entry->next) {
        if (regions->n == regions->room) {
            regions->room = regions->room ? 2 * regions->room : 256;
            regions->items =
                (struct emu_region *)realloc(regions->items, regions->room * sizeof *regions->items);
            if (!regions->items)
                emu_die("not enough memory to track the device's memory");
        }
        const uintptr_t first = (uintptr_t)entry->memory;
        regions->items[regions->n++] = emu_region{first, first + entry->bytes};
    }
    qsort(regions->items, regions->n, sizeof *regions->items, by_address);
}

bool emu_regions_hold(const struct emu_regions *regions, uintptr_t at)
{
    uint32_t first = 0, end = regions->n;
    while (first < end) {
        const uint32_t middle = (first + end) / 2;
        if (regions->items[middle].end <= at)
            first = middle + 1;
        else
            end = middle;
    }
    return first < regions->n && at >= regions->items[first].first;
}
