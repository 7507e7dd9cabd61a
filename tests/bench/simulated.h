/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SIMULATED_H
#define TESTS_BENCH_SIMULATED_H

/* What simulations have in common: numbers by chance, and memory that is there or ends the program. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* From 0 up to 1, by a state that is not 0 (G. Marsaglia, "Xorshift RNGs", 2003). */
static inline double simulated_draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (double)(*state >> 11) / (double)(1ull << 53);
}

static inline void simulated_no_memory(void)
{
    fprintf(stderr, "out of memory\n");
    exit(1);
}

/* Zeroed; free() it. */
static inline void *simulated_memory(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    if (!memory)
        simulated_no_memory();
    return memory;
}

#endif
