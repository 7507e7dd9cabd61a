/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_INSTRUMENTS_H
#define BROKER_CORE_INSTRUMENTS_H

/* Questions to one worker about itself (trace, profile, trim): passed to it with our ref; the answer goes to
 * the client with the client's ref. A client in the run directory sees steps and all requests. Any other
 * client sees no records of steps, sees only its own requests, and cannot slow steps down by a profile or a
 * trim. `next` and `lost` count all records, so every client learns how many steps and marks there were; the
 * counters of a status tell this too. */

#include "broker/core/broker.h"

/* A client asks; a rejection is sent at once. */
void instruments_ask(struct broker *broker, struct session *session, const struct message *message);

/* The worker answered. Its refusals are passed on by tokenize_refused. */
void instruments_answered(struct broker *broker, const struct worker *worker, const struct message *message);

#endif
