/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_REQUEST_H
#define CLIENT_LIB_REQUESTS_REQUEST_H

/* The states of requests: what happens to one when the program, the broker, the session or the clock says
 * something. What concerns a request that is not here, or no longer, does nothing. */

#include "client/lib/core/state.h"

/* From the broker, by message. Those that may deliver an end free the request. */
void request_accepted(struct quern *client, const struct message *message);
void request_attached(struct quern *client, const struct message *message);
void request_cancelled(struct quern *client, const struct message *message);
void request_refused(struct quern *client, const struct message *message); /* an error with an id */
void request_progress(struct quern *client, const struct message *message);
void request_page(struct quern *client, const struct message *message);
void request_end_told(struct quern *client, const struct message *message);
/* `data` is what the frame was decoded from. */
void request_frame(struct quern *client, const struct frame *frame, const void *data, size_t len);

/* From the session: it is open, for the first time or again. Requests are sent, or attached again. */
void requests_opened(struct quern *client, bool again);
/* From the session: it is broken. Every request ends with the error. */
void requests_fail_all(struct quern *client, const char *error, const char *text);

/* From the clock: says again what got no answer, asks where it is silent. */
void requests_timers(struct quern *client);

#endif
