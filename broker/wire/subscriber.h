/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_SUBSCRIBER_H
#define BROKER_WIRE_SUBSCRIBER_H

/* Counts the bytes of subscriptions that connections to the stream send. Each connection has a share for one
 * subscription. Anything beyond comes out of a stock common to all connections and, if clients have keys,
 * also out of a stock for each key. A stock bounds the bytes held and how fast they grow. The caller holds
 * the lock.
 *
 * A connection's first subscription shows its key. Until then it may send twice its share, so nobody can use
 * up another client's stock by staying anonymous. Once it has sent that much, its key becomes known when the
 * loop reads its messages, so the reading thread waits a little. While it waits it reads no other connection,
 * and any client can make it wait; so it waits at most a tenth of the time, for all such connections at once.
 * Connections for which it does not wait are closed, and connect again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

struct stock_bounds {
    size_t most;       /* held */
    size_t burst;      /* at once; then */
    uint64_t a_second; /* bytes per second */
};

struct stock { /* zeroed: full */
    size_t held;
    size_t spare;      /* left of the rate */
    uint64_t spare_ns; /* clock_ns when that was computed */
};

struct key_stock {
    uint32_t key;
    uint32_t connections, subscriptions;
    struct stock stock;
    UT_hash_handle hh;
};

struct subscriber_bounds {
    size_t most; /* of a connection, share included */
    struct stock_bounds all, key;
};

struct subscribers { /* zeroed except for the bounds: none */
    const struct subscriber_bounds *bounds;
    struct stock all;
    struct key_stock *by_key;
    uint64_t wait_ns; /* when the last wait began; 0: never */
};

struct subscriber { /* a connection */
    size_t share, received;
    uint32_t subscriptions;  /* taken by the loop; counted if it has a key */
    bool unknown;            /* it has a key, which is not known yet */
    struct key_stock *stock; /* of its key; NULL: unknown, or it has none */
};

/* Why a connection may send no more: the bound for all or for the connection, the bound for its key, or its
 * key must become known first. */
enum subscriber_bound { SUBSCRIBER_OF_ALL, SUBSCRIBER_OF_KEY, SUBSCRIBER_UNKNOWN };

/* How long to wait for connections of SUBSCRIBER_UNKNOWN, and how often. */
#define SUBSCRIBER_WAIT_MS       50
#define SUBSCRIBER_WAIT_EVERY_MS 500

/* A connection was accepted; a connection has ended, with all of its subscriptions. */
void subscriber_enter(struct subscriber *subscriber, size_t share, bool has_key);
void subscriber_leave(struct subscribers *all, struct subscriber *subscriber);

/* How many bytes may be read from it now; if 0, *ret_bound says why. */
size_t subscriber_may_send(struct subscribers *all, struct subscriber *subscriber, uint64_t now,
                           enum subscriber_bound *ret_bound);

/* Whether to wait for a connection of SUBSCRIBER_UNKNOWN now, which may start a wait; if not, close it. */
bool subscriber_is_awaited(struct subscribers *all, uint64_t now);

/* It sent `bytes`; `free_bytes` of these or earlier ones are not counted. */
void subscriber_sent(struct subscribers *all, struct subscriber *subscriber, size_t bytes, size_t free_bytes);

/* The connection belongs to this key and counts for it from now on; later calls change nothing. 0; -ENOMEM;
 * -EDQUOT or -ENOSPC if its bytes beyond its share exceed what its key or all connections may have now: it
 * must be closed, and those bytes no longer count. */
int subscriber_own(struct subscribers *all, struct subscriber *subscriber, uint32_t key, uint64_t now);

/* The connection subscribed, or ended a subscription. */
void subscriber_count(struct subscriber *subscriber, bool subscribes);

/* The number of subscriptions of all connections of this key. */
uint32_t subscribers_of(const struct subscribers *all, uint32_t key);

/* Forgets keys without a connection once their stock is full again, so that reconnecting gains nothing. Call
 * it periodically. */
void subscribers_sweep(struct subscribers *all, uint64_t now);

#endif
