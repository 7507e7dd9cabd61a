/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BOOKS_RATES_H
#define BROKER_BOOKS_RATES_H

/* How many requests and tokens each tenant has had, where its client names limits for it (struct rates).
 *
 * Each limit is a bucket that holds a minute's or a day's worth, is full at first and fills evenly. A request
 * takes one from the buckets of requests, and its tokens from those of tokens: of the prompt an estimate when
 * it is admitted, which its end corrects, and each token that is made. So buckets of tokens may be overdrawn
 * by what runs; the next request waits until they are filled again.
 *
 * The counts are in the vault, so a broker that takes over goes on counting. Where the vault has no room they
 * are in this process, and end with it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "broker/books/vault.h"
#include "common/error.h"
#include "proto/message.h"

#define RATES_MOST           16384 /* tenants with limits */
#define RATES_MOST_OF_CLIENT 4096  /* of them, those of one client with a key */

struct rate_counts; /* of one tenant, in the vault */
struct rate_page;

struct rate_key {
    struct id128 client; /* whose tenant it is: its key; zeros: of those in the run directory */
    struct id128 tenant; /* a hash of its name */
};

struct rate {
    struct rate_key key;
    struct rate_counts *counts;
    uint32_t uses; /* requests that have not ended */
    UT_hash_handle hh;
};

struct rate_book {       /* zeroed but for the seed: empty */
    uint64_t seed;       /* of the hash */
    struct vault *vault; /* NULL: counts are in this process */
    struct rate *by_key;
    struct rate_page **pages; /* [n_pages] */
    size_t n_pages;
};

/* Whose limits are counted for the tenant of this name, which is not empty. `client`: its key; NULL: none. */
struct rate_key rate_key_of(struct bytes tenant, const struct id128 *client);

/* Takes over an earlier broker's counts: 1 if the vault's block holds some, else 0; -ENOMEM. */
int rates_restore(struct rate_book *book, void *block, size_t size, uint64_t now);

/* Frees the book; what is in the vault stays. */
void rates_deinit(struct rate_book *book);

/* Whether the tenant may have another request now: PROTO_OK, or PROTO_OVERLOADED with the limit that it has
 * reached and when to come back. `part`: it only goes with one that was counted. *ret_quotas, what is left,
 * is set in both cases. */
enum proto_error rates_check(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                             bool part, uint64_t now, struct quotas *ret_quotas, uint32_t *ret_retry_ms,
                             struct error *reason);

/* A request of about so many tokens is admitted: counts it, unless it is a part. NULL when out of memory.
 * rate_leave follows when the request has ended. */
struct rate *rates_enter(struct rate_book *book, const struct rate_key *key, const struct rates *limits,
                         bool part, uint64_t tokens, uint64_t now);

/* The same for a request that an earlier broker counted. NULL: its counts are gone. */
struct rate *rates_enter_again(struct rate_book *book, const struct rate_key *key);
void rate_leave(struct rate *rate);

/* Takes or gives back tokens. NULL has no limits. */
void rate_charge(struct rate *rate, int64_t tokens, uint64_t now);

/* What is left. */
struct quotas rate_quotas(struct rate *rate, uint64_t now);

#endif
