/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_SCHEDULER_H
#define BROKER_CHOOSE_SCHEDULER_H

/* Which worker gets a request. */

#include "broker/choose/worker.h"
#include "common/bytes.h"

enum { SCHEDULER_E_BUSY = 1, SCHEDULER_E_NO_WORKER };

/* What a worker must serve. */
struct scheduler_wish {
    struct bytes model;    /* by name; "" = any */
    const uint8_t *digest; /* [16]: that very model; NULL = any */
    bool embed;            /* it makes embeddings */
    const uint64_t *saved; /* [n] tokens of load that each worker may have more than another; NULL: none */
    size_t bytes;          /* that are to be sent to it */
};

/* Of the serving workers of that model that have room the one with the least load, what is saved there taken
 * off. SCHEDULER_E_BUSY: there are such workers, or places of the pool that may still become one, but none
 * has room now. SCHEDULER_E_NO_WORKER: there is none and there will be none. */
int scheduler_pick(struct worker *workers, size_t n, const struct scheduler_wish *wish,
                   struct worker **ret_worker);

/* The wish has to wait: what is not brief either and comes later must not keep busy the links of workers that
 * could fulfil it, or what is larger than the bound on these, and goes alone, might wait for ever. Until all
 * are released such a wish gets none of these workers. */
void scheduler_hold(struct worker *workers, size_t n, const struct scheduler_wish *wish);
void scheduler_release(struct worker *workers, size_t n);

/* No worker fulfils the wish: whether there would be one, were it not for embeddings. */
bool scheduler_lacks_embeddings(struct worker *workers, size_t n, const struct scheduler_wish *wish);

/* Whether a worker has told that it has this model, and may serve it again if it does not now. */
bool scheduler_knows(const struct worker *workers, size_t n, struct bytes model);

/* Any serving worker of that model, full or not: for questions that take no slot. One that is `large` goes to
 * a worker that works on none: SCHEDULER_E_BUSY when all do. 0, that, or SCHEDULER_E_NO_WORKER. */
int scheduler_pick_any(struct worker *workers, size_t n, struct bytes model, bool large,
                       struct worker **ret_worker);

#endif
