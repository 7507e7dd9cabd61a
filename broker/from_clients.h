/* SPDX-License-Identifier: MIT */
#ifndef BROKER_FROM_CLIENTS_H
#define BROKER_FROM_CLIENTS_H

/* Clients' messages on the client link, and their subscriptions to the stream. */

#include "broker/core/broker.h"

/* Takes up to BROKER_BATCH messages and BROKER_BATCH_BYTES; true: there may be more. */
bool from_clients_drain(struct broker *broker);

/* Takes messages from the stream: new subscriptions, and ended ones, which show that a session leaves. */
bool from_clients_drain_stream(struct broker *broker);

#endif
