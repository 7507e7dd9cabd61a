/* SPDX-License-Identifier: MIT */
/* Device memory and pinned memory: lists of what was allocated. Under AddressSanitizer each allocation has
 * red zones, and device memory is poisoned whenever the host's own code runs. */

#include "cuda/emu/emu.h"

#ifdef EMU_ASAN
#include <sanitizer/asan_interface.h>
#endif

void *emu_memory_take(struct emu_memory **list, size_t bytes)
{
    struct emu_memory *entry = (struct emu_memory *)malloc(sizeof *entry);
    void *memory = NULL;
    if (!entry || posix_memalign(&memory, 256, bytes ? bytes : 1) != 0) {
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
