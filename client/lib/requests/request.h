/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_REQUEST_H
#define CLIENT_LIB_REQUESTS_REQUEST_H

/* The states of requests: how a request reacts to the program, the broker, the session and the clock.
 * Messages about unknown requests are ignored. */

#include "client/lib/core/state.h"

/* Messages from the broker. Functions that may deliver an end free the request. */
void request_accepted(struct quern *client, const struct message *message);
void request_attached(struct quern *client, const struct message *message);
void request_cancelled(struct quern *client, const struct message *message);
void request_refused(struct quern *client, const struct message *message); /* an error with an id */
void request_progress(struct quern *client, const struct message *message);
void request_page(struct quern *client, const struct message *message);
void request_end_told(struct quern *client, const struct message *message);
/* `data` is the encoded frame. */
void request_frame(struct quern *client, const struct frame *frame, const void *data, size_t len);

/* The session is open, for the first time or again: sends requests, or attaches them again. */
void requests_opened(struct quern *client, bool again);
/* The session is broken: ends every request with the error. */
void requests_fail_all(struct quern *client, const char *error, const char *text);

/* Timers: repeats unanswered messages, and asks for replays of silent requests. */
void requests_timers(struct quern *client);

#endif
