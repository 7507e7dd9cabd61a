/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ROUTING_H
#define BROKER_CHOOSE_ROUTING_H

/* Chooses the worker for a request: the one with the least to do, including what it would have to read of
 * this prompt beyond the prefix it has.
 *
 * What a worker has is an assumption (prefixes.h). At the end of each request the worker reports how much of
 * the prompt it found, and later assumptions are weighted by how often they were right.
 *
 * Where workers share a prefix store, any of them can load what one has read: that counts for all of them, a
 * little less than what a worker has itself, and outlives the worker that read it. Prefixes that only the
 * store has therefore leave the choice to the load. */

#include "broker/choose/prefixes.h"
#include "broker/books/request.h"
#include "broker/choose/scheduler.h"
#include "broker/choose/worker.h"

struct routing { /* zeroed: routes by load alone */
    struct worker *workers;
    uint32_t n_workers;
    uint64_t secret;
    bool shares; /* the workers share a prefix store */
    struct prefixes prefixes;
};

/* `workers` must outlive it; `shares`: they have a prefix store. For a single worker nothing is remembered
 * and no memory is needed. 0 or -ENOMEM. */
int routing_init(struct routing *routing, struct worker *workers, uint32_t n_workers, bool shares,
                 uint64_t secret);
void routing_deinit(struct routing *routing);

/* A request was admitted: takes from its prompt what is needed to route it. */
void routing_admit(const struct routing *routing, struct request *request,
                   const struct generation *generation);

/* Chooses a worker that fulfils the wish, whose numbers are filled in here. As scheduler_pick. */
int routing_choose(const struct routing *routing, const struct scheduler_wish *wish, struct request *request,
                   struct worker **ret_worker);

/* The worker that was just chosen has the request now. */
void routing_assigned(struct routing *routing, struct request *request, struct worker *worker);

/* The first ids of it are here: its prompt is read. */
void routing_prefilled(struct routing *routing, struct request *request);

/* The worker no longer has it. `usage` is what it reported at the end; NULL or zeroes: nothing. */
void routing_left(struct routing *routing, struct request *request, const struct usage *usage);

/* Its process is gone. */
void routing_lost(struct routing *routing, struct worker *worker);

#endif
