/* SPDX-License-Identifier: MIT */
#ifndef TESTS_BENCH_SIMULATED_H
#define TESTS_BENCH_SIMULATED_H

/* Shared by simulations: random numbers, and memory allocation that ends the program on failure. */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* A random number in [0, 1), from a nonzero state (G. Marsaglia, "Xorshift RNGs", 2003). */
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

/* Zeroed memory; free it with free(). */
static inline void *simulated_memory(size_t n, size_t size)
{
    void *memory = calloc(n, size);
    if (!memory)
        simulated_no_memory();
    return memory;
}

#endif
