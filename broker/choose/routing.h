/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CHOOSE_ROUTING_H
#define BROKER_CHOOSE_ROUTING_H

/* Chooses the worker for a request: the one with the least work, including what it would have to process of
 * this prompt beyond the prefix it has. Expected savings count sevenfold against a worker's load, because a
 * prompt processed again delays every request behind it. While most workers are busy, work beyond a worker's
 * even share counts against it.
 *
 * What a worker has in its cache is an assumption (prefixes.h). At the end of each request the worker reports
 * how much of the prompt it found, and later assumptions are weighted by how often they were right.
 *
 * If workers share a prefix store, any of them can load the blocks another one computed, for an eighth of the
 * work. Such prefixes count for all workers, a little less than a worker's own, and outlive the worker that
 * computed them. Prefixes that only the store has therefore leave the choice to the load. */

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

/* `workers` must outlive the routing. `shares`: they share a prefix store. With a single worker nothing is
 * remembered and no memory is allocated. 0 or -ENOMEM. */
int routing_init(struct routing *routing, struct worker *workers, uint32_t n_workers, bool shares,
                 uint64_t secret);

/* Numbers the changes of the book for readers that keep a copy (prefixes.h), and remembers prompts even with
 * a single worker. `secret` replaces the secret of the hashes. Call it before any request. 0 or -ENOMEM. */
int routing_publish(struct routing *routing, uint64_t secret);
void routing_deinit(struct routing *routing);

/* A request was admitted: cuts its prompt into pieces. */
void routing_admit(const struct routing *routing, struct request *request,
                   const struct generation *generation);

/* Chooses a worker that fulfils the wish. For a request whose prompt was cut into pieces, `saved` is
 * computed here for each worker. Results as scheduler_pick. */
int routing_choose(const struct routing *routing, const struct scheduler_wish *wish, struct request *request,
                   struct worker **ret_worker);

/* The worker that was just chosen has the request now. */
void routing_assigned(struct routing *routing, struct request *request, struct worker *worker);

/* The first ids of the request have arrived: its prompt is processed. */
void routing_prefilled(struct routing *routing, struct request *request);

/* The worker no longer has the request. `usage`: its report at the end; NULL or zeroes: none. */
void routing_left(struct routing *routing, struct request *request, const struct usage *usage);

/* The worker's process is gone. */
void routing_lost(struct routing *routing, struct worker *worker);

#endif
