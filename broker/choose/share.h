/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_SHARE_H
#define BROKER_CHOOSE_SHARE_H

/* Each session's share of the common resources: the queue and the journal. A client with a key has one share
 * for all its sessions; each tenant has one, too.
 *
 * There is one rule: with what it asks for, a session may hold at most as much as then remains free. A single
 * session gets half, each of n gets 1/(n + 1), so something is always free for the next one. Nothing granted
 * is taken back: a session that holds more than the rule allows now gets nothing more until enough of its
 * requests have ended. (Admission makes one exception, for long requests.) */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "proto/message.h"

struct share { /* of a client or a tenant; exists while it has unfinished requests */
    struct id128 id;
    size_t requests;             /* unfinished ones */
    size_t queued, queued_bytes; /* of those, the queued ones */
    uint64_t waiting_bytes;      /* of the journal, reserved for those that have not started */
    uint64_t journal_bytes;      /* of the journal, reserved for all unfinished ones */
    UT_hash_handle hh;
};

struct shares {    /* zeroed except for the seed: empty */
    uint64_t seed; /* of the hash */
    struct share *by_id;
};

/* The share of this client or tenant; NULL: it has nothing. */
struct share *share_find(const struct shares *shares, const struct id128 *id);

/* Counts a request of this client or tenant; NULL: out of memory. */
struct share *share_take(struct shares *shares, const struct id128 *id);

/* A request has ended; the last one frees the share. */
void share_release(struct shares *shares, struct share *share);

/* The rule: whether a holder of `had` may have `more`, with `free` left. */
static inline bool share_allows(uint64_t had, uint64_t more, uint64_t free)
{
    return more <= free && had <= free - more && more <= free - more - had;
}

/* The most that the rule still allows; a client's tenants divide it. */
static inline uint64_t share_most(uint64_t had, uint64_t free)
{
    return free > had ? (free - had) / 2 : 0;
}

/* The rule for requests that may be larger than a share and would otherwise never fit: a holder of nothing
 * gets what it needs, as long as part of the limit stays free for others. */
#define SHARE_OTHERS 8
static inline bool share_allows_first(uint64_t had, uint64_t more, uint64_t free, uint64_t limit)
{
    uint64_t others = limit / SHARE_OTHERS;
    return share_allows(had, more, free) || (had == 0 && free > others && more <= free - others);
}

#endif
