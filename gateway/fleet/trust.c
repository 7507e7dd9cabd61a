/* SPDX-License-Identifier: MIT */
/* See trust.h.
 *
 * At a cut all pools have answered last within the 100 ms before it. When the first of them has been silent
 * for 400 ms the others have been for 300, so those that are silent for 250 ms count with it. */

#include "gateway/fleet/trust.h"

bool trust_turn(struct trust *trust, uint64_t now)
{
    const bool late = trust->turn_ns != 0 && now - trust->turn_ns > TRUST_LATE_NS;
    if (late || trust->turn_ns == 0)
        trust->from_ns = now;
    trust->turn_ns = now;
    return late;
}

static uint64_t silence_of(const struct trust *trust, const struct trust_pool *pool, uint64_t now)
{
    const uint64_t from = pool->answered_ns > trust->from_ns ? pool->answered_ns : trust->from_ns;
    return now > from ? now - from : 0;
}

/* Whether one that is to be dead now has company enough to doubt ourselves. */
static bool most_are_silent(const struct trust *trust, struct trust_pool *const *pools, size_t n,
                            uint64_t now)
{
    size_t voters = 0, silent = 0;
    for (size_t i = 0; i < n; i++) {
        if (!pools[i]->watched || pools[i]->dead)
            continue;
        voters++;
        silent += silence_of(trust, pools[i], now) >= TRUST_SUSPECT_NS;
    }
    return 2 * silent > voters;
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
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        const bool silent = pools[i]->watched && silence_of(trust, pools[i], now) >= TRUST_DEAD_NS;
        pools[i]->dead = pools[i]->dead && silent;
        any |= silent && !pools[i]->dead;
    }
    const bool cleared = trust->doubted_ns != 0 && any_heard_since(pools, n, trust->doubted_ns);
    if (cleared)
        trust->doubted_ns = 0;
    if (!any || trust->doubted_ns != 0)
        return;
    if (!cleared && most_are_silent(trust, pools, n, now)) {
        trust->doubted_ns = now;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (pools[i]->watched && silence_of(trust, pools[i], now) >= TRUST_DEAD_NS)
            pools[i]->dead = true;
}
