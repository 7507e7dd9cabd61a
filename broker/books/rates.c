/* SPDX-License-Identifier: MIT */
/* Counts stand in pages, blocks of the vault, and an index over them is this process's own.
 *
 *   free ──rates_enter──▶ counted ──all buckets are full, and the place is needed──▶ free
 *
 * A tenant whose buckets are full is as good as one that never asked. A place is written as a whole and then
 * marked by its limits; a process that is killed in between leaves it free. Levels are changed one at a time:
 * who is killed between two of them has charged one request in part.
 *
 * What an earlier process left may be damaged: a level that cannot be is a full bucket. */

#include "broker/books/rates.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/hash.h"

#define MAGIC      0x31544152u /* "RAT1" */
#define PAGE_BYTES 4096
#define MINUTE_MS  60000.0
#define DAY_MS     86400000.0

enum bucket { REQUESTS_MINUTE, TOKENS_MINUTE, REQUESTS_DAY, TOKENS_DAY, N_BUCKETS };

static const struct {
    double ms; /* in which it fills */
    bool requests;
    const char *what, *name;
} traits[N_BUCKETS] = {
    [REQUESTS_MINUTE] = {MINUTE_MS, true, "requests a minute", "rpm"},
    [TOKENS_MINUTE] = {MINUTE_MS, false, "tokens a minute", "tpm"},
    [REQUESTS_DAY] = {DAY_MS, true, "requests a day", "rpd"},
    [TOKENS_DAY] = {DAY_MS, false, "tokens a day", "tpd"},
};

struct rate_counts {
    struct rate_key key;
    uint64_t limits[N_BUCKETS]; /* 0: there is none; all 0: the place is free */
    double levels[N_BUCKETS];
    uint64_t filled_ns; /* clock_ns */
};

struct rate_page {
    uint32_t magic, unused;
    struct rate_counts places[(PAGE_BYTES - 8) / sizeof(struct rate_counts)];
};
_Static_assert(sizeof(struct rate_page) <= PAGE_BYTES, "a page is a block");
#define PLACES (sizeof((struct rate_page){0}.places) / sizeof(struct rate_counts))

/* ---- buckets ---- */

static void write_limits(const struct rates *limits, uint64_t ret_limits[N_BUCKETS])
{
    ret_limits[REQUESTS_MINUTE] = limits->rpm;
    ret_limits[TOKENS_MINUTE] = limits->tpm;
    ret_limits[REQUESTS_DAY] = limits->rpd;
    ret_limits[TOKENS_DAY] = limits->tpd;
}

static void fill(struct rate_counts *counts, uint64_t now)
{
    const double ms = now > counts->filled_ns ? (double)(now - counts->filled_ns) / CLOCK_NS_PER_MS : 0;
    for (int i = 0; i < N_BUCKETS; i++) {
        const double most = (double)counts->limits[i];
        const double level = counts->levels[i] + most * ms / traits[i].ms;
        counts->levels[i] = level < most ? level : most;
    }
    counts->filled_ns = now;
}

/* Limits that changed: what was used stays used. Without a limit nothing is, or the place could never be
 * free. */
static void adjust(struct rate_counts *counts, const struct rates *limits)
{
    uint64_t wanted[N_BUCKETS];
    write_limits(limits, wanted);
    for (int i = 0; i < N_BUCKETS; i++) {
        const double used = (double)counts->limits[i] - counts->levels[i];
        if (counts->limits[i] == wanted[i])
            continue;
        counts->levels[i] = wanted[i] > 0 ? (double)wanted[i] - (counts->limits[i] > 0 ? used : 0) : 0;
        counts->limits[i] = wanted[i];
    }
}

static bool is_free(const struct rate_counts *counts)
{
    for (int i = 0; i < N_BUCKETS; i++)
        if (counts->limits[i] > 0)
            return false;
    return true;
}

static bool is_full(const struct rate_counts *counts)
{
    for (int i = 0; i < N_BUCKETS; i++)
        if (counts->levels[i] < (double)counts->limits[i])
            return false;
    return true;
}

/* Milliseconds until a level is reached. */
static uint64_t wait_ms(const struct rate_counts *counts, int i, double level)
{
    const double missing = level - counts->levels[i];
    if (missing <= 0)
        return 0;
    const double ms = missing * traits[i].ms / (double)counts->limits[i] + 1;
    return ms < (double)UINT32_MAX ? (uint64_t)ms : UINT32_MAX;
}

static struct quota quota_of(const struct rate_counts *counts, int i)
{
    const double level = counts->levels[i];
    return (struct quota){.limit = counts->limits[i],
                          .remaining = level > 0 ? (uint64_t)level : 0,
                          .reset_ms = wait_ms(counts, i, (double)counts->limits[i])};
}

