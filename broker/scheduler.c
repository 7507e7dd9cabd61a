/* SPDX-License-Identifier: MIT */
/* The choice of a worker: least load among those with room.
 *
 * Load is what was assigned and has not ended, in tokens, divided by the worker's slots so that unequal
 * workers share fairly; on a tie the one with fewer requests, then the first. A worker that is starting may
 * turn out to serve any model, so it counts as a hope, and one that is ending comes back; one that failed for
 * good does not. */

#include "broker/scheduler.h"

#include <string.h>

static bool serves(const struct worker *worker, struct bytes model)
{
    return model.len == 0 || bytes_equal(model, bytes_of_string(worker->model));
}

static bool fulfils(const struct worker *worker, const struct scheduler_wish *wish)
{
    return serves(worker, wish->model) &&
           (!wish->digest || memcmp(wish->digest, worker->digest, sizeof worker->digest) == 0);
}

static bool less_loaded(const struct worker *a, const struct worker *b)
{
    uint64_t load_a = a->load * (b->slots ? b->slots : 1);
    uint64_t load_b = b->load * (a->slots ? a->slots : 1);
    return load_a != load_b ? load_a < load_b : a->n_requests < b->n_requests;
}

int scheduler_pick(struct worker *workers, size_t n, const struct scheduler_wish *wish,
                   struct worker **ret_worker)
{
    struct worker *best = NULL;
    bool hope = false;
    for (size_t i = 0; i < n; i++) {
        struct worker *worker = &workers[i];
        if (!worker_is_serving(worker)) {
            /* Until it registered, nobody knows its model. */
            bool known = worker->model[0] != 0;
            if (worker->state != WORKER_FAILED && (!known || fulfils(worker, wish)))
                hope = true;
            continue;
        }
        if (!fulfils(worker, wish))
            continue;
        hope = true;
        if (worker->n_requests < worker_capacity(worker) && (!best || less_loaded(worker, best)))
            best = worker;
    }
    if (!best)
        return hope ? SCHEDULER_E_BUSY : SCHEDULER_E_NO_WORKER;
    *ret_worker = best;
    return 0;
}

int scheduler_pick_any(struct worker *workers, size_t n, struct bytes model, struct worker **ret_worker)
{
    struct worker *best = NULL;
    for (size_t i = 0; i < n; i++)
        if (worker_is_serving(&workers[i]) && serves(&workers[i], model) &&
            (!best || less_loaded(&workers[i], best)))
            best = &workers[i];
    if (!best)
        return SCHEDULER_E_NO_WORKER;
    *ret_worker = best;
    return 0;
}
