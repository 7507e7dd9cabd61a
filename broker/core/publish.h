/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_PUBLISH_H
#define BROKER_CORE_PUBLISH_H

/* What the gateways of a fleet are told, so that each places requests as if all came through it: the pool's
 * load, with the pongs that they ask for ten times a second, and its book of prefixes, about once a second.
 *
 * Both are answers. Who asks says what it knows already, so nothing is kept here for anybody, a slow gateway
 * is told less often, and without gateways nothing is sent. Only what gateways tell of their tenants is kept,
 * for one another (tellings.h). */

#include "broker/core/broker.h"

/* Reads the secret of the fleet, and begins to number changes. -errno with a reason. */
int publish_init(struct broker *broker, struct error *err);

/* Fills in the load, as a session is told it. Its own is counted at most 20 times a second, however often it
 * is asked for. */
void publish_load(const struct broker *broker, struct session *session, struct message *pong);

/* Keeps what the session's tenants have, and tells what they have through others. */
void publish_tenants(struct broker *broker, struct session *session, const struct message *message);

/* Answers the question for prefixes. */
void publish_prefixes(struct broker *broker, struct session *session, const struct message *message);

#endif
