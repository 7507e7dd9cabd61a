/* SPDX-License-Identifier: MIT */
#ifndef BROKER_LINKS_STREAM_H
#define BROKER_LINKS_STREAM_H

/* The token stream to clients. Topics are session ‖ request id. The stream is spread over several XPUB
 * sockets (shards) behind one address, because libzmq goes through all subscriptions of a socket for each
 * connection that leaves it: 8.3 s when 2,000 left at once.
 *
 * A subscription is accepted only if it names a whole session (16 bytes) or one of its requests (32 bytes),
 * so nobody can listen to a session without knowing its identity. */

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
    int fd; /* an epoll of all shards: readable if one of them may have a message */
    /* A bit for each shard that may have a message although `fd` is not readable: do not wait. */
    uint32_t ready;
    bool unknown; /* some subscriptions in force were forgotten here (stream_make_room) */
    uint64_t seed;
    const struct client_keys *keys;    /* of clients on TCP; NULL: they need none */
    const struct allowance *allowance; /* of each key */
    uint64_t refused, said;            /* subscriptions beyond their key's limit; of those, logged ones */
    uint64_t said_ns;
    char refused_of[CLIENT_KEY_NAME]; /* the client of the last one */
    struct stream_listened *listened;
    size_t n_listened;
};

/* The number of shards for up to this many connections. */
unsigned stream_shards_for(uint32_t connections);

/* Creates the sockets, 1 … STREAM_MAX_SHARDS; the caller binds them all to the same address. 0 or -errno;
 * call stream_deinit even after a failure. */
int stream_init(struct stream *stream, void *context, unsigned n_shards, uint64_t seed, struct error *err);
void stream_deinit(struct stream *stream);

/* From now on clients on TCP need one of these keys; the subscriptions of a key are counted together. */
void stream_guard(struct stream *stream, const struct client_keys *keys, const struct allowance *allowance);

/* `fd` is readable: some shards may have messages. */
void stream_woken(struct stream *stream);

/* Takes one message from a shard; false: there is none. *ret_has_left: the last subscription of the session
 * *ret_left has ended. */
bool stream_take(struct stream *stream, bool *ret_has_left, struct id128 *ret_left);

/* Whether the session, or one of its requests, has a subscription. */
bool stream_has_listener(const struct stream *stream, const struct id128 *session);

/* Returns false, with the reason, if the session has no subscription because its key has reached its
 * limit. */
bool stream_may_be_heard(const struct stream *stream, const struct session *session, struct error *reason);

/* Logs how many subscriptions were rejected, at most once a second. */
void stream_report(struct stream *stream, uint64_t now);

/* When the table is nearly full: forgets the entries of sessions that are not open. Their subscriptions stay
 * in force, but the end of the last one is no longer noticed, so such a session ends only by its silence. */
void stream_make_room(struct stream *stream, const struct sessions *sessions);

/* Sends to all listeners; a listener whose queue is full misses it. The messages are consumed. */
void stream_forward(struct stream *stream, zmq_msg_t *topic, zmq_msg_t *payload);

/* Sends a copy. `topic_len` is 16 for a whole session, 32 for a request. */
void stream_publish(struct stream *stream, const void *topic, size_t topic_len, const void *payload,
                    size_t len);

#endif
