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

/* Whether any silence is worth a verdict; those that were dead and answer are not any more. */
static bool look(const struct trust *trust, struct trust_pool *const *pools, size_t n, uint64_t now,
                 bool *ret_suspect)
{
    bool any = false;
    *ret_suspect = false;
    for (size_t i = 0; i < n; i++) {
        struct trust_pool *pool = pools[i];
        pool->dead = pool->dead && pool->watched && pool->answered_ns <= pool->dead_ns;
        if (!pool->watched || pool->dead)
            continue;
        any |= silence_of(trust, pool, now) >= TRUST_DEAD_NS;
        *ret_suspect |= silence_of(trust, pool, now) >= TRUST_SUSPECT_NS;
    }
    return any;
}

void trust_judge(struct trust *trust, struct trust_pool *const *pools, size_t n, uint64_t now)
{
    bool suspect;
    const bool any = look(trust, pools, n, now, &suspect);
    if (trust->doubted_ns != 0) {
        if (!any_heard_since(pools, n, trust->doubted_ns))
            return;
        trust->doubted_ns = 0;
        trust->from_ns = now;
        trust->believes = true;
        return;
    }
    trust->believes = trust->believes && (suspect || now - trust->from_ns < TRUST_DEAD_NS);
    if (!any)
        return;
    if (!trust->believes && most_are_silent(trust, pools, n, now)) {
        trust->doubted_ns = now;
        return;
    }
    for (size_t i = 0; i < n; i++)
        if (pools[i]->watched && !pools[i]->dead && silence_of(trust, pools[i], now) >= TRUST_DEAD_NS) {
            pools[i]->dead = true;
            pools[i]->dead_ns = now;
        }
}
