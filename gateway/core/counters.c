/* SPDX-License-Identifier: MIT */
/* See counters.h. */

#include "gateway/core/counters.h"

void counters_add_seconds(struct histogram *histogram, double seconds)
{
    histogram_add(histogram, &histogram_seconds, 0, seconds > 0 ? (uint64_t)(seconds * 1e9) : 0, 1);
}
