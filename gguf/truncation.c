/* SPDX-License-Identifier: MIT */
/* A list of mappings that a signal handler can walk while other threads add to it: entries are put in front
 * and never taken out, one that is free (start 0) is used again. An entry's start is written last and cleared
 * first, so what the handler finds by it is whole. Two threads that look for a free entry claim it by its
 * flag. This is state of the process, as signal handlers are. */

#include "gguf/truncation.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/program/last_words.h"

struct watched {
    struct watched *next;
    atomic_flag taken;
    atomic_uintptr_t start; /* 0: none */
    size_t size;
    char path[256];
};

static struct watched *_Atomic all;
static const char *process_name;
static int exit_status;
static struct sigaction before;

static struct watched *take_free(void)
{
    for (struct watched *entry = atomic_load(&all); entry; entry = entry->next)
        if (atomic_load(&entry->start) == 0 && !atomic_flag_test_and_set(&entry->taken))
            return entry;
    struct watched *entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    atomic_flag_test_and_set(&entry->taken);
    entry->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &entry->next, entry))
        ;
    return entry;
}

int truncation_watch(const void *start, size_t size, const char *path)
{
    struct watched *entry = take_free();
    if (!entry)
        return -ENOMEM;
    size_t len = strlen(path), skipped = len < sizeof entry->path ? 0 : len - (sizeof entry->path - 1);
    memcpy(entry->path, path + skipped, len - skipped + 1);
    entry->size = size;
    atomic_store(&entry->start, (uintptr_t)start);
    return 0;
}

void truncation_forget(const void *start)
{
    for (struct watched *entry = atomic_load(&all); entry; entry = entry->next)
        if (atomic_load(&entry->start) == (uintptr_t)start) {
            atomic_store(&entry->start, 0);
            atomic_flag_clear(&entry->taken);
            return;
        }
}

static _Noreturn void end(const struct watched *entry)
{
    static atomic_flag said; /* by another thread that reads the same file */
    while (atomic_flag_test_and_set(&said))
        pause();
    struct last_words words = {0};
    last_words_text(&words, process_name);
    last_words_text(&words, ": ");
    last_words_text(&words, entry->path);
    last_words_text(&words, " was truncated while being read");
    last_words_say(&words);
    _exit(exit_status);
}

static void on_bus_error(int signal, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;
    /* BUS_ADRERR: nothing is behind the address. Other codes are defects of ours or of the memory. */
    for (struct watched *entry = atomic_load(&all); info->si_code == BUS_ADRERR && entry;
         entry = entry->next) {
        uintptr_t start = atomic_load(&entry->start);
        if (start != 0 && at >= start && at - start < entry->size)
            end(entry);
    }
    /* The read is made again, and what was there before deals with it; a signal that somebody sent is not. */
    sigaction(signal, &before, NULL);
    if (info->si_code <= 0)
        raise(signal);
}

void truncation_catch(const char *name, int status)
{
    struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};
    process_name = name;
    exit_status = status;
    sigaction(SIGBUS, &action, &before);
}
