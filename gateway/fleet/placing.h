/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_PLACING_H
#define GATEWAY_FLEET_PLACING_H

/* Chooses the pool for a request: the one with the least cost, in tokens,
 *
 *     cost = load + unread − saving,   saving = 4 · overlap − 0.1 · (recent − least recent), at least 0
 *
 * `load` is what the pool has to process and generate, scaled to its slots; `overlap` is what it probably has
 * of this prompt in its cache, and `unread` the rest. A prompt that is processed again delays every request
 * behind it, so what need not be read counts several times. A pool that has done more lately than others
 * loses a little of that, so that one popular prefix does not stay on one pool alone. On a tie the one that
 * has done less lately is chosen, so that an idle fleet does not fill one cache only.
 *
 * When the pools have more than 2,000 tokens to do in the mean, loads count in proportion to that mean. No
 * pool counts in it with more than four times the median, or 2,000 if that is more: pools say themselves what
 * they have to do, and one that says too much would make the differences of all others count for nothing.
 * Queues then differ by more than any overlap is worth: requests would go where the queue is shortest, be
 * processed again there, and make all queues longer.
 *
 * Constants by simulation (tests/bench/placing), with 8 to 1,000 pools: an overlap's weight of 1 finds 0.36
 * of the hits that are possible, 2 0.82, 4 0.90 with the shortest waits; half of `recent` takes the whole
 * saving away. With 8 pools and 4.2 requests a second each, loads that count in full leave 0.80 of the
 * ideal's hits, and 29 s to the first token at the 99th percentile; in proportion above 2,000 tokens it is
 * 0.998 and 3.4 s, above 3,000 0.961 and 5.3 s, above 4,000 0.984 and 3.4 s (two seeds each). */

#include <stddef.h>
#include <stdint.h>

#define PLACING_OVERLAP_WEIGHT 4
#define PLACING_RECENT_WEIGHT  0.1
#define PLACING_RECENT_TOKENS  65536 /* of any pool, above which `recent` of all is halved, by the caller */
#define PLACING_FULL_LOAD      2000  /* tokens, mean of all pools */
#define PLACING_OUTLIER        4     /* times the median, at most, in that mean */
#define PLACING_MEDIAN_OF      255   /* pools that the median is taken of, evenly among all */

struct placing_pool {
    double load;    /* tokens to process and generate */
    double recent;  /* tokens of requests that have ended lately */
    double overlap; /* tokens of the prompt that it has */
    uint32_t slots; /* sequences that it decodes at once; 0: not known, like 1 */
};

/* The number of the pool, of [n]. `tokens`: of the prompt. n > 0. */
size_t placing_choose(const struct placing_pool *pools, size_t n, double tokens);

#endif
