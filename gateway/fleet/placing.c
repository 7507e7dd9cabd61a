/* SPDX-License-Identifier: MIT */
/* See placing.h. */

#include "gateway/fleet/placing.h"

static uint32_t slots_of(const struct placing_pool *pool)
{
    return pool->slots > 0 ? pool->slots : 1;
}

/* What all pools are compared with. */
struct measure {
    double least_recent;
    double load_weight;
    uint32_t most_slots;
};

/* To as many slots as the pool with most has. */
static double scaled_load(const struct placing_pool *pool, uint32_t most_slots)
{
    return pool->load * most_slots / slots_of(pool);
}

static struct measure measure_of(const struct placing_pool *pools, size_t n)
{
    struct measure measure = {pools[0].recent, 1, slots_of(&pools[0])};
    double sum = 0;
    for (size_t i = 1; i < n; i++) {
        if (pools[i].recent < measure.least_recent)
            measure.least_recent = pools[i].recent;
        if (slots_of(&pools[i]) > measure.most_slots)
            measure.most_slots = slots_of(&pools[i]);
    }
    for (size_t i = 0; i < n; i++)
        sum += scaled_load(&pools[i], measure.most_slots);
    if (sum > (double)n * PLACING_FULL_LOAD)
        measure.load_weight = (double)n * PLACING_FULL_LOAD / sum;
    return measure;
}

static double cost_of(const struct placing_pool *pool, const struct measure *measure, double tokens)
{
    const double overlap = pool->overlap < tokens ? pool->overlap : tokens;
    const double excess = PLACING_RECENT_WEIGHT * (pool->recent - measure->least_recent);
    const double saving = PLACING_OVERLAP_WEIGHT * overlap - excess;
    const double load = measure->load_weight * scaled_load(pool, measure->most_slots);
    return load + (tokens - overlap) - (saving > 0 ? saving : 0);
}

size_t placing_choose(const struct placing_pool *pools, size_t n, double tokens)
{
    const struct measure measure = measure_of(pools, n);
    size_t best = 0;
    double best_cost = cost_of(&pools[0], &measure, tokens);
    for (size_t i = 1; i < n; i++) {
        const double cost = cost_of(&pools[i], &measure, tokens);
        if (cost > best_cost || (cost == best_cost && pools[i].recent >= pools[best].recent))
            continue;
        best = i;
        best_cost = cost;
    }
    return best;
}
