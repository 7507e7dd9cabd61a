/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_COUNTERS_H
#define GATEWAY_CORE_COUNTERS_H

/* The gateway's counters for /metrics. They never decrease. */

#include <stddef.h>
#include <stdint.h>

#define HISTOGRAM_BOUNDS 14

struct histogram {
    uint64_t counts[HISTOGRAM_BOUNDS + 1]; /* of each bucket, not cumulative; the last one is unbounded */
    uint64_t n;
    double sum; /* seconds */
};

/* Upper bounds in seconds, from 1 ms to a minute. */
extern const double histogram_bounds[HISTOGRAM_BOUNDS];

void histogram_add(struct histogram *histogram, double seconds);

#define COUNTERS_CODES 600 /* HTTP statuses are smaller */

struct counters {
    uint64_t answers[COUNTERS_CODES]; /* by status */
    uint64_t prompt_tokens, cached_tokens, output_tokens;
    uint64_t abandoned;                              /* generations whose clients left */
    uint64_t connections_ended, connections_refused; /* to make room; because their address had too many */
    struct histogram first_token, between_tokens, queue, generation;
};

#endif
