/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_TRUST_H
#define GATEWAY_FLEET_TRUST_H

/* Which pools of a fleet are dead, as one gateway sees it.
 *
 * A pool is asked every 100 ms whether it lives, and dead when it has not answered for 400 ms: a broker that
 * is replaced is back within 160 ms on a busy machine, and nothing is to move for that. Nothing else counts
 * as an answer, nor silence of its streams as death: requests queue, and prompts take long.
 *
 * The gateway distrusts itself first. If its own loop was late, nobody was heard, so every silence begins
 * anew. If more than half of the pools fall silent together, the gateway is likely to be cut off: nobody is
 * dead until one of them has been heard again, and then every silence begins anew, and only after as long as
 * the cut has lasted, 5 s at most: TCP sends again what was lost at times that double, so each connection
 * comes back at its own time within that. Who was not heard even then is dead, however many those are. A dead
 * pool is dead until it answers.
 *
 * Pure: times come from the caller. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/clock.h"

#define TRUST_LATE_NS    (100 * CLOCK_NS_PER_MS) /* between two turns of the loop */
#define TRUST_SUSPECT_NS (250 * CLOCK_NS_PER_MS) /* silent together with one that is dead */
#define TRUST_DEAD_NS    (400 * CLOCK_NS_PER_MS)
#define TRUST_BACK_NS    (5 * CLOCK_NS_PER_S) /* most that the others are waited for behind a cut */

struct trust_pool {
    bool watched;         /* it has answered since it was connected; set by the caller, with: */
    uint64_t answered_ns; /* when it last answered */
    bool dead;            /* the verdict, and when it fell: */
    uint64_t dead_ns;
};

struct trust {           /* zeroed: before the first turn */
    uint64_t turn_ns;    /* of the last turn; 0: none */
    uint64_t from_ns;    /* silence before that counts for nothing; it may lie ahead */
    uint64_t doubted_ns; /* since when the gateway seems to be cut off; 0: it does not */
    uint64_t heard_ns;   /* when the last doubt that has ended began: who is silent since then is dead */
};

/* A turn of the loop begins. True if it was late. */
bool trust_turn(struct trust *trust, uint64_t now);

/* Judges all pools; their `dead` are set, and cleared for those that answer. */
void trust_judge(struct trust *trust, struct trust_pool *const *pools, size_t n, uint64_t now);

#endif
