/* SPDX-License-Identifier: MIT */
#ifndef BROKER_FRONTEND_H
#define BROKER_FRONTEND_H

/* The ROUTER to the clients: sessions, requests, verdicts. */

#include "broker/broker.h"

/* Takes up to BROKER_BATCH messages; true when there may be more. */
bool frontend_drain(struct broker *broker);

/* Takes what happened on the stream's side: subscriptions, and sessions that left by ending theirs. */
bool frontend_drain_stream(struct broker *broker);

/* Sends what waits in the outboxes. */
void frontend_flush(struct broker *broker);

/* Renews every lease: the broker itself stood still. */
void frontend_forgive(struct broker *broker);

/* Closes sessions whose lease ran out, and those found to be in trouble. */
void frontend_tick(struct broker *broker);

/* Tells a session the end of its request. */
void frontend_send_end(struct broker *broker, struct session *session, const struct request *request);

/* A worker answered a tokenize, or nobody did. */
void frontend_tokenized(struct broker *broker, struct worker *worker, const struct message *message);
void frontend_tokenize_failed(struct broker *broker, const struct tokenize_entry *entry,
                              enum proto_error error, const char *text);

#endif
