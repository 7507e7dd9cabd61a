/* SPDX-License-Identifier: MIT */
#ifndef BROKER_WIRE_SUBSCRIBER_H
#define BROKER_WIRE_SUBSCRIBER_H

/* Counts the bytes that connections to the stream send to subscribe. Each has a share of its own, for one
 * subscription. What it sends beyond comes out of a stock of all connections and, where clients have keys,
 * out of one for each key. A stock bounds the bytes held and how fast they grow. The caller holds the lock.
 *
 * A connection's first subscription tells its key. Until then it may send twice its share, so nobody can use
 * up another's stock by staying anonymous. If it has sent that, its key is known once the loop has looked, so
 * the reading thread waits a little. It reads nobody else meanwhile, and anybody can make it wait, so it
 * waits at most a tenth of the time, for all such connections at once. The others are closed, and connect
 * again. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

struct stock_bounds {
    size_t most;       /* held */
    size_t burst;      /* at once, and then */
    uint64_t a_second; /* so many */
};

struct stock { /* zeroed: nothing was taken out of it */
    size_t held;
    size_t spare;      /* of the rate */
    uint64_t spare_ns; /* when that was; clock_ns */
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

struct subscribers { /* zeroed but for the bounds: nobody */
    const struct subscriber_bounds *bounds;
    struct stock all;
    struct key_stock *by_key;
    uint64_t wait_ns; /* when some were last waited for, from the beginning on; 0: never */
};

struct subscriber { /* a connection */
    size_t share, received;
    uint32_t subscriptions;  /* that it has, as the loop took them; counted with a key */
    bool unknown;            /* it has a key, which was not told yet */
    struct key_stock *stock; /* of its key; NULL: unknown, or it has none */
};

/* Why nothing more may come: the bound of all or of the connection, that of its key, or that its key is to be
 * known first. */
enum subscriber_bound { SUBSCRIBER_OF_ALL, SUBSCRIBER_OF_KEY, SUBSCRIBER_UNKNOWN };

/* For so long connections of SUBSCRIBER_UNKNOWN are waited for, and that again once in so long. */
#define SUBSCRIBER_WAIT_MS       50
#define SUBSCRIBER_WAIT_EVERY_MS 500

/* A connection that was made, and one that has ended, with all of its subscriptions. */
void subscriber_enter(struct subscriber *subscriber, size_t share, bool has_key);
void subscriber_leave(struct subscribers *all, struct subscriber *subscriber);

/* How many bytes may be read from it now; *ret_bound where that is 0. */
size_t subscriber_may_send(struct subscribers *all, struct subscriber *subscriber, uint64_t now,
                           enum subscriber_bound *ret_bound);

/* Whether one of SUBSCRIBER_UNKNOWN is waited for now, which it may begin; else it is to be closed. */
bool subscriber_is_awaited(struct subscribers *all, uint64_t now);

/* So many came, and so many of those, or of what came before, count for nothing. */
void subscriber_sent(struct subscribers *all, struct subscriber *subscriber, size_t bytes, size_t free_bytes);

/* It is of this key, for which it counts from now on; what is said of it later changes nothing. 0; -ENOMEM;
 * it is to be closed, and counts no longer for what it has beyond, as what it sent beyond its share is more
 * than its key may have now (-EDQUOT), or than there is for all (-ENOSPC). */
int subscriber_own(struct subscribers *all, struct subscriber *subscriber, uint32_t key, uint64_t now);

/* It subscribed, or ended a subscription. */
void subscriber_count(struct subscriber *subscriber, bool subscribes);

/* The subscriptions of all connections of this key. */
uint32_t subscribers_of(const struct subscribers *all, uint32_t key);

/* Forgets keys without a connection once their rate allowance is full again, so that reconnecting gains
 * nothing. Called periodically. */
void subscribers_sweep(struct subscribers *all, uint64_t now);

#endif
