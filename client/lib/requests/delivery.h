/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_DELIVERY_H
#define CLIENT_LIB_REQUESTS_DELIVERY_H

/* Callbacks to the program: pieces of a request's output in order, and exactly one end, which frees the
 * request. If a function returns true, the end was delivered, and the request must not be used again. */

#include "client/lib/core/state.h"

/* The pool has accepted the request: reports it once, if the caller asked for it. */
void delivery_admitted(struct quern *client, struct request *request, const struct quotas *quotas);

/* Reports how much of the prompt is processed, if the message belongs to the newest attempt and no output was
 * delivered yet. */
void delivery_progress(struct quern *client, struct request *request, const struct message *message);

/* Ends the request with the pool's error message, and frees it. */
void delivery_refuse(struct quern *client, struct request *request, const struct message *message);

/* Delivers the new part of a frame; the frame begins at or before the first undelivered id. */
bool delivery_frame(struct quern *client, struct request *request, const struct frame *frame);

/* Notes how the request ended, for delivery_close. */
void delivery_set_end(struct request *request, const struct ending *ending);

/* Delivers the noted end, and frees the request. */
void delivery_close(struct quern *client, struct request *request);

/* Ends the request with an error of the broker or of libquern: its name in the protocol, and a text for
 * people. Frees the request. */
void delivery_fail(struct quern *client, struct request *request, const char *error, struct bytes text,
                   uint32_t retry_after_ms);

#endif