/* Of a minute's and a day's the one that has less left. */
static struct quota less_of(const struct rate_counts *counts, int a, int b)
{
    const struct quota x = quota_of(counts, a), y = quota_of(counts, b);
    if (x.limit == 0 || y.limit == 0)
        return x.limit > 0 ? x : y;
    return x.remaining <= y.remaining ? x : y;
}

static struct quotas quotas_of(const struct rate_counts *counts)
{
    return (struct quotas){.requests = less_of(counts, REQUESTS_MINUTE, REQUESTS_DAY),
                           .tokens = less_of(counts, TOKENS_MINUTE, TOKENS_DAY)};
}

/* ---- places ---- */

static unsigned hash_of(const struct rate_book *book, const struct rate_key *key)
{
    return (unsigned)hash64(key, sizeof *key, book->seed);
}

static struct rate *find(const struct rate_book *book, const struct rate_key *key)
{
    struct rate *rate;
    HASH_FIND_BYHASHVALUE(hh, book->by_key, key, sizeof *key, hash_of(book, key), rate);
    return rate;
}

static struct rate *index_counts(struct rate_book *book, struct rate_counts *counts)
{
    struct rate *rate = calloc(1, sizeof *rate);
    if (!rate)
        return NULL;
    rate->key = counts->key;
    rate->counts = counts;
    HASH_ADD_BYHASHVALUE(hh, book->by_key, key, sizeof rate->key, hash_of(book, &rate->key), rate);
    return rate;
}

static void forget(struct rate_book *book, struct rate *rate)
{
    memset(rate->counts->limits, 0, sizeof rate->counts->limits);
    HASH_DEL(book->by_key, rate);
    free(rate);
}

/* Frees the places of tenants that have all of what they may have. */
static void sweep(struct rate_book *book, uint64_t now)
{
    struct rate *rate, *next;
    HASH_ITER(hh, book->by_key, rate, next)
    {
        fill(rate->counts, now);
        if (rate->uses == 0 && is_full(rate->counts))
            forget(book, rate);
    }
}

static int add_page(struct rate_book *book, struct rate_page *page)
{
    struct rate_page **pages = reallocarray(book->pages, book->n_pages + 1, sizeof *pages);
    if (!pages)
        return -ENOMEM;
    book->pages = pages;
    book->pages[book->n_pages++] = page;
    return 0;
}

static struct rate_counts *free_place(const struct rate_book *book)
{
    for (size_t i = book->n_pages; i-- > 0;)
        for (size_t j = 0; j < PLACES; j++)
            if (is_free(&book->pages[i]->places[j]))
                return &book->pages[i]->places[j];
    return NULL;
}

/* A free place, in a new page if all are taken; NULL when out of memory. */
static struct rate_counts *take_place(struct rate_book *book)
{
    size_t size;
    struct rate_counts *place = free_place(book);
    if (place)
        return place;
    struct rate_page *kept = book->vault ? vault_take(book->vault, PAGE_BYTES, &size) : NULL;
    struct rate_page *page = kept ? kept : malloc(PAGE_BYTES);
    if (!page)
        return NULL;
    memset(page, 0, sizeof *page);
    page->magic = kept ? MAGIC : 0; /* 0: of this process */
    if (add_page(book, page) < 0) {
        if (kept)
            vault_give(book->vault, kept);
        else
            free(page);
        return NULL;
    }
    if (kept)
        vault_keep(book->vault, kept);
    return &page->places[0];
}

static size_t count_of_client(const struct rate_book *book, const struct id128 *client)
{
    size_t n = 0;
    for (const struct rate *rate = book->by_key; rate; rate = rate->hh.next)
        n += memcmp(&rate->key.client, client, sizeof *client) == 0;
    return n;
}

static bool has_room(struct rate_book *book, const struct rate_key *key, uint64_t now)
{
    static const struct id128 nobody;
    const bool keyed = memcmp(&key->client, &nobody, sizeof nobody) != 0;
    if (HASH_COUNT(book->by_key) < RATES_MOST_OF_CLIENT)
        return true;
    if (HASH_COUNT(book->by_key) >= RATES_MOST ||
        (keyed && count_of_client(book, &key->client) >= RATES_MOST_OF_CLIENT))
        sweep(book, now);
    return HASH_COUNT(book->by_key) < RATES_MOST &&
           (!keyed || count_of_client(book, &key->client) < RATES_MOST_OF_CLIENT);
}

/* A tenant's counts as of now, with these limits. NULL: out of memory. */
static struct rate *take(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                         uint64_t now)
{
    struct rate *rate = find(book, key);
    if (rate) {
        fill(rate->counts, now);
        adjust(rate->counts, limits);
        return rate;
    }
    struct rate_counts *place = take_place(book);
    if (!place)
        return NULL;
    place->key = *key;
    place->filled_ns = now;
    rate = index_counts(book, place);
    if (rate)
        adjust(place, limits); /* full ones */
    return rate;
}

