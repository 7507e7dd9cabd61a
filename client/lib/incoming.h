/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_INCOMING_H
#define CLIENT_LIB_INCOMING_H

#include "client/lib/state.h"

/* Takes what both sockets have, up to a bound, and lets it have its effect. Waits for nothing. */
void incoming_take(struct quern *client);

/* The effect of one message of the DEALER. */
void incoming_message(struct quern *client, const struct message *message);

#endif
