/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_SESSION_H
#define CLIENT_LIB_SESSION_H

/* The states of the session, which determine when requests may be sent. */

#include "client/lib/core/state.h"

/* Sends hello. */
void session_start(struct quern *client);

/* Messages from the broker. */
void session_hello_ok(struct quern *client, const struct message *message);
void session_welcome(struct quern *client, uint64_t nonce); /* on the stream */
void session_lost(struct quern *client);                    /* the broker does not know the session */
void session_refused(struct quern *client,
                     const struct message *message); /* an error about neither a request nor a question */

/* The broker is alive; takes its load, if that was requested. */
void session_pong(struct quern *client, const struct message *message);

/* Timers: repeats hello, join and ping when due; gives up after the patience. */
void session_timers(struct quern *client);

void session_forget_models(struct quern *client);

#endif