/* ---- from outside ---- */

struct rate_key rate_key_of(struct bytes tenant, const struct id128 *client)
{
    struct rate_key key = {0};
    const struct hash128 hash = hash128(tenant.data, tenant.len, 0);
    memcpy(&key.tenant, &hash, sizeof key.tenant);
    if (client)
        key.client = *client;
    return key;
}

enum proto_error rates_check(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                             enum rate_scope scope, uint64_t now, struct quotas *ret_quotas,
                             uint32_t *ret_retry_ms, struct error *reason)
{
    struct rate_counts counts = {.filled_ns = now};
    const struct rate *known = find(book, key);
    if (known)
        counts = *known->counts;
    fill(&counts, now);
    adjust(&counts, limits);
    *ret_quotas = quotas_of(&counts);
    if (!known && !has_room(book, key, now)) {
        *ret_retry_ms = 1000;
        return error_set(reason, PROTO_OVERLOADED, "too many tenants with limits (rpm, tpm, rpd, tpd)");
    }
    int worst = -1;
    for (int i = 0; i < N_BUCKETS && scope != RATE_PART; i++)
        if (counts.limits[i] > 0 && counts.levels[i] < 1 && (scope == RATE_WHOLE || !traits[i].requests) &&
            (worst < 0 || wait_ms(&counts, i, 1) > wait_ms(&counts, worst, 1)))
            worst = i;
    if (worst < 0)
        return PROTO_OK;
    *ret_retry_ms = (uint32_t)wait_ms(&counts, worst, 1);
    return error_set(reason, PROTO_OVERLOADED,
                     "the limit of %" PRIu64 " %s is reached (%s): try again in %u s", counts.limits[worst],
                     traits[worst].what, traits[worst].name, *ret_retry_ms / 1000 + 1);
}

struct rate *rates_enter(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                         bool part, uint64_t tokens, uint64_t now)
{
    struct rate *rate = take(book, key, limits, now);
    if (!rate)
        return NULL;
    rate->uses++;
    for (int i = 0; i < N_BUCKETS; i++)
        if (rate->counts->limits[i] > 0 && traits[i].requests)
            rate->counts->levels[i] -= part ? 0 : 1;
    rate_charge(rate, (int64_t)tokens, now);
    return rate;
}

struct rate *rates_enter_again(struct rate_book *book, const struct rate_key *key)
{
    struct rate *rate = find(book, key);
    if (rate)
        rate->uses++;
    return rate;
}

void rate_leave(struct rate *rate)
{
    if (rate)
        rate->uses--;
}

void rate_charge(struct rate *rate, int64_t tokens, uint64_t now)
{
    if (!rate)
        return;
    fill(rate->counts, now);
    for (int i = 0; i < N_BUCKETS; i++) {
        const double most = (double)rate->counts->limits[i];
        if (rate->counts->limits[i] == 0 || traits[i].requests)
            continue;
        rate->counts->levels[i] -= (double)tokens;
        if (rate->counts->levels[i] > most)
            rate->counts->levels[i] = most;
    }
}

struct quotas rate_quotas(struct rate *rate, uint64_t now)
{
    if (!rate)
        return (struct quotas){0};
    fill(rate->counts, now);
    return quotas_of(rate->counts);
}

/* Written so that NaN is none. */
static void mend(struct rate_counts *counts, uint64_t now)
{
    for (int i = 0; i < N_BUCKETS; i++) {
        if (counts->limits[i] > PROTO_MAX_RATE)
            counts->limits[i] = 0;
        const double most = (double)counts->limits[i];
        if (counts->limits[i] == 0 || !(counts->levels[i] <= most && counts->levels[i] >= -1e18))
            counts->levels[i] = most;
    }
    if (counts->filled_ns > now)
        counts->filled_ns = now;
}

int rates_restore(struct rate_book *book, void *block, size_t size, uint64_t now)
{
    struct rate_page *page = block;
    if (size < sizeof *page || page->magic != MAGIC)
        return 0;
    if (add_page(book, page) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < PLACES; i++) {
        struct rate_counts *counts = &page->places[i];
        mend(counts, now);
        if (is_free(counts))
            continue;
        if (find(book, &counts->key)) /* damaged: each is there once */
            memset(counts->limits, 0, sizeof counts->limits);
        else if (!index_counts(book, counts))
            return -ENOMEM;
    }
    return 1;
}

void rates_deinit(struct rate_book *book)
{
    struct rate *rate, *next;
    HASH_ITER(hh, book->by_key, rate, next)
    {
        HASH_DEL(book->by_key, rate);
        free(rate);
    }
    for (size_t i = 0; i < book->n_pages; i++)
        if (book->pages[i]->magic != MAGIC)
            free(book->pages[i]);
    free(book->pages);
    *book = (struct rate_book){0};
}
