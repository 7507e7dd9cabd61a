/* SPDX-License-Identifier: MIT */
/* What /proc says is resident. A third is judged by its most: a broker that was just started has little. */

#include "tests/integration/soak_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#define SLACK_KIB 8192

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

void memory_look(struct memory *memory, pid_t pid)
{
    uint64_t now = clock_ns(), kib;
    if (pid <= 0 || now - memory->looked_ns < CLOCK_NS_PER_S || (kib = resident_kib(pid)) == 0)
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
    uint32_t n = memory->n;
    uint64_t first = most(memory, 0, n / 3), second = most(memory, n / 3, n - n / 3),
             third = most(memory, n - n / 3, n);
    bool judged = clock_ns() - memory->began_ns >= MEMORY_LEAST_S * CLOCK_NS_PER_S;
    printf("memory of the %s, most in each third of the run: %.1f, %.1f, %.1f MiB\n", memory->name,
           (double)first / 1024, (double)second / 1024, (double)third / 1024);
    free(memory->looks);
    memory->looks = NULL;
    return !judged || third <= second + second / 8 + SLACK_KIB;
}
