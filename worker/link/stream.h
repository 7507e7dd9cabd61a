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
    char endpoint[LISTENER_ENDPOINT_MAX]; /* where it is reached */
    struct window window;
    int n_everything;                 /* subscriptions to everything */
    struct id128 marks[STREAM_MARKS]; /* the subscriptions seen last that name 16 bytes or more: a ring */
    uint32_t n_marks;
};

/* Publishes there. 0 or -errno with the endpoint. Close takes a stream of zeroes. */
int stream_open(struct stream *stream, void *zmq, const struct listener *listener, struct error *err);
void stream_close(struct stream *stream);

/* Takes in what subscribers said. */
void stream_read(struct stream *stream);

/* Whether someone has subscribed to everything, or to a prefix of `mark`. */
bool stream_is_heard(const struct stream *stream, const struct id128 *mark);

/* Whether anybody hears everything. */
static inline bool stream_has_listener(const struct stream *stream)
{
    return stream->n_everything > 0;
}

/* Numbers, keeps and sends a frame. 0, or what window_add says. */
int stream_publish(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES], struct message *frame);

/* Sends a message that is no frame, and is not kept: it may be lost. */
void stream_tell(struct stream *stream, const uint8_t topic[PROTO_TOPIC_BYTES],
                 const struct message *message);

/* Sends every kept frame from wseq on once more. */
void stream_resend(struct stream *stream, uint64_t wseq);

#endif
