/* SPDX-License-Identifier: MIT */
/* See filters.h. cuda/kernels/sampling/filters.h does the same for a block of threads, operation by
 * operation. */

#include "engine/sampling/filters.h"

#include <math.h>

#include "engine/sampling/sampling.h"

bool filters_are_rare(const struct sampling *sampling)
{
    return sampling->top_n_sigma > 0 || sampling->typical_p < 1 || sampling->xtc_probability > 0 ||
           sampling->dynatemp_range > 0;
}

uint32_t filters_top_n_sigma(struct candidates *all, uint32_t n, const struct sampling *sampling, float best)
{
    uint64_t sum = 0, squares = 0;
    if (sampling->top_n_sigma <= 0)
        return n;
    for (uint32_t i = 0; i < n; i++) {
        float d = best - key_logit(all->items[i].key);
        d = d < FILTERS_FARTHEST ? d : FILTERS_FARTHEST;
        sum += (uint64_t)(d * DISTANCE_UNITS);
        squares += (uint64_t)(d * d * SQUARE_UNITS);
    }
    const double mean = (double)sum / (double)DISTANCE_UNITS / n;
    const double variance = fma(-mean, mean, (double)squares / (double)SQUARE_UNITS / n);
    const double sigma = variance > 0 ? sqrt(variance) : 0;
    const float least = (float)fma(-sampling->top_n_sigma, sigma, (double)best);
    return candidates_keep(all, n, key_of(least, UINT32_MAX));
}

uint32_t filters_top_k(struct candidates *all, uint32_t n, const struct sampling *sampling)
{
    const uint32_t k = (uint32_t)sampling->top_k;
    return k > 0 && k < n ? candidates_keep(all, n, candidates_threshold(all, n, false, k)) : n;
}

/* x ≤ 0: −x · e^x in units of 1 / MASS_ONE. */
static uint64_t surprise(float x)
{
    return x > LEAST_EXPONENT ? (uint64_t)(expf(x) * (float)MASS_ONE * -x) : 0;
}

float filters_temperature(const struct candidates *all, uint32_t n, const struct sampling *sampling,
                          float best)
{
    uint64_t total = 0, surprises = 0;
    if (!(sampling->dynatemp_range > 0) || n < 2)
        return (float)sampling->temperature;
    for (uint32_t i = 0; i < n; i++) {
        const float x = key_logit(all->items[i].key) - best;
        total += (uint64_t)(expf(x) * (float)MASS_ONE);
        surprises += surprise(x);
    }
    const double entropy = log((double)total / (double)MASS_ONE) + (double)surprises / (double)total;
    const double part = entropy / log(n), low = fmax(sampling->temperature - sampling->dynatemp_range, 0);
    const double high = sampling->temperature + sampling->dynatemp_range;
    return (float)fma(high - low, pow(part < 1 ? part : 1, sampling->dynatemp_exponent), low);
}

/* The mass that a share of the total is, at least 1. */
static uint64_t share_of(uint64_t total, double share)
{
    const uint64_t mass = (uint64_t)ceil((double)total * share);
    return mass ? mass : 1;
}

uint64_t filters_top_p_target(uint64_t total, const struct sampling *sampling)
{
    return share_of(total, sampling->top_p);
}

uint64_t filters_min_p_mass(uint64_t most, const struct sampling *sampling)
{
    return sampling->min_p > 0 ? (uint64_t)ceil((double)most * sampling->min_p) : 0;
}

/* The key of the order by |−ln p − H|: −ln p is the logarithm of the sum less x, and the entropy H the same
 * logarithm less the mean of x, so that the difference is that of x from its mean. */
static uint64_t typical_key(float x, float mean, uint32_t id)
{
    const float distance = fabsf(x + mean);
    uint32_t bits;
    memcpy(&bits, &distance, sizeof bits);
    return (uint64_t)(bits ^ UINT32_MAX) << 32 | (uint32_t)~id;
}

/* Locally typical sampling (Meister et al. 2022, arXiv:2202.00666): those nearest to the entropy. */
static uint32_t keep_typical(struct candidates *all, uint32_t n, const struct sampling *sampling,
                             struct scale scale, uint64_t total)
{
    uint64_t surprises = 0;
    for (uint32_t i = 0; i < n; i++)
        surprises += surprise((key_logit(all->items[i].key) - scale.best) / scale.temperature);
    const float mean = (float)((double)surprises / (double)total);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t key = all->keys[i] = all->items[i].key;
        all->items[i].key = typical_key((key_logit(key) - scale.best) / scale.temperature, mean, key_id(key));
    }
    const uint64_t least = candidates_threshold(all, n, true, share_of(total, sampling->typical_p));
    uint32_t kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (all->items[i].key >= least)
            all->items[kept++] = (struct candidate){all->keys[i], all->items[i].mass};
    return kept;
}

static bool xtc_happens(const struct sampling *sampling, uint64_t position)
{
    const uint32_t key[2] = {(uint32_t)sampling->seed, (uint32_t)(sampling->seed >> 32)};
    const uint32_t counter[4] = {(uint32_t)position, (uint32_t)(position >> 32), 0, 1};
    uint32_t random[4];
    philox4x32(counter, key, random);
    return ((double)random[0] + 0.5) * 0x1p-32 < sampling->xtc_probability;
}

static uint64_t sum_masses(const struct candidates *all, uint32_t n)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < n; i++)
        total += all->items[i].mass;
    return total;
}

/* Exclude top choices: of those that have the threshold of probability, all but the least likely go. */
static uint32_t drop_top_choices(struct candidates *all, uint32_t n, const struct sampling *sampling)
{
    const uint64_t least = (uint64_t)ceil((double)sum_masses(all, n) * sampling->xtc_threshold);
    uint64_t last = UINT64_MAX;
    uint32_t n_above = 0, kept = 0;
    for (uint32_t i = 0; i < n; i++)
        if (all->items[i].mass >= least) {
            n_above++;
            last = all->items[i].key < last ? all->items[i].key : last;
        }
    for (uint32_t i = 0; i < n; i++)
        if (n_above < 2 || all->items[i].mass < least || all->items[i].key == last)
            all->items[kept++] = all->items[i];
    return kept;
}

uint32_t filters_apply(struct candidates *all, uint32_t n, const struct sampling *sampling,
                       struct scale scale, uint64_t position)
{
    uint64_t most = MASS_ONE;
    for (uint32_t i = 0; i < n; i++) {
        const float x = (key_logit(all->items[i].key) - scale.best) / scale.temperature;
        all->items[i].mass = (uint64_t)(expf(x) * (float)MASS_ONE);
    }
    if (sampling->typical_p < 1)
        n = keep_typical(all, n, sampling, scale, sum_masses(all, n));
    if (sampling->top_p < 1)
        n = candidates_keep(
            all, n, candidates_threshold(all, n, true, filters_top_p_target(sum_masses(all, n), sampling)));
    if (sampling->min_p > 0 && sampling->typical_p < 1) /* it may have dropped the most likely */
        for (uint32_t i = most = 0; i < n; i++)
            most = all->items[i].mass > most ? all->items[i].mass : most;
    n = candidates_keep_mass(all, n, filters_min_p_mass(most, sampling));
    if (sampling->xtc_probability > 0 && xtc_happens(sampling, position))
        n = drop_top_choices(all, n, sampling);
    return n;
}
