/* SPDX-License-Identifier: MIT */
#ifndef BROKER_STREAM_H
#define BROKER_STREAM_H

/* The token stream to clients: one XPUB, whose topics are session ‖ request id.
 *
 * A subscription is taken only if it is a whole session (16 bytes) or one request of it (32 bytes): nobody
 * can listen to sessions he cannot name. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "broker/request.h"
#include "broker/session.h"
#include "common/error.h"
#include "proto/message.h"

#define STREAM_MAX_LISTENED 65536 /* sessions with subscriptions */

struct stream_listened; /* a session that someone subscribed to */

struct stream {
    void *socket;
    uint64_t seed;
    struct stream_listened *listened;
    size_t n_listened;
};

/* Makes the socket; the caller binds it. -errno. */
int stream_init(struct stream *stream, void *context, uint64_t seed, struct error *err);
void stream_deinit(struct stream *stream);

/* Takes one message from the socket. False when there is none. *ret_left: the session whose last subscription
 * went, when *ret_has_left. */
bool stream_take(struct stream *stream, bool *ret_has_left, struct id128 *ret_left);

/* When the table fills up: forgets those that are no open session. They are served on, if they are there at
 * all; that such a one leaves is then seen by its silence only. */
void stream_make_room(struct stream *stream, const struct sessions *sessions);

/* Sends to whoever listens; slow listeners lose it. The messages are consumed. */
void stream_forward(struct stream *stream, zmq_msg_t *topic, zmq_msg_t *payload);

/* Sends a copy. `topic_len` 16: the whole session's; 32: a request's. */
void stream_publish(struct stream *stream, const void *topic, size_t topic_len, const void *payload,
                    size_t len);

#endif
