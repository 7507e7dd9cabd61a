/* SPDX-License-Identifier: MIT */
/* The choice of a worker: the least to do among those with room.
 *
 * Load is what was assigned and is still to be read and made, in tokens; divided by the worker's slots, so
 * that unequal workers share fairly. On a tie the one with fewer requests, then the one that got less lately:
 * so what comes one by one does not all go to the first, whose cache alone would fill. A worker that is
 * starting may turn out to serve any model, so it counts as a hope, and one that is ending comes back; one
 * that failed for good does not. */

#include "broker/choose/scheduler.h"

#include <string.h>

static bool serves(const struct worker *worker, struct bytes model)
{
    return model.len == 0 || worker_answers_to(worker, model);
}

/* A model that ranks does nothing else. What names no model is for the others, as long as one of them serves
 * or may turn out to; where all rank, one of them says so. */
static bool leaves_out_ranking(const struct worker *workers, size_t n, const struct scheduler_wish *wish)
{
    for (size_t i = 0; wish->model.len == 0 && !wish->pair && !wish->digest && i < n; i++)
        if (workers[i].state != WORKER_FAILED && !workers[i].ranks)
            return true;
    return false;
}

static bool fulfils(const struct worker *worker, const struct scheduler_wish *wish, bool none_that_ranks)
{
    return serves(worker, wish->model) && (!wish->embed || worker->embedding > 0) &&
           (!wish->pair || worker->ranks) && !(none_that_ranks && worker->ranks) &&
           (!wish->digest || memcmp(wish->digest, worker->digest, sizeof worker->digest) == 0);
}

struct candidate {
    struct worker *worker; /* NULL: none */
    int64_t load;
};

static bool is_better(const struct candidate *a, const struct candidate *b)
{
    if (!b->worker)
        return true;
    int64_t load_a = a->load * (b->worker->slots ? b->worker->slots : 1);
    int64_t load_b = b->load * (a->worker->slots ? a->worker->slots : 1);
    if (load_a != load_b)
        return load_a < load_b;
    if (a->worker->n_requests != b->worker->n_requests)
        return a->worker->n_requests < b->worker->n_requests;
    return a->worker->recent < b->worker->recent;
}

/* Requests there that stand in nobody's way. What was begun is not kept out by those that may be waiting for
 * the room in the journal that it has. */
static uint32_t passed(const struct worker *worker, const struct scheduler_wish *wish)
{
    return wish->digest ? worker->n_waiting : 0;
}

int scheduler_pick(struct worker *workers, size_t n, const struct scheduler_wish *wish,
                   struct worker **ret_worker)
{
    const bool none_that_ranks = leaves_out_ranking(workers, n, wish);
    struct candidate best = {0};
    bool hope = false;
    for (size_t i = 0; i < n; i++) {
        struct worker *worker = &workers[i];
        if (!worker_is_serving(worker)) {
            /* Until it registered, nobody knows its model. */
            bool known = worker->model[0] != 0;
            if (worker->state != WORKER_FAILED && (!known || fulfils(worker, wish, none_that_ranks)))
                hope = true;
            continue;
        }
        if (!fulfils(worker, wish, none_that_ranks))
            continue;
        hope = true;
        const struct candidate candidate = {worker,
                                            (int64_t)(worker->load - (wish->saved ? wish->saved[i] : 0))};
        if (worker->n_requests - passed(worker, wish) < worker_capacity(worker) &&
            worker_may_be_sent(worker, wish->bytes) && is_better(&candidate, &best))
            best = candidate;
    }
    if (!best.worker)
        return hope ? SCHEDULER_E_BUSY : SCHEDULER_E_NO_WORKER;
    *ret_worker = best.worker;
    return 0;
}

void scheduler_hold(struct worker *workers, size_t n, const struct scheduler_wish *wish)
{
    const bool none_that_ranks = leaves_out_ranking(workers, n, wish);
    for (size_t i = 0; wish->bytes > REQUEST_BRIEF_BYTES && i < n; i++)
        if (worker_is_serving(&workers[i]) && fulfils(&workers[i], wish, none_that_ranks))
            workers[i].held = true;
}

void scheduler_release(struct worker *workers, size_t n)
{
    for (size_t i = 0; i < n; i++)
        workers[i].held = false;
}

bool scheduler_lacks_embeddings(struct worker *workers, size_t n, const struct scheduler_wish *wish)
{
    struct scheduler_wish other = *wish;
    struct worker *unused;
    other.embed = other.pair = false;
    return wish->embed && scheduler_pick(workers, n, &other, &unused) != SCHEDULER_E_NO_WORKER;
}

bool scheduler_knows(const struct worker *workers, size_t n, struct bytes model)
{
    for (size_t i = 0; i < n; i++)
        if (workers[i].state != WORKER_FAILED && workers[i].model[0] != 0 && serves(&workers[i], model))
            return true;
    return false;
}

int scheduler_pick_any(struct worker *workers, size_t n, struct bytes model, bool large,
                       struct worker **ret_worker)
{
    struct candidate best = {0};
    bool busy = false;
    for (size_t i = 0; i < n; i++) {
        const struct candidate candidate = {&workers[i], (int64_t)workers[i].load};
        if (!worker_is_serving(&workers[i]) || !serves(&workers[i], model))
            continue;
        if (large && workers[i].asked)
            busy = true;
        else if (is_better(&candidate, &best))
            best = candidate;
    }
    if (!best.worker)
        return busy ? SCHEDULER_E_BUSY : SCHEDULER_E_NO_WORKER;
    *ret_worker = best.worker;
    return 0;
}
