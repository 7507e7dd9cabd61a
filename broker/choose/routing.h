/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ROUTING_H
#define BROKER_CHOOSE_ROUTING_H

/* Where a request goes, for what it shares with those before: the worker with the least to do, what is left
 * to read of the prompt there included.
 *
 * What a worker has is believed (prefixes.h) until it says otherwise: at the end of each request it tells how
 * much of the prompt it had found, and what is believed of it later counts as much as that came true.
 *
 * Where workers share a prefix store, what one of them has read each of them can bring: it counts for all,
 * for a little less than what a worker has itself, and outlives the worker that read it. So what only the
 * store has goes by load. */

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

/* For workers that outlive it, and that share a prefix store or not. A lone worker needs no memory, and
 * nothing is remembered for it. 0 or -ENOMEM. */
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

/* It has it no more. `usage` is what it told at the end; NULL, or zeroes: nothing. */
void routing_left(struct routing *routing, struct request *request, const struct usage *usage);

/* Its process is gone. */
void routing_lost(struct routing *routing, struct worker *worker);

#endif
