/* SPDX-License-Identifier: MIT */
/* See sharing.h.
 *
 * Keys and answers are in the order of ids, so the largest of all answers is found by walking them side by
 * side. A pool has a place here while it is one of the first that are up; when another one takes the place,
 * an answer that is still under way may be taken for its own. It is a sum of the same things, 250 ms older.
 */

#include "gateway/sharing/sharing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"

#define ANSWER_MS 2000 /* most that an answer is waited for, and that it counts */
#define ANSWER_NS (ANSWER_MS * CLOCK_NS_PER_MS)
#define LEAST     0.01 /* less than that was not used */
/* Between two times that the room is shared out. Others tell what they have taken since within SHARING_BUSY,
 * and it is heard within as much after that. */
#define SHARE_NS (250 * CLOCK_NS_PER_MS)
/* After its last request a key is told for so long as one that may want room. */
#define WANTS_NS (10 * CLOCK_NS_PER_S)

static int compare_keys(const void *a, const void *b)
{
    const struct key *const *x = a, *const *y = b;
    return memcmp((*x)->id, (*y)->id, sizeof(*x)->id);
}

int sharing_init(struct sharing *sharing, struct keys *keys, bool is_fleet)
{
    *sharing = (struct sharing){0};
    if (is_fleet && keys_count_use(keys) < 0)
        return -ENOMEM;
    sharing->keys = calloc(keys->n + 1, sizeof(struct key *));
    sharing->told = calloc(keys->n + 1, sizeof *sharing->told);
    if (!sharing->keys || !sharing->told) {
        sharing_deinit(sharing);
        return -ENOMEM;
    }
    for (size_t i = 0; i < keys->n; i++)
        if (keys->list[i].most_requests > 0 || keys->list[i].most_tokens > 0 || keys->list[i].use)
            sharing->keys[sharing->n++] = &keys->list[i];
    qsort(sharing->keys, sharing->n, sizeof(struct key *), compare_keys);
    return 0;
}

void sharing_deinit(struct sharing *sharing)
{
    for (size_t i = 0; i < SHARING_POOLS; i++)
        free(sharing->pools[i].heard);
    free(sharing->keys);
    free(sharing->told);
    *sharing = (struct sharing){0};
}

/* ---- what is heard ---- */

static void take_larger(struct quern_tenant *most, const struct quern_tenant *heard)
{
    if (heard->requests > most->requests)
        most->requests = heard->requests;
    if (heard->tokens > most->tokens)
        most->tokens = heard->tokens;
    if (heard->gateways > most->gateways)
        most->gateways = heard->gateways;
    for (int i = 0; i < QUERN_RATES; i++)
        if (heard->used[i] > most->used[i])
            most->used[i] = heard->used[i];
}

/* Finds the key in an answer that is walked from *at on. */
static const struct quern_tenant *find(const struct sharing_pool *pool, const struct key *key, size_t *at)
{
    while (*at < pool->n_heard && memcmp(pool->heard[*at].id, key->id, sizeof key->id) < 0)
        ++*at;
    const bool found = *at < pool->n_heard && memcmp(pool->heard[*at].id, key->id, sizeof key->id) == 0;
    return found ? &pool->heard[*at] : NULL;
}

/* The first key of a name has what was used of its limits. */
static void set_elsewhere(struct key *key, const struct quern_tenant *most, bool any, uint64_t now)
{
    key->elsewhere.requests = most->requests;
    key->elsewhere.tokens = most->tokens;
    key->elsewhere.gateways = most->gateways;
    if (any && key->use && !key->is_another)
        use_hear(key->use, most->used, now);
}

static void take_all(struct sharing *sharing, uint64_t now)
{
    size_t at[SHARING_POOLS] = {0};
    const bool shares = now - sharing->shared_ns >= SHARE_NS;
    bool any = false;
    sharing->shared_ns = shares ? now : sharing->shared_ns;
    for (size_t i = 0; i < SHARING_POOLS; i++)
        any |= sharing->pools[i].heard_ns != 0;
    for (size_t i = 0; i < sharing->n; i++) {
        struct quern_tenant most = {.requests = 0};
        for (size_t j = 0; j < SHARING_POOLS; j++) {
            const struct sharing_pool *pool = &sharing->pools[j];
            const struct quern_tenant *heard =
                pool->heard_ns != 0 ? find(pool, sharing->keys[i], &at[j]) : NULL;
            if (heard)
                take_larger(&most, heard);
        }
        set_elsewhere(sharing->keys[i], &most, any, now);
        if (shares)
            key_share_room(sharing->keys[i]);
    }
}

/* False when out of memory. */
static bool keep(struct sharing_pool *pool, const struct quern_tenants *tenants)
{
    if (tenants->n > pool->room) {
        struct quern_tenant *heard = reallocarray(pool->heard, tenants->n, sizeof *heard);
        if (!heard)
            return false;
        pool->heard = heard;
        pool->room = tenants->n;
    }
    if (tenants->n > 0)
        memcpy(pool->heard, tenants->items, tenants->n * sizeof *pool->heard);
    pool->n_heard = tenants->n;
    return true;
}

