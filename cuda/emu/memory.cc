/* SPDX-License-Identifier: MIT */
/* Device memory and pinned memory: lists of what was allocated. Under AddressSanitizer each allocation has
 * red zones, and device memory is poisoned whenever the host's own code runs. */

#include "cuda/emu/emu.h"

#include <sys/mman.h>

#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

#define ALIGNMENT  256
#define HUGE_BYTES ((size_t)2 << 20)

/* A backend takes tens of MiB each time it opens, and all of it is filled. With huge pages, where the system
 * has them, a test of backends takes half the system time. */
static void *take_pages(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, bytes < HUGE_BYTES ? ALIGNMENT : HUGE_BYTES, bytes ? bytes : 1) != 0)
        return NULL;
    if (bytes >= HUGE_BYTES)
        madvise(memory, bytes / HUGE_BYTES * HUGE_BYTES, MADV_HUGEPAGE); /* or as it is */
    return memory;
}

void *emu_memory_take(struct emu_memory **list, size_t bytes)
{
    struct emu_memory *entry = (struct emu_memory *)malloc(sizeof *entry);
    void *memory = entry ? take_pages(bytes) : NULL;
    if (!memory) {
        free(entry);
        return NULL;
    }
    memset(memory, emu_fill_byte(), bytes);
    *entry = emu_memory{memory, bytes, *list};
    *list = entry;
    return memory;
}

size_t emu_memory_release(struct emu_memory **list, void *memory)
{
    for (; *list; list = &(*list)->next)
        if ((*list)->memory == memory) {
            struct emu_memory *entry = *list;
            size_t bytes = entry->bytes;
            *list = entry->next;
            free(entry->memory);
            free(entry);
            return bytes;
        }
    if (memory)
        emu_die("%p is freed but was not allocated", memory);
    return 0;
}

void emu_memory_release_all(struct emu_memory **list)
{
    while (*list)
        emu_memory_release(list, (*list)->memory);
}

bool emu_memory_holds(const struct emu_memory *list, const void *from, size_t bytes)
{
    for (; list; list = list->next) {
        size_t at = (size_t)((uintptr_t)from - (uintptr_t)list->memory);
        if (at <= list->bytes && bytes <= list->bytes - at)
            return true;
    }
    return false;
}

void emu_memory_poison(void *from, size_t bytes, bool poisoned)
{
#ifdef EMU_ASAN
    if (poisoned)
        __asan_poison_memory_region(from, bytes);
    else
        __asan_unpoison_memory_region(from, bytes);
#endif
}

void emu_memory_lock(const struct emu_memory *list, bool locked)
{
    for (; list; list = list->next)
        emu_memory_poison(list->memory, list->bytes, locked);
}
