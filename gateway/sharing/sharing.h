/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_SHARING_SHARING_H
#define GATEWAY_SHARING_SHARING_H

/* Makes the bounds of keys hold approximately for all gateways together.
 *
 * Gateways do not know one another. Each reports to the pools what its keys are using and have recently used,
 * ten times a second while it has anything to report or hear, otherwise four times. The answer says what the
 * keys use through other gateways with the same client key (or, like itself, in the run directory). It
 * reports to the first four pools that are up, in the order of their names, and takes the largest of their
 * answers. So two gateways learn of each other as long as one of these pools is up for both.
 *
 * What another gateway has admitted since the last answer is unknown here. So if several gateways get
 * requests for a key, each takes only its share of what the bounds leave, computed four times a second. While
 * no other gateway has had requests for it in the last ten seconds, a gateway may take all: a burst that
 * reaches all gateways at once then finds the whole bound at each of them, until those requests end. A pool
 * that is too old or rejects reports answers nothing; if no other pool answers, each gateway counts for
 * itself. Requests and tokens per minute and per day are shared only if there are several pools: a single
 * pool counts them itself, exactly. */

#include "gateway/fleet/fleet.h"
#include "gateway/http/keys.h"

#define SHARING_POOLS 4
#define SHARING_MS    250 /* between two reports to a pool, while no key is in use anywhere; else: */
#define SHARING_BUSY  100

struct sharing_pool { /* a pool that gets reports; zeroed: none */
    struct sharing *sharing;
    uint32_t number;            /* of the pool (fleet_pool); 0 with `is_told` false: none */
    bool is_told;               /* there is such a pool now */
    bool asked;                 /* a report is unanswered */
    bool refused;               /* it rejects reports, which was logged */
    uint64_t asked_ns;          /* clock_ns of the last report; 0: none yet */
    uint64_t heard_ns;          /* of the last answer; 0: none that counts */
    const char *name;           /* of a member; NULL: the only pool */
    struct quern_tenant *heard; /* [n_heard] of `room`, in the order of their ids */
    size_t n_heard, room;
};

struct sharing {       /* zeroed: nothing is shared */
    struct key **keys; /* [n] keys with bounds to share, in the order of their ids */
    size_t n;
    bool busy;          /* a key has requests here, or others report it */
    uint64_t shared_ns; /* clock_ns when shares of the bounds were last computed */
    struct sharing_pool pools[SHARING_POOLS];
    struct quern_tenant *told; /* [n]: room for a report */
};

/* Shares the bounds of these keys, which must outlive it. `is_fleet`: there are, or may be, several pools. 0
 * or -ENOMEM. */
int sharing_init(struct sharing *sharing, struct keys *keys, bool is_fleet);
void sharing_deinit(struct sharing *sharing);

/* Reports to the pools that are due. Call it after each fleet_wait. */
void sharing_turn(struct sharing *sharing, const struct fleet *fleet, uint64_t now);

/* How long the loop may wait, at most timeout_ms (-1: forever). */
int sharing_wait_ms(const struct sharing *sharing, int timeout_ms);

#endif
