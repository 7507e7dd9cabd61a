/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_TOKENIZE_H
#define BROKER_CORE_TOKENIZE_H

/* Questions for a tokenizer (tokenize, detokenize): passed to a worker under our ref, answered to the client
 * under its own. If the client has left meanwhile, the answer is dropped. */

#include "broker/core/broker.h"

/* A client asks, with the message `raw`; a refusal is sent at once. */
void tokenize_ask(struct broker *broker, struct session *session, const struct message *message,
                  struct bytes raw);

/* Puts large questions that wait to workers that have time for them. Every turn. */
void tokenize_dispatch(struct broker *broker);

/* The worker answered, with ids, a text, or an error. */
void tokenize_answered(struct broker *broker, const struct worker *worker, const struct message *message);
void tokenize_refused(struct broker *broker, const struct worker *worker, uint64_t ref,
                      enum proto_error error, const char *text);

/* The worker's process is gone: so are the answers to what it was asked. */
void tokenize_worker_lost(struct broker *broker, const struct worker *worker);

/* Ends what was not answered in time. Now and then. */
void tokenize_expire(struct broker *broker);

#endif
