/* SPDX-License-Identifier: MIT */
/* What /proc says is resident. A part of a run is judged by its most: a process that was just started has
 * little. */

#include "tests/integration/soak/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#define PARTS 10 /* of a run, to be printed: at most */

struct memory memory_begin(const char *name)
{
    return (struct memory){.name = name, .began_ns = clock_ns()};
}

/* KiB; 0 when there is no such process. */
static uint64_t resident_kib(pid_t pid)
{
    char path[64], line[128];
    unsigned long long kib = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "VmRSS: %llu", &kib) == 1)
            break;
    if (file)
        fclose(file);
    return kib;
}

void memory_look(struct memory *memory, const pid_t *pids, int n)
{
    uint64_t now = clock_ns(), kib = 0;
    if (now - memory->looked_ns < CLOCK_NS_PER_S)
        return;
    for (int i = 0; i < n; i++) {
        uint64_t one = pids[i] > 0 ? resident_kib(pids[i]) : 0;
        kib = one > kib ? one : kib;
    }
    if (kib == 0)
        return;
    memory->looked_ns = now;
    if (memory->n == memory->cap) {
        memory->cap = memory->cap ? memory->cap * 2 : 256;
        memory->looks = reallocarray(memory->looks, memory->cap, sizeof *memory->looks);
        if (!memory->looks)
            abort();
    }
    memory->looks[memory->n++] = kib;
}

static uint64_t most(const struct memory *memory, uint32_t from, uint32_t to)
{
    uint64_t kib = 0;
    for (uint32_t i = from; i < to; i++)
        if (memory->looks[i] > kib)
            kib = memory->looks[i];
    return kib;
}

bool memory_levels_off(struct memory *memory)
{
    uint32_t n = memory->n, parts = n < PARTS ? n : PARTS;
    uint64_t before = most(memory, 0, n - n / 3), last = most(memory, n - n / 3, n);
    bool judged = clock_ns() - memory->began_ns >= MEMORY_LEAST_S * CLOCK_NS_PER_S;
    bool grows = last > before + MEMORY_GROWTH(before);
    printf("memory of the %s, MiB, most in each tenth of the run:", memory->name);
    for (uint32_t i = 0; i < parts; i++)
        printf(" %.1f", (double)most(memory, n * i / parts, n * (i + 1) / parts) / 1024);
    printf("%s\n", !judged ? "" : grows ? ": it grows" : ": it is level");
    free(memory->looks);
    memory->looks = NULL;
    return !judged || !grows;
}
