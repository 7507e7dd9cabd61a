/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_SHARING_SHARING_H
#define GATEWAY_SHARING_SHARING_H

/* Bounds of keys that hold for all gateways together, about.
 *
 * Gateways do not know one another. Each tells the pools, ten times a second while it has anything to tell or
 * hear and else four times, what its keys have at the moment and have used lately, and hears what they have
 * through other gateways with the same client key (or, like itself, in the run directory). It tells the first
 * four pools that are up, in the order of their names, and takes the largest of their answers: so two
 * gateways meet while one of these pools is up for both.
 *
 * What another gateway has admitted since the last answer is not known here. So where several ask for a key,
 * each takes its share only of what the bounds leave, four times a second. While nobody else has been asked
 * for it in the last ten seconds, one may take all: then a burst that comes to all gateways at once finds the
 * whole bound at each of them, until those requests end. A pool that is too old, or does not take it, tells
 * nothing; without any other that does each gateway counts for itself. Requests and tokens a minute and a day
 * are shared only where there are several pools: one pool counts them itself, exactly. */

#include "gateway/fleet/fleet.h"
#include "gateway/http/keys.h"

#define SHARING_POOLS 4
#define SHARING_MS    250 /* between two questions to a pool, while no key has anything anywhere; else: */
#define SHARING_BUSY  100

struct sharing_pool { /* one that is told; zeroed: none */
    struct sharing *sharing;
    uint32_t number;            /* of the pool (fleet_pool); 0 with `is_told` false: none */
    bool is_told;               /* there is such a pool now */
    bool asked;                 /* a question is open */
    bool refused;               /* it refuses, which was logged */
    uint64_t asked_ns;          /* clock_ns of the last question; 0: none yet */
    uint64_t heard_ns;          /* of the last answer; 0: none that counts */
    const char *name;           /* of a member; NULL: the only pool */
    struct quern_tenant *heard; /* [n_heard] of `room`, in the order of their ids */
    size_t n_heard, room;
};

struct sharing {       /* zeroed: nothing is shared */
    struct key **keys; /* [n] that have bounds to share, in the order of their ids */
    size_t n;
    bool busy;          /* a key has requests here, or others tell of it */
    uint64_t shared_ns; /* clock_ns of when the room of bounds was last shared out */
    struct sharing_pool pools[SHARING_POOLS];
    struct quern_tenant *told; /* [n]: room for a question */
};

/* Shares the bounds of these keys, which must outlive it. `is_fleet`: there are several pools, or may be. 0
 * or -ENOMEM. */
int sharing_init(struct sharing *sharing, struct keys *keys, bool is_fleet);
void sharing_deinit(struct sharing *sharing);

/* Asks the pools that are due. After each fleet_wait. */
void sharing_turn(struct sharing *sharing, const struct fleet *fleet, uint64_t now);

/* How long the loop may wait, at most timeout_ms (-1: for ever). */
int sharing_wait_ms(const struct sharing *sharing, int timeout_ms);

#endif
