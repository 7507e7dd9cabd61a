/* SPDX-License-Identifier: MIT */
/* The broker's own books about a worker.
 *
 * Load is counted here, when a request is assigned and when its end has been heard, and never taken from what
 * a worker reports: a report that crosses an assignment on its way would hide it, and the next request would
 * go to the same worker. */

#include "broker/worker.h"

#include <utlist.h>

bool worker_is_serving(const struct worker *worker)
{
    return worker->state == WORKER_READY && worker->peer.len > 0;
}

uint32_t worker_capacity(const struct worker *worker)
{
    return worker->slots + worker->slots / 8 + 1;
}

void worker_take(struct worker *worker, struct request *request)
{
    request->worker = worker;
    DL_APPEND2(worker->requests, request, worker_prev, worker_next);
    worker->n_requests++;
    worker->load += request->cost;
}

void worker_drop(struct worker *worker, struct request *request)
{
    DL_DELETE2(worker->requests, request, worker_prev, worker_next);
    request->worker = NULL;
    worker->n_requests--;
    worker->n_finished -= request->finished;
    request->finished = false;
    worker->load -= request->cost;
}
