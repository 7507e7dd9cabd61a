/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_PLACING_H
#define GATEWAY_FLEET_PLACING_H

/* Chooses the pool for a request: the one with the least cost, in tokens,
 *
 *     cost = load + unread − saving,   saving = 4 · overlap − 0.1 · (recent − least recent), at least 0
 *
 * `load` is what the pool has to process and generate, scaled to its slots; `overlap` is how much of this
 * prompt it probably has in its cache, and `unread` the rest. A prompt that is processed again delays every
 * request behind it, so cached tokens count several times. A pool that has recently done more than others
 * loses a little of its saving, so that a popular prefix does not stay on one pool alone. On a tie the pool
 * that has recently done less is chosen, so that an idle fleet does not fill only one cache.
 *
 * If the mean load exceeds 2,000 tokens, loads are scaled down in proportion to that mean. Under such load
 * queues differ by more than any overlap is worth: unscaled, requests would go to the shortest queue, be
 * processed again there, and make all queues longer. In the mean, no pool counts with more than four times
 * the median, or 2,000 if that is more: pools report their own load, and a pool that exaggerates would make
 * the differences between all others negligible.
 *
 * The constants come from simulation (tests/bench/placing) with 8 to 1,000 pools: an overlap weight of 1
 * finds 0.36 of the possible hits, 2 finds 0.82, and 4 finds 0.90 with the shortest waits; a weight of half
 * for `recent` cancels the whole saving. With 8 pools and 4.2 requests a second each, unscaled loads give
 * 0.80 of the ideal's hits and 29 s to the first token at the 99th percentile; scaled above 2,000 tokens it
 * is 0.998 and 3.4 s, above 3,000 0.961 and 5.3 s, above 4,000 0.984 and 3.4 s (two seeds each). */

#include <stddef.h>
#include <stdint.h>

#define PLACING_OVERLAP_WEIGHT 4
#define PLACING_RECENT_WEIGHT  0.1
#define PLACING_RECENT_TOKENS  65536 /* of any pool; above this the caller halves `recent` of all */
#define PLACING_FULL_LOAD      2000  /* tokens, mean of all pools */
#define PLACING_OUTLIER        4     /* times the median, at most, in that mean */
#define PLACING_MEDIAN_OF      255   /* pools sampled evenly for the median, at most */

struct placing_pool {
    double load;    /* tokens to process and generate */
    double recent;  /* tokens of recently ended requests */
    double overlap; /* tokens of the prompt that it has cached */
    uint32_t slots; /* sequences that it decodes at once; 0: unknown, treated as 1 */
};

/* The index of the chosen pool; n > 0. `tokens`: of the prompt. */
size_t placing_choose(const struct placing_pool *pools, size_t n, double tokens);

#endif
