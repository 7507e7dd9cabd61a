/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_INCOMING_H
#define CLIENT_LIB_INCOMING_H

#include "client/lib/core/state.h"

/* Reads and handles messages from both sockets, without waiting: at most 4,096, in rounds of 64 of each, none
 * of which begins after 20 ms. */
void incoming_take(struct quern *client);

/* Handles one message from the DEALER. */
void incoming_message(struct quern *client, const struct message *message);

#endif
