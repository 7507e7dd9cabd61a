/* SPDX-License-Identifier: MIT */
#ifndef BROKER_FROM_CLIENTS_H
#define BROKER_FROM_CLIENTS_H

/* Messages of clients on the client link, and subscriptions of the stream. */

#include "broker/core/broker.h"

/* Takes up to BROKER_BATCH messages and BROKER_BATCH_BYTES; true when there may be more. */
bool from_clients_drain(struct broker *broker);

/* Takes what happened on the stream's side: subscriptions, and sessions that left by ending theirs. */
bool from_clients_drain_stream(struct broker *broker);

#endif
