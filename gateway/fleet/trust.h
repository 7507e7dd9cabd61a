/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_TRUST_H
#define GATEWAY_FLEET_TRUST_H

/* Decides which pools of a fleet one gateway considers dead.
 *
 * A pool is pinged every 100 ms, and is dead when it has not answered for 400 ms. A replaced broker is back
 * within 160 ms on a busy machine, and no request should move because of that. Nothing else counts as an
 * answer, and silent streams do not count as death: requests queue, and prompts take long.
 *
 * The gateway doubts itself first. If its own loop was late, it could hear no pool, so every silence is timed
 * anew. If more than half of the pools fall silent together, the gateway is probably cut off: no further pool
 * is dead until one of them is heard again. Then every silence is timed anew, starting after as long as the
 * cut lasted, at most 5 s: TCP retransmits at doubling intervals, so each connection comes back at a
 * different time within that. Pools that are still not heard are then dead, however many there are. A dead
 * pool stays dead until it answers.
 *
 * The functions are pure: the caller passes the time. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

#define TRUST_LATE_NS    (100 * CLOCK_NS_PER_MS) /* between two turns of the loop */
#define TRUST_SUSPECT_NS (250 * CLOCK_NS_PER_MS) /* silent together with a dead one */
#define TRUST_DEAD_NS    (400 * CLOCK_NS_PER_MS)
#define TRUST_BACK_NS    (5 * CLOCK_NS_PER_S) /* the longest wait for the others after a cut */

struct trust_pool {
    bool watched;         /* it has answered since it was connected; set by the caller, as is: */
    uint64_t answered_ns; /* when it last answered */
    bool dead;            /* the verdict, and its time: */
    uint64_t dead_ns;
};

struct trust {           /* zeroed: before the first turn */
    uint64_t turn_ns;    /* of the last turn; 0: none */
    uint64_t from_ns;    /* silence before this is ignored; it may be in the future */
    uint64_t doubted_ns; /* since when the gateway seems cut off; 0: it does not */
    uint64_t heard_ns;   /* when the last ended doubt began: pools silent since then are dead */
};

/* A turn of the loop begins. Returns whether it was late. */
bool trust_turn(struct trust *trust, uint64_t now);

/* Judges all pools: sets `dead` of each, and clears it for those that answer. */
void trust_judge(struct trust *trust, struct trust_pool *const *pools, size_t n, uint64_t now);

#endif
