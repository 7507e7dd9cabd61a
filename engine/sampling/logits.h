/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLING_LOGITS_H
#define ENGINE_SAMPLING_LOGITS_H

/* Passes over all logits of a row, with the widest vector registers of the machine: a vocabulary has 100,000
 * ids and more, and a scalar pass takes a millisecond. Every build gives the same bits.
 *
 * Logits that are not finite are skipped. */

#include <stdint.h>

#define LOGITS_PIECE 1024 /* ids in one piece of a contest: whole blocks of the generator */

/* The largest; −∞ if there is none. */
float logits_best(const float *logits, uint32_t n);

/* The lowest index of a logit that equals `value`; n if there is none. */
uint32_t logits_find(const float *logits, uint32_t n, float value);

/* Σ e^(logit − best), where `best` is the largest logit, with a relative error of about 10⁻⁷. */
double logits_sum_exp(const float *logits, uint32_t n, float best);

/* ret_masses[i], integers up to 2⁴⁰ as floats: ⌊expf((logits[i] − best) / temperature) · 2⁴⁰⌋ with libc's
 * expf. Returns their sum, which does not depend on the order. `best` is the largest logit, n ≤ 2²³. */
uint64_t logits_masses(const float *logits, uint32_t n, float best, float temperature, float *ret_masses);

/* The logits that are at least `least`. */
struct logits_part {
    float least;
    uint32_t n;    /* how many */
    uint64_t mass; /* the sum of their masses */
};
struct logits_part logits_from(const float *logits, const float *masses, uint32_t n, float least);

/* Writes the indices of logits ≥ `least` and < `below`, in ascending order; returns how many. */
uint32_t logits_between(const float *logits, uint32_t n, float least, float below, uint32_t *ret_indices);

/* The parameters of the noise: words of Philox4x32-10(seed, (position, id / 4)), as in sampling.h. */
struct contest {
    uint64_t seed, position;
    float best, temperature;
    float least; /* lower logits do not take part; −FLT_MAX: all do */
    double odds; /* e^(−the highest score so far) */
};

/* ret_may[i], for the ids first + i < first + n (n ≤ LOGITS_PIECE, first a multiple of 4): whether the id's
 * score, (logit − best) / temperature + its noise, may exceed the highest so far. A 0 is certain; nearly all
 * others do exceed it. logits[0] is that of `first`; ret_may[n …] are 0. */
void logits_contenders(const float *logits, uint32_t first, uint32_t n, const struct contest *contest,
                       uint8_t ret_may[LOGITS_PIECE]);

#endif
