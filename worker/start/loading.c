/* SPDX-License-Identifier: MIT */
#include "worker/start/loading.h"

#include <stdio.h>

#include "common/clock.h"

#define LEAST_NS      CLOCK_NS_PER_S
#define MOST_NS       (10 * CLOCK_NS_PER_S)
#define LEAST_PERCENT 5

bool loading_line(struct loading *loading, const char *what, uint64_t done, uint64_t total, uint64_t now,
                  char *line, size_t size)
{
    /* A float is exact enough, and cannot overflow. */
    const uint32_t percent = total > 0 ? (uint32_t)(100.0 * (double)done / (double)total) : 100;
    if (loading->told_ns == 0)
        loading->told_ns = now;
    const uint64_t since = now - loading->told_ns;
    if (since < LEAST_NS || percent <= loading->told || percent >= 100 ||
        (percent < loading->told + LEAST_PERCENT && since < MOST_NS))
        return false;
    *loading = (struct loading){now, percent};
    snprintf(line, size, "%s: %u%% of %llu MiB", what, percent, (unsigned long long)total >> 20);
    return true;
}

void loading_restart(struct loading *loading)
{
    *loading = (struct loading){0};
}
