/* SPDX-License-Identifier: MIT */
#ifndef WORKER_LINK_STREAM_H
#define WORKER_LINK_STREAM_H

/* The worker's stream: the XPUB for frames, its window, and its subscribers. */

#include <stdbool.h>
#include <stdint.h>

#include "common/error.h"
#include "common/system/socket_news.h"
#include "proto/message.h"
#include "worker/link/listener.h"
#include "worker/link/window.h"

#define STREAM_MARKS 16

struct stream {
    void *socket;
    struct socket_news news;
    char endpoint[LISTENER_ENDPOINT_MAX]; /* its address */
    struct window window;
    int n_everything;                 /* subscriptions to everything */
    struct id128 marks[STREAM_MARKS]; /* a ring of the last subscriptions of 16 bytes or more */
    uint32_t n_marks;
};

/* Publishes at the listener. 0 or -errno with the endpoint. A zeroed stream may be closed. */
int stream_open(struct stream *stream, void *zmq, const struct listener *listener, struct error *err);
void stream_close(struct stream *stream);

/* Processes messages of subscribers. */
void stream_read(struct stream *stream);

/* Whether a subscriber has subscribed to everything, or to a prefix of `mark`. */
bool stream_is_heard(const struct stream *stream, const struct id128 *mark);

/* Whether a subscriber receives everything. */
static inline bool stream_has_listener(const struct stream *stream)
{
    return stream->n_everything > 0;
}

/* Numbers, keeps and sends a frame. Returns as window_add. */
int stream_publish(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES], struct message *frame);

/* Sends a message that is not a frame and is not kept, so it may be lost. */
void stream_tell(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES],
                 const struct message *message);

/* Sends all kept frames from wseq on again. */
void stream_resend(struct stream *stream, uint64_t wseq);

#endif
