/* SPDX-License-Identifier: MIT */
/* See tellings.h.
 *
 * A list with an entry for each session that tells anything. Gateways are few, so the list is walked. All
 * lists of tenants are in the order of their ids, so a sum is a merge. Silent sessions are dropped when
 * another one tells something. */

#include "broker/books/tellings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "common/clock.h"

struct telling {
    struct id128 session, client;
    uint64_t told_ns;
    struct telling *prev, *next;
    size_t n;
    struct tenant_use items[];
};

static int compare(const struct id128 *a, const struct id128 *b)
{
    return memcmp(a, b, sizeof *a);
}

static bool is_silent(const struct telling *telling, uint64_t now)
{
    return now > telling->told_ns && now - telling->told_ns > TELLINGS_SILENT_MS * CLOCK_NS_PER_MS;
}

static void drop(struct tellings *tellings, struct telling *telling)
{
    DL_DELETE(tellings->list, telling);
    free(telling);
}

void tellings_forget(struct tellings *tellings, const struct id128 *session)
{
    struct telling *telling, *next;
    DL_FOREACH_SAFE(tellings->list, telling, next)
    {
        if (compare(&telling->session, session) == 0)
            drop(tellings, telling);
    }
}

void tellings_deinit(struct tellings *tellings)
{
    while (tellings->list)
        drop(tellings, tellings->list);
}

static void drop_silent(struct tellings *tellings, uint64_t now)
{
    struct telling *telling, *next;
    DL_FOREACH_SAFE(tellings->list, telling, next)
    {
        if (is_silent(telling, now))
            drop(tellings, telling);
    }
}

static bool has_room(const struct tellings *tellings, const struct id128 *client, size_t n)
{
    size_t sessions = 0, of_client = n, all = n;
    const struct telling *telling;
    DL_FOREACH(tellings->list, telling)
    {
        all += telling->n;
        if (compare(&telling->client, client) != 0)
            continue;
        sessions++;
        of_client += telling->n;
    }
    return sessions < TELLINGS_SESSIONS && of_client <= TELLINGS_OF_CLIENT && all <= TELLINGS_TENANTS;
}

enum proto_error tellings_take(struct tellings *tellings, const struct id128 *session,
                               const struct id128 *client, const struct tenant_uses *uses, uint64_t now,
                               struct error *reason)
{
    tellings_forget(tellings, session);
    drop_silent(tellings, now);
    if (uses->n == 0)
        return PROTO_OK;
    if (!has_room(tellings, client, uses->n))
        return error_set(reason, PROTO_OVERLOADED, "tenants: gateways report too many tenants");
    struct telling *telling = malloc(sizeof *telling + uses->n * sizeof telling->items[0]);
    if (!telling)
        return error_set(reason, PROTO_INTERNAL, "tenants: out of memory");
    telling->session = *session;
    telling->client = *client;
    telling->told_ns = now;
    telling->n = uses->n;
    memcpy(telling->items, uses->items, uses->n * sizeof telling->items[0]);
    for (size_t i = 0; i < uses->n; i++)
        telling->items[i].gateways = 1;
    DL_APPEND(tellings->list, telling);
    return PROTO_OK;
}

/* Sums stay within what a message may tell. */
static uint64_t sum_of(uint64_t a, uint64_t b)
{
    const uint64_t most = 1ull << 53;
    return a + b < most ? a + b : most;
}

static double real_sum_of(double a, double b)
{
    return a + b < PROTO_MAX_USED ? a + b : PROTO_MAX_USED;
}

static struct tenant_use both(const struct tenant_use *a, const struct tenant_use *b)
{
    return (struct tenant_use){.id = a->id,
                               .requests = sum_of(a->requests, b->requests),
                               .tokens = sum_of(a->tokens, b->tokens),
                               .rpm = real_sum_of(a->rpm, b->rpm),
                               .tpm = real_sum_of(a->tpm, b->tpm),
                               .rpd = real_sum_of(a->rpd, b->rpd),
                               .tpd = real_sum_of(a->tpd, b->tpd),
                               .gateways = a->gateways + b->gateways};
}

/* Merges two lists into a third one, which has room for all of both. Returns its length. */
static size_t merge(const struct tenant_use *a, size_t n_a, const struct tenant_use *b, size_t n_b,
                    struct tenant_use *into)
{
    size_t n = 0, i = 0, j = 0;
    while (i < n_a && j < n_b) {
        const int order = compare(&a[i].id, &b[j].id);
        if (order == 0)
            into[n++] = both(&a[i++], &b[j++]);
        else
            into[n++] = order < 0 ? a[i++] : b[j++];
    }
    while (i < n_a)
        into[n++] = a[i++];
    while (j < n_b)
        into[n++] = b[j++];
    return n;
}

int tellings_sum(const struct tellings *tellings, const struct id128 *session, const struct id128 *client,
                 uint64_t now, struct tenant_use **ret_items, size_t *ret_n)
{
    struct tenant_use *sum = NULL;
    size_t n = 0;
    const struct telling *telling;
    DL_FOREACH(tellings->list, telling)
    {
        if (compare(&telling->client, client) != 0 || compare(&telling->session, session) == 0 ||
            is_silent(telling, now))
            continue;
        struct tenant_use *merged = calloc(n + telling->n, sizeof *merged);
        if (!merged) {
            free(sum);
            return -ENOMEM;
        }
        n = merge(sum, n, telling->items, telling->n, merged);
        free(sum);
        sum = merged;
    }
    *ret_n = n < PROTO_MAX_TENANTS ? n : PROTO_MAX_TENANTS;
    *ret_items = sum;
    return 0;
}
