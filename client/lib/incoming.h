/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_INCOMING_H
#define CLIENT_LIB_INCOMING_H

#include "client/lib/core/state.h"

/* Reads and handles messages from both sockets, up to a bound, without waiting. */
void incoming_take(struct quern *client);

/* Handles one message from the DEALER. */
void incoming_message(struct quern *client, const struct message *message);

#endif
