/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_CARRY_H
#define GATEWAY_FLEET_CARRY_H

/* Carries a request through the pools of a fleet.
 *
 * The request is sent to the pool that fleet_choose names. If that pool dies or drains, the request continues
 * in another pool after the output received so far, as if nothing had happened: its owner gets each id once.
 * Request, seed and ids are kept for this. It continues only with the same model (by digest), the same prompt
 * ids and at least as much context. A pool that this gateway considers dead may be alive: the request is
 * cancelled there, and further output from there is dropped. A request moves at most three times. If the
 * request itself is the likely reason for its end, as with a prompt that has killed three workers, the end is
 * passed on.
 *
 * A request without output also goes elsewhere when a pool has no room. Embeddings start again.
 *
 * With a single pool requests go straight to libquern, and nothing is kept. */

#include "common/bytes.h"
#include "gateway/fleet/fleet.h"

#define CARRY_MOVES 3

struct carried { /* zeroed: not sent */
    struct fleet *fleet;
    struct fleet_wish wish;
    struct quern_encoded *encoded; /* the sender's */
    uint64_t seed;
    bool has_seed;
    quern_output_fn *fn;
    void *arg;
    struct quern_id id;      /* with one pool */
    struct attempt *attempt; /* in a fleet: its current attempt; NULL: it has ended */
    uint32_t moves;
    uint32_t been[CARRY_MOVES + 1]; /* [moves + 1]: the numbers of pools */
    uint64_t again_ns;              /* after a failed move: not before this time */
    bool begun;                     /* it has output: */
    struct buffer ids;              /* int32_t each */
    uint64_t off;                   /* bytes of its text */
    bool forgot;                    /* not all of the output could be kept */
    uint32_t lost;                  /* workers that died with it */
    bool has_prompt_digest;
    uint8_t prompt_digest[16]; /* of the prompt's ids, as reported by the first pool */
    uint64_t sent_ns;          /* when it was sent first */
    uint32_t context;          /* tokens, of the pool where it began; of its model there: */
    char digest[POOL_DIGEST], arithmetic[POOL_ARITHMETIC];
    bool cancelled; /* its owner has cancelled it */
    bool admitted;  /* its owner was told that it was admitted */
};

/* Sends the request. Results as quern_generate_encoded; in a fleet also -EHOSTUNREACH: no pool takes it now.
 * In a fleet, `encoded`, `carried` and what the wish points to must live until its end; `seed` (NULL: none)
 * must be given for a generation. `prefer`: the pool to send it to if it is alive, as for other outputs of
 * the same prompt; NULL: none. */
int carry_send(struct fleet *fleet, struct carried *carried, const struct fleet_wish *wish,
               const struct fleet_pool *prefer, struct quern_encoded *encoded, const uint64_t *seed,
               quern_output_fn *fn, void *arg, struct quern_error *err);

/* Cancels the request; its end comes as usual, or at carry_turn if its pool is dead. */
void carry_cancel(struct carried *carried);

/* The pool that has the request; NULL: none. Use it only for comparison and for carry_send. */
const struct fleet_pool *carry_pool(const struct carried *carried);

/* Moves requests away from dead pools, and ends those that were cancelled there. Call it after each
 * fleet_wait. */
void carry_turn(struct fleet *fleet);

/* Ends all requests, wherever they are, as cancelled. In a fleet, call it before fleet_deinit. */
void carry_end_all(struct fleet *fleet);

#endif
