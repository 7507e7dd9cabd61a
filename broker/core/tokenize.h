/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_TOKENIZE_H
#define BROKER_CORE_TOKENIZE_H

/* Questions for a tokenizer (tokenize, detokenize): passed to a worker with our ref; the answer goes to the
 * client with the client's ref. If the client has left by then, the answer is dropped. */

#include "broker/core/broker.h"

/* A client asks, with the message `raw`; a rejection is sent at once. */
void tokenize_ask(struct broker *broker, struct session *session, const struct message *message,
                  struct bytes raw);

/* Sends waiting large questions to workers that are free for them. Call it every turn. */
void tokenize_dispatch(struct broker *broker);

/* The worker answered, with ids, a text, or an error. */
void tokenize_answered(struct broker *broker, const struct worker *worker, const struct message *message);
void tokenize_refused(struct broker *broker, const struct worker *worker, uint64_t ref,
                      enum proto_error error, const char *text);

/* The worker's process is gone: ends the questions that it was asked. */
void tokenize_worker_lost(struct broker *broker, const struct worker *worker);

/* Ends questions that were not answered in time. Call it periodically. */
void tokenize_expire(struct broker *broker);

#endif
