/* SPDX-License-Identifier: MIT */
/* See placing.h. */

#include "gateway/fleet/placing.h"

#include <math.h>
#include <stdlib.h>

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

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of two in the middle the smaller one. */
static double median_load(const struct placing_pool *pools, size_t n, uint32_t most_slots)
{
    double loads[PLACING_MEDIAN_OF];
    const size_t of = n < PLACING_MEDIAN_OF ? n : PLACING_MEDIAN_OF;
    for (size_t i = 0; i < of; i++)
        loads[i] = scaled_load(&pools[i * n / of], most_slots);
    qsort(loads, of, sizeof *loads, by_size);
    return loads[(of - 1) / 2];
}

static double sum_of_loads(const struct placing_pool *pools, size_t n, uint32_t most_slots, double most)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double load = scaled_load(&pools[i], most_slots);
        sum += load < most ? load : most;
    }
    return sum;
}

static double load_weight(const struct placing_pool *pools, size_t n, uint32_t most_slots)
{
    const double full = (double)n * PLACING_FULL_LOAD;
    if (sum_of_loads(pools, n, most_slots, INFINITY) <= full)
        return 1;
    const double outlier = PLACING_OUTLIER * median_load(pools, n, most_slots);
    const double most = outlier > PLACING_FULL_LOAD ? outlier : PLACING_FULL_LOAD;
    const double sum = sum_of_loads(pools, n, most_slots, most);
    return sum > full ? full / sum : 1;
}

static struct measure measure_of(const struct placing_pool *pools, size_t n)
{
    struct measure measure = {pools[0].recent, 1, slots_of(&pools[0])};
    for (size_t i = 1; i < n; i++) {
        if (pools[i].recent < measure.least_recent)
            measure.least_recent = pools[i].recent;
        if (slots_of(&pools[i]) > measure.most_slots)
            measure.most_slots = slots_of(&pools[i]);
    }
    measure.load_weight = load_weight(pools, n, measure.most_slots);
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
