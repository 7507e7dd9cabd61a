/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_INCOMING_H
#define CLIENT_LIB_INCOMING_H

#include "client/lib/core/state.h"

/* Reads and handles messages of both sockets, up to a bound, without waiting. */
void incoming_take(struct quern *client);

/* The effect of one message of the DEALER. */
void incoming_message(struct quern *client, const struct message *message);

#endif
