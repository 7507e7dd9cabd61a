/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_SHARE_H
#define BROKER_CHOOSE_SHARE_H

/* What each session has of that which all of them share: the queue and the journal. A client with a key has
 * one share for all of its sessions; each tenant has one, too.
 *
 * The rule is the same for everything shared: including what it asks for, a session may hold as much as is
 * then left free. A single session gets half, each of n gets 1/(n + 1), so something is always free for the
 * next one. Nothing granted is taken back: a session that holds more than it would get now waits until that
 * has ended. (Admission makes one exception, for long requests.) */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uthash.h>

#include "proto/message.h"

struct share { /* of a client or a tenant; there while a request of it has not ended */
    struct id128 id;
    size_t requests;             /* that have not ended */
    size_t queued, queued_bytes; /* of those, which wait */
    uint64_t waiting_bytes;      /* of the journal, that those have which have not started */
    uint64_t journal_bytes;      /* reserved for those that have not ended */
    UT_hash_handle hh;
};

struct shares {    /* zeroed except for the seed: no holdings */
    uint64_t seed; /* of the hash */
    struct share *by_id;
};

/* Whose share this is; NULL when it has nothing. */
struct share *share_find(const struct shares *shares, const struct id128 *id);

/* Counts a request of it; NULL when out of memory. */
struct share *share_take(struct shares *shares, const struct id128 *id);

/* Counts it no more; the last one takes the share along. */
void share_release(struct shares *shares, struct share *share);

/* The rule: whether a holder of `had` may have `more`, with `free` left. */
static inline bool share_allows(uint64_t had, uint64_t more, uint64_t free)
{
    return more <= free && had <= free - more && more <= free - more - had;
}

/* The most that the rule still allows: what a client's tenants divide. */
static inline uint64_t share_most(uint64_t had, uint64_t free)
{
    return free > had ? (free - had) / 2 : 0;
}

/* The rule for what may be larger than a share and would otherwise never fit: a holder of nothing gets what
 * it needs, as long as part of the limit stays free for others. */
#define SHARE_OTHERS 8
static inline bool share_allows_first(uint64_t had, uint64_t more, uint64_t free, uint64_t limit)
{
    uint64_t others = limit / SHARE_OTHERS;
    return share_allows(had, more, free) || (had == 0 && free > others && more <= free - others);
}

#endif
