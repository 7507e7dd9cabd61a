/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_DELIVERY_H
#define CLIENT_LIB_REQUESTS_DELIVERY_H

/* Callbacks to the program: pieces of a request's output in order, and exactly one end, after which the
 * request is freed. If a function returns true, that has happened, and the request must not be used again. */

#include "client/lib/core/state.h"

/* The pool has accepted it: tells that once, to a caller who asked for it. */
void delivery_admitted(struct quern *client, struct request *request, const struct quotas *quotas);

/* Tells how much of the prompt is read, if the attempt is the newest and nothing of the output was delivered.
 */
void delivery_progress(struct quern *client, struct request *request, const struct message *message);

/* Ends it as an error message of the pool says. The request is freed. */
void delivery_refuse(struct quern *client, struct request *request, const struct message *message);

/* Delivers the new part of a frame that begins at or before the end of what was delivered. */
bool delivery_frame(struct quern *client, struct request *request, const struct frame *frame);

/* Takes note of how the request ended, for delivery_close. */
void delivery_set_end(struct request *request, const struct ending *ending);

/* Delivers the end that was noted. The request is freed. */
void delivery_close(struct quern *client, struct request *request);

/* Ends the request with an error from the broker or our own: its name in the protocol, and a text for
 * people. Frees the request. */
void delivery_fail(struct quern *client, struct request *request, const char *error, struct bytes text,
                   uint32_t retry_after_ms);

#endif
