/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_COMMAND_LATENCY_VIEW_H
#define CLIENT_COMMAND_LATENCY_VIEW_H

/* The second table of `quern top`: the workers' histograms since the previous table. */

#include <stdbool.h>
#include <stdint.h>

#include <quern.h>

#define LATENCY_VIEW_WORKERS 64 /* as many as a pool has */

struct latencies { /* of a worker */
    uint32_t incarnation;
    struct quern_histogram decode, other, rows, gap, first, slots, kv;
    uint64_t padding_rows;
};

/* The histograms at the last look, and what they had gained by then since the one before; zeroed: none
 * seen. */
struct latency_view {
    struct latencies before[LATENCY_VIEW_WORKERS], since[LATENCY_VIEW_WORKERS];
};

/* The value below which the share `q` of a histogram's values lies. Values are assumed to be spread evenly
 * over their bucket, as in Prometheus' histogram_quantile; for the last bucket this is its lower bound. 0 if
 * there are none. */
double latency_quantile(const struct quern_histogram *histogram, double q);

/* What was added since `before`, which must be an earlier state of the same histogram. */
struct quern_histogram latency_since(const struct quern_histogram *now, const struct quern_histogram *before);

/* Prints the table to stdout, with long times in colour, and remembers the histograms. A worker that did
 * nothing since the last look has dashes; the first look covers everything since its start. Omits columns
 * that do not fit in `width`, the least important first; 0: no limit. */
void latency_print(struct latency_view *view, const struct quern_status *status, size_t width, bool colours);

#endif
