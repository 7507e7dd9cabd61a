/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_REQUESTS_STREAM_H
#define CLIENT_LIB_REQUESTS_STREAM_H

/* The frames of one request, in any order of arrival. A call may deliver the end: the request is then freed,
 * and must not be used again. */

#include "client/lib/core/state.h"

/* A frame from the stream; `data` is its encoding, which is kept while there is a gap before it. */
void stream_frame(struct quern *client, struct request *request, const struct frame *frame, const void *data,
                  size_t len);

/* A page of a requested replay. */
void stream_page(struct quern *client, struct request *request, const struct message *message);

/* Requests a replay from the first undelivered id on; live frames are held until it has arrived. */
void stream_ask(struct quern *client, struct request *request);

/* Requests the replay again if it has not arrived within `page_wait_ns`. */
void stream_ask_again(struct quern *client, struct request *request);

#endif
