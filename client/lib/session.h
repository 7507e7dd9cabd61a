/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_SESSION_H
#define CLIENT_LIB_SESSION_H

/* The states of the session, which tell its requests when they may speak. */

#include "client/lib/core/state.h"

/* Says hello. */
void session_start(struct quern *client);

/* From the broker. */
void session_hello_ok(struct quern *client, const struct message *message);
void session_welcome(struct quern *client, uint64_t nonce); /* on the stream */
void session_lost(struct quern *client);                    /* it knows no session of ours */
void session_refused(struct quern *client,
                     const struct message *message); /* an error that is about nothing else */

/* From the clock: says hello, join and ping again when it is time; gives up when patience is at its end. */
void session_timers(struct quern *client);

void session_forget_models(struct quern *client);

#endif
