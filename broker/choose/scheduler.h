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

/* Picks the worker with the least load, minus what is saved there, among those that serve the model and have
 * room. SCHEDULER_E_BUSY: such workers exist, or places that may become one, but none has room now.
 * SCHEDULER_E_NO_WORKER: there is none and there will be none. */
int scheduler_pick(struct worker *workers, size_t n, const struct scheduler_wish *wish,
                   struct worker **ret_worker);

/* The wish has to wait. Until all workers are released, no other large message goes to a worker that could
 * fulfil it: otherwise a message above the bound, which must go alone, might wait for ever. */
void scheduler_hold(struct worker *workers, size_t n, const struct scheduler_wish *wish);
void scheduler_release(struct worker *workers, size_t n);

/* Whether some worker would fulfil the wish if it did not ask for embeddings. */
bool scheduler_lacks_embeddings(struct worker *workers, size_t n, const struct scheduler_wish *wish);

/* Whether a worker has announced this model, and serves it or may serve it again. */
bool scheduler_knows(const struct worker *workers, size_t n, struct bytes model);

/* Any serving worker of that model, full or not: for questions that take no slot. One that is `large` goes to
 * a worker that works on none: SCHEDULER_E_BUSY when all do. 0, that, or SCHEDULER_E_NO_WORKER. */
int scheduler_pick_any(struct worker *workers, size_t n, struct bytes model, bool large,
                       struct worker **ret_worker);

#endif
