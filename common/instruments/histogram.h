/* SPDX-License-Identifier: MIT */
#ifndef COMMON_INSTRUMENTS_HISTOGRAM_H
#define COMMON_INSTRUMENTS_HISTOGRAM_H

/* Histograms with fixed buckets, as in Prometheus. Counts only grow; the struct can be in shared memory.
 * Values are whole numbers; a scale gives their unit and the bounds of buckets. */

#include <stdint.h>

#define HISTOGRAM_BOUNDS  15
#define HISTOGRAM_BUCKETS (HISTOGRAM_BOUNDS + 1) /* the last one has no bound */

struct histogram {
    uint64_t sum;                       /* of all values, in units of the scale */
    uint64_t counts[HISTOGRAM_BUCKETS]; /* of each bucket, not cumulative */
};

struct histogram_scale {
    uint64_t bounds[HISTOGRAM_BOUNDS]; /* inclusive upper bounds of the buckets, ascending */
    double reals[HISTOGRAM_BOUNDS];    /* the same for people: bounds ÷ per_unit */
    double per_unit;
};

extern const struct histogram_scale histogram_seconds; /* nanoseconds: 500 µs to a minute */
extern const struct histogram_scale histogram_rows;    /* 1 to 2048 */
extern const struct histogram_scale histogram_shares;  /* thousandths: 5% to 100% */

/* Adds a value n times. `hint` is the bucket of the previous value, or any other bucket: successive values
 * are similar, so the search begins there. Returns the bucket. */
uint32_t histogram_add(struct histogram *histogram, const struct histogram_scale *scale, uint32_t hint,
                       uint64_t value, uint64_t n);

uint64_t histogram_count(const struct histogram *histogram);

#endif
