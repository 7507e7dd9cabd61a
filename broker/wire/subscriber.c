/* SPDX-License-Identifier: MIT */
/* See subscriber.h.
 *
 *     unknown ──its first subscription was taken──▶ of a key ──it ends──▶ gone
 *
 * A rate is a bucket, full at first, that fills as time goes by. What came while the key was unknown is taken
 * out of it too. Where that is more than there is, the connection is to be closed, having taken what there
 * was: a bucket never owes, and connections that come and go have no more than one that stays. */

#include "broker/wire/subscriber.h"

#include <errno.h>
#include <stdlib.h>

#include "common/clock.h"

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* ---- stocks ---- */

static void fill(struct stock *stock, const struct stock_bounds *bounds, uint64_t now)
{
    if (stock->spare_ns > 0 && now <= stock->spare_ns) /* the loop's time is that of its turn */
        return;
    uint64_t elapsed_ms = (now - stock->spare_ns) / CLOCK_NS_PER_MS;
    uint64_t more = elapsed_ms * bounds->a_second / 1000;
    if (stock->spare_ns > 0 && more == 0)
        return;
    stock->spare = stock->spare_ns == 0 ? bounds->burst : smaller(bounds->burst, stock->spare + more);
    stock->spare_ns = now;
}

/* How many bytes may come now. */
static size_t room(struct stock *stock, const struct stock_bounds *bounds, uint64_t now)
{
    fill(stock, bounds, now);
    return stock->held < bounds->most ? smaller(stock->spare, bounds->most - stock->held) : 0;
}

/* What one connection holds of it was `before` bytes. */
static void change(struct stock *stock, const struct stock_bounds *bounds, size_t before, size_t after)
{
    stock->held += after - before;
    if (after > before)
        stock->spare -= smaller(stock->spare, after - before);
    else
        stock->spare = smaller(bounds->burst, stock->spare + before - after);
}

/* ---- connections ---- */

/* What it holds of the stocks. */
static size_t beyond_share(const struct subscriber *subscriber)
{
    if (subscriber->unknown || subscriber->received <= subscriber->share)
        return 0;
    return subscriber->received - subscriber->share;
}

void subscriber_enter(struct subscriber *subscriber, size_t share, bool has_key)
{
    *subscriber = (struct subscriber){.share = share, .unknown = has_key};
}

void subscriber_leave(struct subscribers *all, struct subscriber *subscriber)
{
    struct key_stock *stock = subscriber->stock;
    all->all.held -= beyond_share(subscriber);
    if (stock) {
        stock->connections--;
        stock->subscriptions -= subscriber->subscriptions;
        stock->stock.held -= beyond_share(subscriber);
    }
    *subscriber = (struct subscriber){0};
}

static size_t may_send_unknown(const struct subscriber *subscriber)
{
    size_t most = 2 * subscriber->share;
    return subscriber->received < most ? most - subscriber->received : 0;
}

bool subscriber_is_awaited(struct subscribers *all, uint64_t now)
{
    if (all->wait_ns == 0 || now >= all->wait_ns + SUBSCRIBER_WAIT_EVERY_MS * CLOCK_NS_PER_MS)
        all->wait_ns = now;
    return now < all->wait_ns + SUBSCRIBER_WAIT_MS * CLOCK_NS_PER_MS;
}

size_t subscriber_may_send(struct subscribers *all, struct subscriber *subscriber, uint64_t now,
                           enum subscriber_bound *ret_bound)
{
    *ret_bound = SUBSCRIBER_UNKNOWN;
    if (subscriber->unknown)
        return may_send_unknown(subscriber);
    if (subscriber->received < subscriber->share)
        return subscriber->share - subscriber->received;
    size_t own = all->bounds->most - subscriber->received;
    size_t of_all = smaller(own, room(&all->all, &all->bounds->all, now));
    size_t of_key =
        subscriber->stock ? room(&subscriber->stock->stock, &all->bounds->key, now) : all->bounds->most;
    *ret_bound = of_all > 0 ? SUBSCRIBER_OF_KEY : SUBSCRIBER_OF_ALL;
    return smaller(of_all, of_key);
}

void subscriber_sent(struct subscribers *all, struct subscriber *subscriber, size_t bytes, size_t free_bytes)
{
    size_t before = beyond_share(subscriber);
    subscriber->received += bytes - free_bytes;
    change(&all->all, &all->bounds->all, before, beyond_share(subscriber));
    if (subscriber->stock)
        change(&subscriber->stock->stock, &all->bounds->key, before, beyond_share(subscriber));
}

void subscriber_count(struct subscriber *subscriber, bool subscribes)
{
    if (!subscriber->stock || (!subscribes && subscriber->subscriptions == 0))
        return;
    uint32_t change = subscribes ? 1 : UINT32_MAX;
    subscriber->subscriptions += change;
    subscriber->stock->subscriptions += change;
}

/* ---- keys ---- */

static struct key_stock *find(const struct subscribers *all, uint32_t key)
{
    struct key_stock *stock;
    HASH_FIND(hh, all->by_key, &key, sizeof key, stock);
    return stock;
}

static struct key_stock *find_or_make(struct subscribers *all, uint32_t key)
{
    struct key_stock *stock = find(all, key);
    if (stock || !(stock = calloc(1, sizeof *stock)))
        return stock;
    stock->key = key;
    HASH_ADD(hh, all->by_key, key, sizeof stock->key, stock);
    return stock;
}

int subscriber_own(struct subscribers *all, struct subscriber *subscriber, uint32_t key, uint64_t now)
{
    if (!subscriber->unknown)
        return 0;
    struct key_stock *stock = find_or_make(all, key);
    if (!stock)
        return -ENOMEM;
    subscriber->unknown = false;
    subscriber->stock = stock;
    stock->connections++;
    size_t beyond = beyond_share(subscriber);
    size_t of_key = smaller(beyond, room(&stock->stock, &all->bounds->key, now));
    size_t has = smaller(of_key, room(&all->all, &all->bounds->all, now));
    change(&all->all, &all->bounds->all, 0, has);
    change(&stock->stock, &all->bounds->key, 0, has);
    subscriber->received -= beyond - has;
    return has == beyond ? 0 : of_key < beyond ? -EDQUOT : -ENOSPC;
}

uint32_t subscribers_of(const struct subscribers *all, uint32_t key)
{
    const struct key_stock *stock = find(all, key);
    return stock ? stock->subscriptions : 0;
}

void subscribers_sweep(struct subscribers *all, uint64_t now)
{
    struct key_stock *stock, *next;
    HASH_ITER(hh, all->by_key, stock, next)
    {
        if (stock->connections > 0 || room(&stock->stock, &all->bounds->key, now) < all->bounds->key.burst)
            continue;
        HASH_DELETE(hh, all->by_key, stock);
        free(stock);
    }
}
