/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_INSTRUMENTS_H
#define BROKER_CORE_INSTRUMENTS_H

/* Questions to one worker about itself (trace, profile, trim): passed to it with our ref, answered to the
 * client with its own. Who asks sees steps and all requests if it came through the run directory; else no
 * records of steps, and only the requests of its own client, and cannot slow steps down by a profile or a
 * trim. `next` and `lost` count all records, so that everybody learns how many steps and marks there were, as
 * the counters of a status tell too. */

#include "broker/core/broker.h"

/* A client asks; a rejection is sent at once. */
void instruments_ask(struct broker *broker, struct session *session, const struct message *message);

/* The worker answered. What it refuses is passed on by tokenize_refused. */
void instruments_answered(struct broker *broker, const struct worker *worker, const struct message *message);

#endif
