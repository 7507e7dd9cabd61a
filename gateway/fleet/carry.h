/* SPDX-License-Identifier: MIT */
#ifndef GATEWAY_FLEET_CARRY_H
#define GATEWAY_FLEET_CARRY_H

/* A request on its way through the pools of a fleet.
 *
 * It is sent to the pool that fleet_choose names. If that pool dies or drains, the request goes on in another
 * one, behind the output that has come, as if nothing had happened: its owner gets each id once. Request,
 * seed and ids are kept for that. It goes on only with the same model (by its digest), the same prompt ids
 * and as much context. A pool that is dead here may live: the request is cancelled there, and what it still
 * says is dropped. A request moves three times at most. An end for which the request itself is the likely
 * reason, such as that of a prompt that has killed three workers, is passed on.
 *
 * What has not begun to answer also goes elsewhere when a pool has no room. Embeddings begin anew.
 *
 * With one pool requests go straight to libquern, and nothing is kept. */

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
    struct attempt *attempt; /* in a fleet: where it is now; NULL: it has ended */
    uint32_t moves;
    uint32_t been[CARRY_MOVES + 1]; /* [moves + 1]: the numbers of pools */
    uint64_t again_ns;              /* of a move that failed: not before this */
    bool begun;                     /* output has come: */
    struct buffer ids;              /* int32_t each */
    uint64_t off;                   /* bytes of its text */
    bool forgot;                    /* not all of it could be kept */
    uint32_t lost;                  /* workers that died with it */
    bool has_prompt_digest;
    uint8_t prompt_digest[16]; /* of the prompt's ids, as the first pool has said */
    uint64_t sent_ns;          /* when it was sent first */
    uint32_t context;          /* tokens, of the pool where it began; of its model there: */
    char digest[POOL_DIGEST], arithmetic[POOL_ARITHMETIC];
    bool cancelled; /* nobody wants it */
    bool admitted;  /* that was told */
};

/* Sends it: as quern_generate_encoded, and in a fleet also -EHOSTUNREACH: no pool takes it now. In a fleet
 * `encoded` and what the wish points to must live until its end, and so must `carried`; `seed` (NULL: none)
 * must be given for a generation. `prefer`: the pool to send it to if that is alive, as for other outputs of
 * the same prompt; NULL: none. */
int carry_send(struct fleet *fleet, struct carried *carried, const struct fleet_wish *wish,
               const struct fleet_pool *prefer, struct quern_encoded *encoded, const uint64_t *seed,
               quern_output_fn *fn, void *arg, struct quern_error *err);

/* Cancels it; its end comes as always, or, if its pool is dead, at carry_turn. */
void carry_cancel(struct carried *carried);

/* The pool that has it; NULL: none. Only to be compared and passed to carry_send. */
const struct fleet_pool *carry_pool(const struct carried *carried);

/* Moves what is at pools that are dead, and ends what was cancelled there. After each fleet_wait. */
void carry_turn(struct fleet *fleet);

/* Ends all requests, wherever they are, as cancelled. In a fleet, before fleet_deinit. */
void carry_end_all(struct fleet *fleet);

#endif
