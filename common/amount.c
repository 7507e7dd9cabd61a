/* SPDX-License-Identifier: MIT */
/* Numbers with their unit. */

#include "common/amount.h"

#include <inttypes.h>
#include <stdio.h>

#define EXACT_BELOW 10000 /* bytes */

struct amount amount_of(uint64_t n, const char *one)
{
    struct amount amount;
    snprintf(amount.text, sizeof amount.text, "%" PRIu64 " %s%s", n, one, n == 1 ? "" : "s");
    return amount;
}

struct amount amount_of_bytes(uint64_t n)
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    struct amount amount;
    unsigned unit = 0, shift = 10;
    if (n < EXACT_BELOW)
        return amount_of(n, "byte");
    while (unit + 1 < sizeof units / sizeof *units && n >> shift >= 1024) {
        unit++;
        shift += 10;
    }
    if (n % (1ull << shift) == 0) {
        snprintf(amount.text, sizeof amount.text, "%" PRIu64 " %s", n >> shift, units[unit]);
    } else {
        double shown = (double)n / (double)(1ull << shift);
        snprintf(amount.text, sizeof amount.text, "%.*f %s", shown < 9.995 ? 2 : 1, shown, units[unit]);
    }
    return amount;
}
