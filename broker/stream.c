/* SPDX-License-Identifier: MIT */
/* The XPUB and who listens on it.
 *
 * In manual mode the socket hands us each (un)subscription and acts on none by itself; what we accept we set
 * for the pipe it came from. When a connection ends, the socket reports an unsubscription for each topic that
 * the peer had asked for, accepted or not. Subscriptions are counted by session: when the last one goes, the
 * client has left. A subscription may come before its session says hello, as after a restart of the broker,
 * when sockets reconnect by themselves; it is accepted like any other, because naming 16 random bytes is the
 * right to listen.
 *
 * A peer that subscribes twice, as none of ours does, is reported to leave only once, so counts may stay
 * behind for ever. They are swept before the table is full of them, or nobody could subscribe any more.
 *
 * The send high-water mark bounds what a slow listener can hold; beyond it the socket drops for that listener
 * only, and the client repairs the gap with a replay. */

#include "broker/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <uthash.h>

#include "broker/intake.h"
#include "broker/zap.h"
#include "common/hash.h"

/* Frames in flight to one listener. At some 150 bytes a frame a paused client holds about a megabyte. */
#define STREAM_HIGH_WATER 8192

struct stream_listened {
    struct id128 session;
    uint64_t subscriptions;
    UT_hash_handle hh;
};

int stream_init(struct stream *stream, void *context, uint64_t seed, struct error *err)
{
    *stream = (struct stream){.seed = seed, .socket = zmq_socket(context, ZMQ_XPUB)};
    if (!stream->socket)
        return error_set(err, -errno, "stream socket: %s", zmq_strerror(errno));
    int manual = 1, mark = STREAM_HIGH_WATER, linger = 200;
    /* A subscription has 33 bytes at most, but the messages of a CURVE handshake count too. */
    int64_t largest = 2048;
    zmq_setsockopt(stream->socket, ZMQ_XPUB_MANUAL, &manual, sizeof manual);
    zmq_setsockopt(stream->socket, ZMQ_SNDHWM, &mark, sizeof mark);
    zmq_setsockopt(stream->socket, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(stream->socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    return 0;
}

void stream_deinit(struct stream *stream)
{
    struct stream_listened *listened, *next;
    HASH_ITER(hh, stream->listened, listened, next)
    {
        HASH_DEL(stream->listened, listened);
        free(listened);
    }
    if (stream->socket)
        zmq_close(stream->socket);
    *stream = (struct stream){0};
}

static struct stream_listened *find(const struct stream *stream, const struct id128 *session, unsigned hash)
{
    struct stream_listened *listened;
    HASH_FIND_BYHASHVALUE(hh, stream->listened, session, sizeof *session, hash, listened);
    return listened;
}

/* 0; -ENOSPC when nobody can be listened for who is not yet; -ENOMEM. */
static int subscribed(struct stream *stream, const struct id128 *session, const uint8_t *topic, size_t len)
{
    unsigned hash = (unsigned)hash64(session, sizeof *session, stream->seed);
    struct stream_listened *listened = find(stream, session, hash);
    if (!listened) {
        if (stream->n_listened >= STREAM_MAX_LISTENED)
            return -ENOSPC;
        if (!(listened = calloc(1, sizeof *listened)))
            return -ENOMEM;
        listened->session = *session;
        HASH_ADD_BYHASHVALUE(hh, stream->listened, session, sizeof *session, hash, listened);
        stream->n_listened++;
    }
    listened->subscriptions++;
    zmq_setsockopt(stream->socket, ZMQ_SUBSCRIBE, topic, len);
    return 0;
}

/* True when it was the session's last. */
static bool unsubscribed(struct stream *stream, const struct id128 *session, const uint8_t *topic, size_t len)
{
    zmq_setsockopt(stream->socket, ZMQ_UNSUBSCRIBE, topic, len);
    struct stream_listened *listened =
        find(stream, session, (unsigned)hash64(session, sizeof *session, stream->seed));
    if (!listened || --listened->subscriptions > 0)
        return false;
    HASH_DEL(stream->listened, listened);
    free(listened);
    stream->n_listened--;
    return true;
}

bool stream_has_listener(const struct stream *stream, const struct id128 *session)
{
    return find(stream, session, (unsigned)hash64(session, sizeof *session, stream->seed)) != NULL;
}

void stream_make_room(struct stream *stream, const struct sessions *sessions)
{
    _Static_assert(SESSION_MAX < STREAM_MAX_LISTENED / 2, "a sweep always makes room");
    struct stream_listened *listened, *next;
    if (stream->n_listened < STREAM_MAX_LISTENED / 2)
        return;
    HASH_ITER(hh, stream->listened, listened, next)
    {
        if (session_find(sessions, &listened->session))
            continue;
        HASH_DEL(stream->listened, listened);
        free(listened);
        stream->n_listened--;
    }
}

/* False: it comes of a client whose key was taken away. */
static bool may_listen(const struct stream *stream, zmq_msg_t *message)
{
    uint32_t key = stream->keys ? zap_key_of(message) : 0;
    int fd = key ? zmq_msg_get(message, ZMQ_SRCFD) : -1;
    if (key && !client_keys_of(stream->keys, key)) {
        intake_unwanted(fd, key);
        return false;
    }
    if (key)
        intake_owned(fd, key);
    return true;
}

/* True when it was the session's last subscription that ended. */
static bool take(struct stream *stream, zmq_msg_t *message, struct id128 *ret_session)
{
    const uint8_t *data = zmq_msg_data(message);
    size_t size = zmq_msg_size(message), len = size - 1;
    /* Other lengths, and user messages (which begin with neither 0 nor 1), are nobody's. */
    if (size < 1 || (len != sizeof(struct id128) && len != PROTO_TOPIC_BYTES) || data[0] > 1)
        return false;
    memcpy(ret_session, data + 1, sizeof *ret_session);
    if (data[0] == 0)
        return unsubscribed(stream, ret_session, data + 1, len);
    /* A listener that is not heard waits for a welcome that never comes. One that connects again says it
     * again. */
    if (may_listen(stream, message) && subscribed(stream, ret_session, data + 1, len) == -ENOMEM)
        intake_again(zmq_msg_get(message, ZMQ_SRCFD));
    return false;
}

bool stream_take(struct stream *stream, bool *ret_has_left, struct id128 *ret_left)
{
    zmq_msg_t message;
    struct id128 session;
    zmq_msg_init(&message);
    bool any = zmq_msg_recv(&message, stream->socket, ZMQ_DONTWAIT) >= 0;
    if (any)
        *ret_has_left = take(stream, &message, &session);
    if (any && *ret_has_left)
        *ret_left = session;
    zmq_msg_close(&message);
    return any;
}

void stream_forward(struct stream *stream, zmq_msg_t *topic, zmq_msg_t *payload)
{
    if (zmq_msg_send(topic, stream->socket, ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_msg_send(payload, stream->socket, ZMQ_DONTWAIT) < 0) {
        zmq_msg_close(topic);
        zmq_msg_close(payload);
    }
}

void stream_publish(struct stream *stream, const void *topic, size_t topic_len, const void *payload,
                    size_t len)
{
    if (zmq_send(stream->socket, topic, topic_len, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
        zmq_send(stream->socket, payload, len, ZMQ_DONTWAIT);
}
