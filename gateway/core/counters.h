/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_CORE_COUNTERS_H
#define GATEWAY_CORE_COUNTERS_H

/* The gateway's counters for /metrics. They never decrease. */

#include <stdint.h>

#include "common/instruments/histogram.h"

#define COUNTERS_CODES 600 /* HTTP statuses are smaller */

struct counters {
    uint64_t answers[COUNTERS_CODES]; /* by status */
    uint64_t prompt_tokens, cached_tokens, output_tokens;
    uint64_t abandoned;                              /* generations whose clients left */
    uint64_t connections_ended, connections_refused; /* to make room; because their address had too many */
    struct histogram first_token, between_tokens, queue, generation; /* of histogram_seconds */
};

/* Adds a time to one of them. */
void counters_add_seconds(struct histogram *histogram, double seconds);

#endif
