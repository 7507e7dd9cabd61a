/* SPDX-License-Identifier: MIT */
#ifndef CUDA_KERNELS_SAMPLING_FILTERS_H
#define CUDA_KERNELS_SAMPLING_FILTERS_H

/* Filters the candidates of a row, by a block of threads, for kernels only: engine/sampling/filters.c,
 * operation by operation. Nothing is moved: each filter yields a bound, and the candidates within all bounds
 * remain. */

#include "cuda/kernels/sampling/descent.h"

struct filter {
    float best, temperature;
    uint64_t least_key, least_mass, least_typical;
    float mean;        /* of −x, if least_typical is set */
    uint64_t xtc_mass; /* candidates of at least this mass are removed, except xtc_key; both 0: none */
    uint64_t xtc_key;
};

/* Whether a filter is on that needs all candidates or the temperature. */
__device__ static inline bool filters_are_rare(const struct slot_state *slot)
{
    return slot->top_n_sigma > 0 || slot->typical_p < 1 || slot->xtc_probability > 0 ||
           slot->dynatemp_range > 0;
}

__device__ static inline uint64_t surprise(float x)
{
    return x > LEAST_EXPONENT ? (uint64_t)(expf(x) * (float)MASS_ONE * -x) : 0;
}

__device__ static inline uint64_t typical_key(float x, float mean, uint32_t id)
{
    return (uint64_t)(simt_bits(fabsf(x + mean)) ^ UINT32_MAX) << 32 | (uint32_t)~id;
}

__device__ static inline bool is_left(const struct filter *filter, float logit, uint32_t id, uint64_t mass)
{
    const uint64_t key = key_of(logit, id);
    if (key < filter->least_key || mass < filter->least_mass)
        return false;
    if (filter->least_typical > 0 &&
        typical_key((logit - filter->best) / filter->temperature, filter->mean, id) < filter->least_typical)
        return false;
    return filter->xtc_key == 0 || mass < filter->xtc_mass || key == filter->xtc_key;
}

/* The sums of top-nσ over the candidates that a thread has seen. */
struct spread {
    uint64_t n, sum, squares;
};

__device__ static inline void spread_add(struct spread *spread, float logit, float best)
{
    float d = best - logit;
    d = d < FILTERS_FARTHEST ? d : FILTERS_FARTHEST;
    spread->n++;
    spread->sum += (uint64_t)(d * DISTANCE_UNITS);
    spread->squares += (uint64_t)(d * d * SQUARE_UNITS);
}

__device__ static inline float spread_least(const struct spread *spread, double top_n_sigma, float best)
{
    const double n = (double)spread->n, mean = (double)spread->sum / (double)DISTANCE_UNITS / n;
    const double variance = fma(-mean, mean, (double)spread->squares / (double)SQUARE_UNITS / n);
    return (float)fma(-top_n_sigma, variance > 0 ? sqrt(variance) : 0, (double)best);
}

/* Calls f(logit, id, mass) for every remaining candidate. All threads. */
template <class F>
__device__ static inline void each_left(const struct sampled_row *row, struct descent_shared *shared,
                                        const struct filter *filter, F f)
{
    each_candidate(row, shared, [&](float logit, uint32_t id) {
        const uint64_t mass = mass_of(logit, filter->best, filter->temperature);
        if (is_left(filter, logit, id, mass))
            f(logit, id, mass);
    });
}

__device__ static inline uint64_t total_left(const struct sampled_row *row, struct descent_shared *shared,
                                             const struct filter *filter)
{
    uint64_t total = 0;
    each_left(row, shared, filter, [&](float, uint32_t, uint64_t mass) { total += mass; });
    return block_sum(shared->keys, total);
}

/* The dynamic temperature, over the candidates that top-nσ and top-k leave. */
__device__ static inline float find_temperature(const struct sampled_row *row, struct descent_shared *shared,
                                                const struct filter *filter)
{
    const struct slot_state *slot = row->slot;
    uint64_t n = 0, total = 0, surprises = 0;
    if (!(slot->dynatemp_range > 0))
        return slot->temperature;
    each_candidate(row, shared, [&](float logit, uint32_t id) {
        if (key_of(logit, id) < filter->least_key)
            return;
        n++;
        total += mass_of(logit, filter->best, 1);
        surprises += surprise(logit - filter->best);
    });
    n = block_sum(shared->keys, n);
    total = block_sum(shared->keys, total);
    surprises = block_sum(shared->keys, surprises);
    if (n < 2)
        return slot->temperature;
    const double entropy = log((double)total / (double)MASS_ONE) + (double)surprises / (double)total;
    const double part = entropy / log((double)n);
    const double low = fmax(slot->dynatemp_middle - slot->dynatemp_range, 0.0);
    const double high = slot->dynatemp_middle + slot->dynatemp_range;
    return (float)fma(high - low, pow(part < 1 ? part : 1, slot->dynatemp_exponent), low);
}

