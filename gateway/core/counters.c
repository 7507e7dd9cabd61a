/* SPDX-License-Identifier: MIT */
/* See counters.h. */

#include "gateway/core/counters.h"

const double histogram_bounds[HISTOGRAM_BOUNDS] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1,
                                                   0.25,  0.5,    1,     2.5,  5,     10,   60};

void histogram_add(struct histogram *histogram, double seconds)
{
    size_t i = 0;
    while (i < HISTOGRAM_BOUNDS && seconds > histogram_bounds[i])
        i++;
    histogram->counts[i]++;
    histogram->n++;
    histogram->sum += seconds;
}
