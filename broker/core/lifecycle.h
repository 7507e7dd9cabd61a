/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_LIFECYCLE_H
#define BROKER_CORE_LIFECYCLE_H

/* The life of a request, from admission until it is forgotten. Every change of a request's state is made
 * here, wherever its cause was noticed. */

#include "broker/core/broker.h"
#include "common/error.h"

/* Why a request with `embed` is rejected if no worker supports embeddings. */
#define LIFECYCLE_NO_EMBEDDINGS "embed: no worker of this pool can compute embeddings: the device cannot"
/* The same for a request with `document`. */
#define LIFECYCLE_NO_RANKING                                                                                 \
    "document: no worker of this pool ranks pairs of texts: its file has no pooling_type rank"

/* Assigns queued requests to workers while there are both. */
void lifecycle_dispatch(struct broker *broker);

/* A running request has used so much of its credit that it asks for more. */
void lifecycle_grow(struct broker *broker, struct request *request);

/* Asks again for requests that wait for room in the journal. Call it every turn. */
void lifecycle_grow_waiting(struct broker *broker);

/* A request is back in the queue: if it has generated nothing, it gives its credit back and waits like one
 * that has not started. */
void lifecycle_stay(struct broker *broker, struct request *request);

/* Ends a request that has not ended: at once while it is queued, otherwise through its worker. */
void lifecycle_cancel(struct broker *broker, struct request *request);

/* The frame that holds the end of the request is in the journal. */
void lifecycle_end(struct broker *broker, struct request *request, const struct ending *ending);

/* Tokens were generated or processed for the request: charges them to its client's key, if it has one. */
void lifecycle_charge(struct broker *broker, const struct request *request, uint64_t tokens);

/* The request ended under an earlier broker, at its ended_ns; `taken`: its client has confirmed it. */
void lifecycle_had_ended(struct broker *broker, struct request *request, const struct ending *ending,
                         bool taken);

/* A worker of an earlier broker reports: assigns its requests to it again. */
void lifecycle_adopted(struct broker *broker, struct worker *worker);

/* Ends a request without its worker: the broker makes the last frame, which follows those in the journal. */
void lifecycle_end_here(struct broker *broker, struct request *request, const struct ending *ending);
void lifecycle_fail(struct broker *broker, struct request *request, enum proto_error error,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The worker reports that a request is finished: ends it if all its frames have arrived, else remembers the
 * report. */
void lifecycle_finished(struct broker *broker, struct worker *worker, const struct message *message,
                        struct bytes raw);

/* More frames of this worker arrived: ends requests that waited for them. */
void lifecycle_settle_finished(struct broker *broker, struct worker *worker);

/* A worker that was told to end gives a request back: it waits for another worker to continue it, or ends if
 * it was cancelled. This never counts as a loss. */
void lifecycle_returned(struct broker *broker, struct request *request);

/* The worker's process is gone: its requests wait for another worker, which continues them. A request that
 * has lost two workers before ends with worker_lost. If the worker `left` (it was told to end), requests that
 * it had not begun do not count this as a loss. */
void lifecycle_worker_lost(struct broker *broker, struct worker *worker, bool left, const char *reason);

/* Makes ending workers give back their requests once another worker can continue them, or when their time is
 * up. Call it periodically. */
void lifecycle_relieve(struct broker *broker);

/* Ends queued requests whose deadline has passed. Call it every turn. */
void lifecycle_expire(struct broker *broker);

/* Ends requests that their worker has not ended after a cancel or a deadline. Call it periodically. */
void lifecycle_end_overdue(struct broker *broker);

/* Ends all unfinished requests with `draining` and the reason: the broker is leaving. */
void lifecycle_end_all(struct broker *broker, const char *reason);

/* The client has the last frame of this request of its session. */
void lifecycle_taken(struct broker *broker, const struct session *session, struct id128 id);

/* Whether a connected client has not yet confirmed all of its ended requests. */
bool lifecycle_is_awaited(const struct broker *broker);

/* Forgets requests that ended long ago. Call it periodically. */
void lifecycle_forget(struct broker *broker);

#endif
