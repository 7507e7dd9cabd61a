/* SPDX-License-Identifier: MIT */
#ifndef BROKER_BACKEND_H
#define BROKER_BACKEND_H

/* The ROUTER to the workers: registrations, heartbeats, ends; assignments, cancels, acknowledgements. */

#include "broker/broker.h"

#define BACKEND_HEARTBEAT_MS 250

/* Takes up to BROKER_BATCH messages; true when there may be more. */
bool backend_drain(struct broker *broker);

/* Sends, or queues in the worker's outbox. False when the worker cannot be reached; it is then killed, and
 * gets nothing more. */
bool backend_send(struct broker *broker, struct worker *worker, const struct message *message);
bool backend_send_scratch(struct broker *broker, struct worker *worker); /* what broker->scratch holds */

/* Sends what waits in the outboxes. */
void backend_flush(struct broker *broker);

/* A process was started on this place, or ended; called by the supervisor. */
void backend_worker_started(struct broker *broker, uint32_t index);
void backend_worker_died(struct broker *broker, uint32_t index);

/* Expires tokenize questions that nobody answered. */
void backend_tick(struct broker *broker);

#endif
