/* SPDX-License-Identifier: MIT */
#ifndef WORKER_ENGINE_LOGITS_H
#define WORKER_ENGINE_LOGITS_H

/* Passes over all logits of a row, which take the widest vector registers there are: a vocabulary has 100,000
 * ids and more, and what happens to each of them id by id takes a millisecond. Every build gives the same
 * bits.
 *
 * Logits that are not finite count as not there. */

#include <stdint.h>

#define LOGITS_PIECE 1024 /* ids of one piece of a contest: whole blocks of the generator */

/* The largest; −∞ when there is none. */
float logits_best(const float *logits, uint32_t n);

/* The lowest index of one that equals `value`; n when there is none. */
uint32_t logits_find(const float *logits, uint32_t n, float value);

/* Σ e^(logit − best), `best` being the largest: to about 10⁻⁷ of it. */
double logits_sum_exp(const float *logits, uint32_t n, float best);

/* Whose noise is drawn: words of Philox4x32-10(seed, (position, id / 4)), as in sampling.h. */
struct contest {
    uint64_t seed, position;
    float best, temperature;
    double odds; /* e^(−the highest score so far) */
};

/* ret_may[i], for the ids first + i < first + n (n ≤ LOGITS_PIECE, first a multiple of 4): whether the id's
 * score, (logit − best) / temperature + its noise, may be above the highest so far. Nearly all that say so
 * are; none that is says no. `logits` begin with that of `first`; ret_may[n …] are 0. */
void logits_contenders(const float *logits, uint32_t first, uint32_t n, const struct contest *contest,
                       uint8_t ret_may[LOGITS_PIECE]);

#endif
