/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LIFECYCLE_H
#define BROKER_LIFECYCLE_H

/* The life of a request, from admission to the day it is forgotten. Every change of a request's state is made
 * here, whoever heard of it first. */

#include "broker/broker.h"

/* A generate from an open session. PROTO_OK: *ret_request is the new or the known request, *ret_again says
 * which; otherwise the error with its text in `err`, and *ret_retry_ms for PROTO_OVERLOADED.
 * `body` is the whole message, which `generation` borrows from. */
enum proto_error lifecycle_admit(struct broker *broker, struct session *session, struct id128 id,
                                 const struct generation *generation, struct bytes body,
                                 struct request **ret_request, bool *ret_again, uint32_t *ret_retry_ms,
                                 struct error *err);

/* Gives queued requests to workers as long as both last. */
void lifecycle_dispatch(struct broker *broker);

/* Ends a request that has not ended: at once while it is queued, otherwise through its worker. */
void lifecycle_cancel(struct broker *broker, struct request *request);

/* The frame that holds the end of the request is in the journal. */
void lifecycle_ended(struct broker *broker, struct request *request, const struct ending *ending);

/* Ends a request here, with a last frame that the broker makes: after what the journal has. */
void lifecycle_end_here(struct broker *broker, struct request *request, const struct ending *ending);
void lifecycle_fail(struct broker *broker, struct request *request, enum proto_error error,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The worker said that a request is finished: ends it if its frames are all here, or remembers. */
void lifecycle_finished(struct broker *broker, struct worker *worker, const struct message *message,
                        struct bytes raw);

/* More frames of this worker are here: ends what waited for them. */
void lifecycle_settle_finished(struct broker *broker, struct worker *worker);

/* The worker gives a request back that it has made nothing of, because it was told to end: the request waits
 * for another worker. */
void lifecycle_returned(struct broker *broker, struct request *request);

/* The worker's process is gone: its requests end with worker_lost. When it left (it had been told to end),
 * those that it had not begun wait for another worker. */
void lifecycle_worker_lost(struct broker *broker, struct worker *worker, bool left, const char *reason);

/* A session closes: each of its requests is cancelled or goes on alone, as it asked. */
void lifecycle_abandon(struct broker *broker, struct session *session);

/* A session opened: it gets back what it had left running. */
void lifecycle_adopt(struct broker *broker, struct session *session);

/* Binds a request to another session. -EEXIST when that has one of this id. */
int lifecycle_attach(struct broker *broker, struct request *request, struct session *session);

/* Ends what has waited in the queue beyond its deadline. Every turn. */
void lifecycle_expire(struct broker *broker);

/* The broker stood still for so many nanoseconds, in which nobody could come back for an abandoned request.
 */
void lifecycle_forgive(struct broker *broker, uint64_t late);

/* What else time brings, now and then: ends of abandonment, ends of retention. */
void lifecycle_tick(struct broker *broker);

/* Requests that have not ended. */
size_t lifecycle_alive(const struct broker *broker);

#endif
