/* SPDX-License-Identifier: MIT */
#ifndef BROKER_CORE_PUBLISH_H
#define BROKER_CORE_PUBLISH_H

/* What the gateways of a fleet are told, so that each places requests as if all requests came through it: the
 * pool's load, with the pongs that gateways request ten times a second, and its book of prefixes, about once
 * a second.
 *
 * Both are answers. The asking gateway says what it already knows, so the broker keeps no state per gateway,
 * a slow gateway is told less often, and without gateways nothing is sent. Only the gateways' reports about
 * their tenants are kept, for one another (tellings.h). */

#include "broker/core/broker.h"

/* Reads the secret of the fleet, and begins to number changes. -errno with a reason. */
int publish_init(struct broker *broker, struct error *err);

/* Fills the pool's load into a pong to this session. The session's own load is counted at most 20 times a
 * second, however often it asks. */
void publish_load(const struct broker *broker, struct session *session, struct message *pong);

/* Keeps the session's report about its tenants, and answers with what they use through other sessions. */
void publish_tenants(struct broker *broker, struct session *session, const struct message *message);

/* Answers a request for prefixes. */
void publish_prefixes(struct broker *broker, struct session *session, const struct message *message);

#endif
