/* SPDX-License-Identifier: MIT */
/* See histogram.h. */

#include "common/instruments/histogram.h"

#define WHOLE(bound)      bound,
#define IN_SECONDS(ns)    (ns) / 1e9,
#define IN_ONES(bound)    bound,
#define IN_SHARES(shares) (shares) / 1e3,

/* clang-format off */
#define TIMES(X)                                                                                              \
    X(500000) X(1000000) X(2500000) X(5000000) X(10000000) X(25000000) X(50000000) X(100000000) X(250000000)  \
    X(500000000) X(1000000000) X(2500000000) X(5000000000) X(10000000000) X(60000000000)
#define ROWS(X)                                                                                               \
    X(1) X(2) X(4) X(8) X(16) X(24) X(32) X(48) X(64) X(96) X(128) X(256) X(512) X(1024) X(2048)
#define SHARES(X)                                                                                             \
    X(50) X(100) X(200) X(300) X(400) X(500) X(600) X(700) X(800) X(850) X(900) X(950) X(980) X(990) X(1000)
/* clang-format on */

const struct histogram_scale histogram_seconds = {{TIMES(WHOLE)}, {TIMES(IN_SECONDS)}, 1e9};
const struct histogram_scale histogram_rows = {{ROWS(WHOLE)}, {ROWS(IN_ONES)}, 1};
const struct histogram_scale histogram_shares = {{SHARES(WHOLE)}, {SHARES(IN_SHARES)}, 1e3};

uint32_t histogram_add(struct histogram *histogram, const struct histogram_scale *scale, uint32_t hint,
                       uint64_t value, uint64_t n)
{
    uint32_t i = hint < HISTOGRAM_BUCKETS ? hint : 0;
    while (i > 0 && value <= scale->bounds[i - 1])
        i--;
    while (i < HISTOGRAM_BOUNDS && value > scale->bounds[i])
        i++;
    histogram->counts[i] += n;
    histogram->sum += n * value;
    return i;
}

uint64_t histogram_count(const struct histogram *histogram)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < HISTOGRAM_BUCKETS; i++)
        n += histogram->counts[i];
    return n;
}
