/* SPDX-License-Identifier: MIT */
#ifndef COMMON_CLOCK_H
#define COMMON_CLOCK_H

/* The monotonic clock. Wall clocks are never compared between processes. */

#include <stdint.h>
#include <time.h>

#define CLOCK_NS_PER_MS 1000000ull
#define CLOCK_NS_PER_S  1000000000ull

/* Nanoseconds since boot. Cannot fail. All processes of a host share it and may compare values. */
static inline uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * CLOCK_NS_PER_S + (uint64_t)t.tv_nsec;
}

#endif
