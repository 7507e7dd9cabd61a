/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_STREAM_H
#define BROKER_LINKS_STREAM_H

/* The token stream to clients, whose topics are session ‖ request id. It is spread over several XPUB sockets
 * behind one address, shards, because libzmq looks through all subscriptions of a socket for each connection
 * that leaves it.
 *
 * A subscription is accepted only if it names a whole session (16 bytes) or one of its requests (32 bytes):
 * without a session's identity no one can listen to it. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zmq.h>

#include "broker/settings/allowance.h"
#include "broker/books/client_keys.h"
#include "broker/books/request.h"
#include "broker/books/session.h"
#include "common/error.h"
#include "proto/message.h"

#define STREAM_MAX_LISTENED 65536 /* sessions with subscriptions */

/* A shard takes three descriptors: two listeners, and libzmq's own. */
#define STREAM_MAX_SHARDS 32

struct stream_listened; /* a session that someone subscribed to */

struct stream {
    void *shards[STREAM_MAX_SHARDS]; /* [n_shards] */
    unsigned n_shards;
    int fd;         /* an epoll of all shards, which is readable when one of them may have something */
    uint32_t ready; /* shards that may have something whatever `fd` says, a bit each: do not wait then */
    bool unknown;   /* subscriptions are in force that were forgotten here (stream_make_room) */
    uint64_t seed;
    const struct client_keys *keys;    /* of clients on TCP; NULL: they need none */
    const struct allowance *allowance; /* of each of them */
    uint64_t refused, said; /* subscriptions beyond what their key may have; of those, told in the log */
    uint64_t said_ns;
    char refused_of[CLIENT_KEY_NAME]; /* the client whose was the last */
    struct stream_listened *listened;
    size_t n_listened;
};

/* How many shards there should be where so many connections may be made. */
unsigned stream_shards_for(uint32_t connections);

/* Makes the sockets, 1 … STREAM_MAX_SHARDS; the caller binds them all to the same address. On failure
 * stream_deinit is still to be called. -errno. */
int stream_init(struct stream *stream, void *context, unsigned n_shards, uint64_t seed, struct error *err);
void stream_deinit(struct stream *stream);

/* From now on clients of TCP need one of these keys, whose subscriptions are counted together. */
void stream_guard(struct stream *stream, const struct client_keys *keys, const struct allowance *allowance);

/* `fd` is readable: some shards may have something. */
void stream_woken(struct stream *stream);

/* Takes one message from a shard. False when there is none. *ret_has_left: the last subscription of a
 * session ended, of *ret_left. */
bool stream_take(struct stream *stream, bool *ret_has_left, struct id128 *ret_left);

/* Whether someone is subscribed to the session, or to a request of it. */
bool stream_has_listener(const struct stream *stream, const struct id128 *session);

/* False with the reason: it has no subscription because its key has reached its limit. */
bool stream_may_be_heard(const struct stream *stream, const struct session *session, struct error *reason);

/* Says in the log how many subscriptions were refused, once a second at most. */
void stream_report(struct stream *stream, uint64_t now);

/* When the table fills up: forgets the entries of sessions that are not open. Their subscriptions stay in
 * force; only the end of the last one is no longer noticed, so such a session leaves by its silence. */
void stream_make_room(struct stream *stream, const struct sessions *sessions);

/* Sends to all listeners; a listener whose queue is full misses it. The messages are consumed. */
void stream_forward(struct stream *stream, zmq_msg_t *topic, zmq_msg_t *payload);

/* Sends a copy. `topic_len` 16: the whole session's; 32: a request's. */
void stream_publish(struct stream *stream, const void *topic, size_t topic_len, const void *payload,
                    size_t len);

#endif
