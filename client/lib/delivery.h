/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_DELIVERY_H
#define CLIENT_LIB_DELIVERY_H

/* What the program gets: pieces of a request's output in order, and exactly one end, with which the request
 * is freed. Where a function returns a bool, true says that this happened, and the request is not to be
 * touched again. */

#include "client/lib/state.h"

/* The pool has accepted it: tells that once, to a caller who asked for it. */
void delivery_admitted(struct quern *client, struct request *request, const struct quotas *quotas);

/* Tells how much of the prompt is read, if the attempt is the newest and nothing of the output was delivered.
 */
void delivery_progress(struct quern *client, struct request *request, const struct message *message);

/* Ends it as an error message of the pool says. The request is freed. */
void delivery_refuse(struct quern *client, struct request *request, const struct message *message);

/* Delivers what is new of a frame that begins at or before what was delivered. */
bool delivery_frame(struct quern *client, struct request *request, const struct frame *frame);

/* Takes note of how the request ended, for delivery_close. */
void delivery_set_end(struct request *request, const struct ending *ending);

/* Delivers the end that was noted. The request is freed. */
void delivery_close(struct quern *client, struct request *request);

/* Ends the request with an error that the broker said, or that we found: its name in the protocol, and what a
 * person should read. The request is freed. */
void delivery_fail(struct quern *client, struct request *request, const char *error, struct bytes text,
                   uint32_t retry_after_ms);

#endif
