/* SPDX-License-Identifier: MIT */
/* The broker's own books about a worker.
 *
 * Load is counted here, when a request is assigned and when its end has been heard, and never taken from what
 * a worker reports: a report that crosses an assignment on its way would hide it, and the next request would
 * go to the same worker. */

#include "broker/choose/worker.h"

#include <utlist.h>

bool worker_is_serving(const struct worker *worker)
{
    return worker->state == WORKER_READY && worker->peer.len > 0;
}

/* Unless its death is known already, or it has to say first that it is ready. */
void worker_is_ending(struct worker *worker, uint64_t now)
{
    if (worker->state != WORKER_READY)
        return;
    worker->state = WORKER_DRAINING;
    worker->ending_ns = now;
}

bool worker_answers_to(const struct worker *worker, struct bytes name)
{
    if (bytes_equal(name, bytes_of_string(worker->model)))
        return true;
    for (uint32_t i = 0; i < worker->n_aliases; i++)
        if (bytes_equal(name, worker->aliases[i]))
            return true;
    return false;
}

uint32_t worker_capacity(const struct worker *worker)
{
    return worker->slots + worker->slots / 8 + 1;
}

bool worker_may_be_sent(const struct worker *worker, size_t bytes)
{
    if (bytes <= REQUEST_BRIEF_BYTES)
        return true;
    return !worker->held && 2 * worker->n_bulky < worker_capacity(worker) &&
           (worker->under_way == 0 || worker->under_way + bytes <= WORKER_UNDER_WAY_BYTES);
}

/* Whether it counts as n_bulky. */
static bool is_read(const struct request *request)
{
    return request->queued_kind & REQUEST_BULKY && !request->prefilled;
}

void worker_take(struct worker *worker, struct request *request)
{
    request->worker = worker;
    DL_APPEND2(worker->requests, request, worker_prev, worker_next);
    worker->n_requests++;
    worker->n_waiting += request->growth.waits != 0;
    request->prefilled = false;
    worker->n_bulky += is_read(request);
    worker->load += request->prefill + request->decode;
}

void worker_drop(struct worker *worker, struct request *request)
{
    DL_DELETE2(worker->requests, request, worker_prev, worker_next);
    request->worker = NULL;
    worker->n_requests--;
    worker->n_waiting -= request->growth.waits != 0;
    worker->n_bulky -= is_read(request);
    worker->n_finished -= request->finished;
    request->finished = false;
    worker->load -= request->prefilled ? request->decode : request->prefill + request->decode;
    worker->recent += request->prefill + request->decode;
}

void worker_prefilled(struct worker *worker, struct request *request)
{
    worker->load -= request->prefill;
    worker->n_bulky -= is_read(request);
    request->prefilled = true;
}
