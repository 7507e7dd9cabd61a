/* SPDX-License-Identifier: MIT */
/* See trust.h.
 *
 * At a cut all pools have answered last within the 100 ms before it. When the first of them has been silent
 * for 400 ms the others have been for 300, so those that are silent for 250 ms count with it. */

#include "gateway/fleet/trust.h"

bool trust_turn(struct trust *trust, uint64_t now)
{
    const bool late = trust->turn_ns != 0 && now - trust->turn_ns > TRUST_LATE_NS;
    if ((late || trust->turn_ns == 0) && trust->from_ns < now)
        trust->from_ns = now;
    trust->turn_ns = now;
    return late;
}

static uint64_t silence_of(const struct trust *trust, const struct trust_pool *pool, uint64_t now)
{
    const uint64_t from = pool->answered_ns > trust->from_ns ? pool->answered_ns : trust->from_ns;
    return now > from ? now - from : 0;
}

/* Whether its silence is one that began at the last doubt, and has outlasted it. */
static bool never_came_back(const struct trust *trust, const struct trust_pool *pool)
{
    return trust->heard_ns != 0 && pool->answered_ns < trust->heard_ns;
}

static bool is_silent(const struct trust *trust, const struct trust_pool *pool, uint64_t now, uint64_t limit)
{
    return pool->watched && !pool->dead && silence_of(trust, pool, now) >= limit;
}

/* Whether those that are to be dead now have company enough to doubt ourselves. */
static bool most_are_silent(const struct trust *trust, struct trust_pool *const *pools, size_t n,
                            uint64_t now)
{
    size_t voters = 0, silent = 0;
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (!pools[i]->watched || pools[i]->dead || never_came_back(trust, pools[i]))
            continue;
        voters++;
        silent += is_silent(trust, pools[i], now, TRUST_SUSPECT_NS);
        any |= is_silent(trust, pools[i], now, TRUST_DEAD_NS);
    }
    return any && 2 * silent > voters;
}

static bool any_heard_since(struct trust_pool *const *pools, size_t n, uint64_t since)
{
    for (size_t i = 0; i < n; i++)
        if (pools[i]->watched && pools[i]->answered_ns > since)
            return true;
    return false;
}

void trust_judge(struct trust *trust, struct trust_pool *const *pools, size_t n, uint64_t now)
{
    for (size_t i = 0; i < n; i++)
        pools[i]->dead = pools[i]->dead && pools[i]->watched && pools[i]->answered_ns <= pools[i]->dead_ns;
    if (trust->doubted_ns != 0) {
        if (!any_heard_since(pools, n, trust->doubted_ns))
            return;
        const uint64_t cut =
            now - trust->doubted_ns; /* without the 400 ms before, which every pool has anyway */
        trust->from_ns = now + (cut < TRUST_BACK_NS ? cut : TRUST_BACK_NS);
        trust->heard_ns = trust->doubted_ns;
        trust->doubted_ns = 0;
        return;
    }
    if (most_are_silent(trust, pools, n, now)) {
        trust->doubted_ns = now;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (is_silent(trust, pools[i], now, TRUST_DEAD_NS)) {
            pools[i]->dead = true;
            pools[i]->dead_ns = now;
        }
}