__device__ static inline void keep_typical(const struct sampled_row *row, struct descent_shared *shared,
                                           struct filter *filter)
{
    const float best = filter->best, temperature = filter->temperature;
    const uint64_t total = total_left(row, shared, filter);
    uint64_t surprises = 0;
    each_left(row, shared, filter,
              [&](float logit, uint32_t, uint64_t) { surprises += surprise((logit - best) / temperature); });
    surprises = block_sum(shared->keys, surprises);
    const float mean = (float)((double)surprises / (double)total);
    const uint64_t target = (uint64_t)ceil((double)total * row->slot->typical_p);
    const uint64_t least = filter->least_key;
    const uint64_t found = key_threshold(
        row, shared, target ? target : 1,
        [=](float logit, uint32_t id) {
            return key_of(logit, id) < least ? 0 : typical_key((logit - best) / temperature, mean, id);
        },
        [=](float logit) { return mass_of(logit, best, temperature); });
    filter->mean = mean;
    filter->least_typical = found > 0 ? found : 1;
}

/* `total`: the mass of all candidates, if the row's list does not have all of them; 0: it has. */
__device__ static inline void keep_top_p(const struct sampled_row *row, struct descent_shared *shared,
                                         struct filter *filter, uint64_t total)
{
    const struct filter f = *filter;
    if (total == 0)
        total = total_left(row, shared, filter);
    const uint64_t target = (uint64_t)ceil((double)total * row->slot->top_p);
    const uint64_t key = key_threshold(
        row, shared, target ? target : 1,
        [=](float logit, uint32_t id) {
            const bool left = f.least_typical == 0 || is_left(&f, logit, id, MASS_ONE);
            const uint64_t k = key_of(logit, id);
            return left && k >= f.least_key ? k : 0;
        },
        [=](float logit) { return mass_of(logit, f.best, f.temperature); });
    filter->least_key = key > f.least_key ? key : f.least_key;
}

__device__ static inline bool xtc_happens(const struct sampled_row *row)
{
    uint32_t random[4];
    random_block(row->position, row->slot->seed, 0, 1, random);
    return ((double)random[0] + 0.5) * 0x1p-32 < row->slot->xtc_probability;
}

__device__ static inline void drop_top_choices(const struct sampled_row *row, struct descent_shared *shared,
                                               struct filter *filter)
{
    const uint64_t total = total_left(row, shared, filter);
    const uint64_t least = (uint64_t)ceil((double)total * row->slot->xtc_threshold);
    uint64_t n_above = 0, last = 0; /* the complement of the smallest key */
    each_left(row, shared, filter, [&](float logit, uint32_t id, uint64_t mass) {
        if (mass < least)
            return;
        n_above++;
        last = ~key_of(logit, id) > last ? ~key_of(logit, id) : last;
    });
    n_above = block_sum(shared->keys, n_above);
    last = block_max(shared, last);
    if (n_above < 2)
        return;
    filter->xtc_mass = least;
    filter->xtc_key = ~last;
}

__device__ static inline uint64_t most_mass_left(const struct sampled_row *row, struct descent_shared *shared,
                                                 const struct filter *filter)
{
    uint64_t most = 0;
    each_left(row, shared, filter, [&](float, uint32_t, uint64_t mass) { most = mass > most ? mass : most; });
    return block_max(shared, most);
}

/* All filters, in the order of sampling.h. The bound of top-nσ is already known: sigma_key. One block. */
__device__ static inline struct filter make_filter(const struct sampled_row *row,
                                                   struct descent_shared *shared, float best, uint64_t total,
                                                   uint64_t sigma_key)
{
    const struct slot_state *slot = row->slot;
    struct filter filter = {best, slot->temperature, sigma_key, 0, 0, 0, 0, 0};
    if (slot->top_k > 0) {
        const uint64_t key = key_threshold(
            row, shared, slot->top_k,
            [=](float logit, uint32_t id) { return key_of(logit, id) < sigma_key ? 0 : key_of(logit, id); },
            [](float) { return (uint64_t)1; });
        filter.least_key = key > sigma_key ? key : sigma_key;
    }
    filter.temperature = find_temperature(row, shared, &filter);
    if (filter.temperature == 0)
        return filter;
    if (slot->typical_p < 1)
        keep_typical(row, shared, &filter);
    if (slot->top_p < 1)
        keep_top_p(row, shared, &filter, total);
    if (slot->min_p > 0) {
        const uint64_t most = slot->typical_p < 1 ? most_mass_left(row, shared, &filter) : MASS_ONE;
        filter.least_mass = (uint64_t)ceil((double)most * slot->min_p);
    }
    if (slot->xtc_probability > 0 && xtc_happens(row))
        drop_top_choices(row, shared, &filter);
    return filter;
}

#endif
