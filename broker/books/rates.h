/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RATES_H
#define BROKER_BOOKS_RATES_H

/* Counts the requests and tokens of each tenant that has limits (struct rates).
 *
 * Each limit is a token bucket that holds a minute's or a day's worth, starts full and fills evenly. A
 * request takes one from the request buckets. From the token buckets it takes an estimate of its prompt at
 * admission, corrected when it ends, and each generated token. So running requests may overdraw them; the
 * next request waits until they are filled again.
 *
 * The counts are in the vault, so the next broker continues them. If the vault has no room, they are on the
 * heap and end with the process. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/books/vault.h"
#include "common/error.h"
#include "proto/message.h"

#define RATES_MOST           16384 /* tenants with limits */
#define RATES_MOST_OF_CLIENT 4096  /* of those, tenants of one client with a key */

struct rate_counts; /* of one tenant, in the vault */
struct rate_page;

struct rate_key {
    struct id128 client; /* the key of its client; zeros: a client in the run directory */
    struct id128 tenant; /* a hash of its name */
};

struct rate {
    struct rate_key key;
    struct rate_counts *counts;
    uint32_t uses; /* requests that have not ended */
    UT_hash_handle hh;
};

struct rate_book {       /* zeroed except for the seed: empty */
    uint64_t seed;       /* of the hash */
    struct vault *vault; /* NULL: counts are on the heap */
    struct rate *by_key;
    struct rate_page **pages; /* [n_pages] */
    size_t n_pages;
};

/* The key under which the tenant with this name (not empty) is counted. `client`: the key of its client;
 * NULL: it has none. */
struct rate_key rate_key_of(struct bytes tenant, const struct id128 *client);

/* Restores an earlier broker's counts: 1 if the block of the vault holds some, else 0; -ENOMEM. */
int rates_restore(struct rate_book *book, void *block, size_t size, uint64_t now);

/* Frees the book; counts in the vault stay. */
void rates_deinit(struct rate_book *book);

/* Which limits apply to a request. */
enum rate_scope {
    RATE_WHOLE, /* all of them */
    RATE_INPUT, /* it belongs to a request that was counted: only token limits */
    RATE_PART,  /* the same, and it may overdraw them: parts of an answer that has begun */
};

/* Whether the tenant may have another request now: PROTO_OK, or PROTO_OVERLOADED with the limit reached and
 * the retry time. Sets *ret_quotas, what remains, in both cases. */
enum proto_error rates_check(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                             enum rate_scope scope, uint64_t now, struct quotas *ret_quotas,
                             uint32_t *ret_retry_ms, struct error *reason);

/* A request of about `tokens` tokens is admitted: counts it, unless it is a part. NULL: out of memory. Call
 * rate_leave when the request has ended. */
struct rate *rates_enter(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                         bool part, uint64_t tokens, uint64_t now);

/* The same for a request that an earlier broker counted. NULL: its counts are gone. */
struct rate *rates_enter_again(struct rate_book *book, const struct rate_key *key);
void rate_leave(struct rate *rate);

/* Takes tokens, or gives them back if negative. A NULL rate has no limits. */
void rate_charge(struct rate *rate, int64_t tokens, uint64_t now);

/* What remains of the limits. */
struct quotas rate_quotas(struct rate *rate, uint64_t now);

#endif
