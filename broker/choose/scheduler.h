/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_SCHEDULER_H
#define BROKER_CHOOSE_SCHEDULER_H

/* Picks the worker for a request. */

#include "broker/choose/worker.h"
#include "common/bytes.h"

enum { SCHEDULER_E_BUSY = 1, SCHEDULER_E_NO_WORKER };

/* The requirements on a worker. */
struct scheduler_wish {
    struct bytes model;    /* by name; "" = any; a ranking model only for pairs, if others serve */
    const uint8_t *digest; /* [16]: exactly this model; NULL = any */
    bool embed;            /* it supports embeddings */
    bool pair;             /* its model ranks pairs of texts; with embed */
    const uint64_t *saved; /* [n] tokens of work that each worker would save; NULL: none */
    size_t bytes;          /* of the message to send */
};

/* Picks the worker with the least load, minus its savings, among those that serve the model and have room.
 * SCHEDULER_E_BUSY: there are such workers, or places that may become one, but none has room now.
 * SCHEDULER_E_NO_WORKER: there is none and there will be none. */
int scheduler_pick(struct worker *workers, size_t n, const struct scheduler_wish *wish,
                   struct worker **ret_worker);

/* The wish has to wait. Until scheduler_release, no other large message goes to a worker that could fulfil
 * it: otherwise a message above the bound, which must be sent alone, might wait forever. */
void scheduler_hold(struct worker *workers, size_t n, const struct scheduler_wish *wish);
void scheduler_release(struct worker *workers, size_t n);

/* Whether some worker would fulfil the wish but for its embeddings or scores. */
bool scheduler_lacks_embeddings(struct worker *workers, size_t n, const struct scheduler_wish *wish);

/* Whether a worker has announced this model, and serves it or may serve it again. */
bool scheduler_knows(const struct worker *workers, size_t n, struct bytes model);

/* Any serving worker of that model, full or not: for questions that need no slot. A `large` question goes to
 * a worker without another large one. 0; SCHEDULER_E_BUSY: all have one; SCHEDULER_E_NO_WORKER. */
int scheduler_pick_any(struct worker *workers, size_t n, struct bytes model, bool large,
                       struct worker **ret_worker);

#endif
