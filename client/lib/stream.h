/* SPDX-License-Identifier: MIT */
#ifndef CLIENT_LIB_STREAM_H
#define CLIENT_LIB_STREAM_H

/* The frames of one request, in whatever order they come. A call may deliver the end: the request is freed
 * then, and is not to be touched after it. */

#include "client/lib/state.h"

/* A frame from the stream; `data` is what it was decoded from, to be kept while there is a gap before it. */
void stream_frame(struct quern *client, struct request *request, const struct frame *frame, const void *data,
                  size_t len);

/* A page of the replay that was asked for. */
void stream_page(struct quern *client, struct request *request, const struct message *message);

/* Asks for what comes after what was delivered; live frames are held from now on, until it has come. */
void stream_ask(struct quern *client, struct request *request);

/* Asks once more, where what was asked for has not come after `page_wait_ns`. */
void stream_ask_again(struct quern *client, struct request *request);

#endif