static void say_refused(struct sharing_pool *pool, const char *reason)
{
    if (!pool->refused)
        log_warn("%s does not share limits of keys between gateways: %s",
                 pool->name ? pool->name : "the pool", reason);
    pool->refused = true;
}

static void on_tenants(void *arg, const struct quern_answer *answer)
{
    struct sharing_pool *pool = arg;
    const uint64_t now = clock_ns();
    pool->asked = false;
    if (answer->code == -EREMOTEIO)
        say_refused(pool, answer->text);
    if (answer->code != 0 || !keep(pool, answer->tenants))
        return;
    pool->refused = false;
    pool->heard_ns = now;
    take_all(pool->sharing, now);
}

/* ---- what is told ---- */

static bool is_told(const struct key *key, const struct quern_tenant *tenant, uint64_t now)
{
    bool any = tenant->requests > 0 || (key->asked_ns != 0 && now - key->asked_ns < WANTS_NS);
    for (int i = 0; i < QUERN_RATES; i++)
        any |= tenant->used[i] >= LEAST;
    return any;
}

/* What keys have now, of those that have anything. Returns their number. */
static size_t gather(struct sharing *sharing, uint64_t now)
{
    size_t n = 0;
    for (size_t i = 0; i < sharing->n; i++) {
        const struct key *key = sharing->keys[i];
        struct quern_tenant *tenant = &sharing->told[n];
        *tenant = (struct quern_tenant){.requests = key->requests, .tokens = key->tokens};
        memcpy(tenant->id, key->id, sizeof tenant->id);
        if (key->use && !key->is_another)
            use_own(key->use, now, tenant->used);
        n += is_told(key, tenant, now);
    }
    return n;
}

/* A place whose pool is not among the first any more, or has been silent, is not heard. */
static void forget(struct sharing_pool *pool)
{
    pool->heard_ns = 0;
    pool->n_heard = 0;
}

static void take_place(struct sharing *sharing, struct sharing_pool *place, const struct fleet_pool *pool)
{
    if (place->is_told && place->number == pool->number)
        return;
    forget(place);
    place->sharing = sharing;
    place->refused &= place->number == pool->number; /* of one that is back it was said */
    place->is_told = true;
    place->number = pool->number;
    place->name = pool->pool.name;
    place->asked = false;
    place->asked_ns = 0;
}

static int ask_ms(const struct sharing *sharing)
{
    return sharing->busy ? SHARING_BUSY : SHARING_MS;
}

static bool is_due(const struct sharing *sharing, const struct sharing_pool *pool, uint64_t now)
{
    const uint64_t ms = pool->asked ? ANSWER_MS : (uint64_t)ask_ms(sharing);
    return now - pool->asked_ns >= ms * CLOCK_NS_PER_MS;
}

static bool is_busy(const struct sharing *sharing)
{
    bool busy = false;
    for (size_t i = 0; i < sharing->n && !busy; i++)
        busy = sharing->keys[i]->requests > 0 || sharing->keys[i]->elsewhere.gateways > 0;
    return busy;
}

void sharing_turn(struct sharing *sharing, const struct fleet *fleet, uint64_t now)
{
    size_t n_told = 0, n = SIZE_MAX;
    sharing->busy = is_busy(sharing);
    for (size_t i = 0; i < fleet->n_pools && n_told < SHARING_POOLS && sharing->n > 0; i++) {
        const struct fleet_pool *pool = fleet->pools[i];
        struct sharing_pool *place = &sharing->pools[n_told];
        if (!fleet_pool_is_up(pool) || !quern_knows_tenants(pool->pool.client))
            continue;
        n_told++;
        take_place(sharing, place, pool);
        if (!is_due(sharing, place, now))
            continue;
        n = n == SIZE_MAX ? gather(sharing, now) : n;
        place->asked_ns = now;
        place->asked =
            quern_ask_tenants(pool->pool.client, sharing->told, n, ANSWER_MS, on_tenants, place, NULL) == 0;
    }
    bool any_silent = false;
    for (size_t i = 0; i < SHARING_POOLS; i++) {
        struct sharing_pool *place = &sharing->pools[i];
        place->is_told &= i < n_told;
        if (place->heard_ns == 0 || (place->is_told && now - place->heard_ns <= ANSWER_NS))
            continue;
        forget(place);
        any_silent = true;
    }
    if (any_silent)
        take_all(sharing, now);
}

int sharing_wait_ms(const struct sharing *sharing, int timeout_ms)
{
    const int most = ask_ms(sharing);
    return sharing->n == 0 || (timeout_ms >= 0 && timeout_ms < most) ? timeout_ms : most;
}
