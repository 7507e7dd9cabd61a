/* SPDX-License-Identifier: MIT */
/* The shards and who listens on them.
 *
 * When a connection ends, its XPUB walks the whole tree of its subscriptions, node by node, twice: some 4 us
 * for each session that is listened to, which is 20 ms a connection with 5,000 of them. So there are several,
 * and a connection goes to the one with the fewest (intake.h): a client sees one address. A session is
 * published on the shards that it was ever subscribed on, mostly one.
 *
 * An epoll of the sockets' descriptors says which may have something to be read, as zmq_poll would ask each
 * of them with a system call. But sending may take the news off a descriptor unseen, so a shard that was sent
 * to is looked at once more before the loop waits.
 *
 * In manual mode a socket hands us each (un)subscription and acts on none by itself; what we accept we set
 * for the pipe it came from. When a connection ends, the socket reports an unsubscription for each topic that
 * the peer had asked for, accepted or not. Subscriptions are counted by session: when the last one goes, the
 * client has left. A subscription may come before its session says hello, as after a restart of the broker,
 * when sockets reconnect by themselves; it is accepted like any other, because naming 16 random bytes is the
 * right to listen.
 *
 * A socket does not say that the connection of a subscription has ended meanwhile, and then what we set would
 * be for memory that it gave back: it is counted all the same, because its end will be reported, but not set.
 *
 * What a client with a key may have is bounded over all of its connections: one with a subscription too many
 * is closed, as is one that says too much (intake.h). That subscription is not set, but counted too, for its
 * end will be reported; for the moment until then its session passes for one that is listened to. Who ends a
 * subscription has one less, but not where nobody listens to that session: such ends can be made up. Whether
 * it was this connection that had it is not known. So by ending what another of its connections has, a client
 * may have more than it is counted for, and then its bytes are the bound.
 *
 * A peer that subscribes twice, as none of ours does, is reported to leave only once, so counts may stay
 * behind for ever. They are swept before the table is full of them, or nobody could subscribe any more.
 *
 * The send high-water mark bounds what a slow listener can hold; beyond it the socket drops for that listener
 * only, and the client repairs the gap with a replay. */

#include "broker/links/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <uthash.h>

#include "broker/wire/intake.h"
#include "broker/links/zap.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

/* Frames in flight to one listener. At some 150 bytes a frame a paused client holds about a megabyte. */
#define STREAM_HIGH_WATER 8192

/* One walk is then some milliseconds with as many sessions as there may be. */
#define CONNECTIONS_A_SHARD 1024

_Static_assert(STREAM_MAX_SHARDS <= 32, "a bit each");
_Static_assert(ALLOWANCE_MAX_SUBSCRIPTIONS == STREAM_MAX_LISTENED, "one for each");

struct stream_listened {
    struct id128 session;
    uint64_t subscriptions;
    uint32_t shards; /* it was subscribed on; a bit each */
    UT_hash_handle hh;
};

unsigned stream_shards_for(uint32_t connections)
{
    unsigned n = connections / CONNECTIONS_A_SHARD;
    return n < 1 ? 1 : n > STREAM_MAX_SHARDS ? STREAM_MAX_SHARDS : n;
}

static int make_shard(struct stream *stream, void *context, unsigned shard)
{
    void *socket = zmq_socket(context, ZMQ_XPUB);
    if (!socket)
        return -errno;
    stream->shards[shard] = socket;
    int manual = 1, mark = STREAM_HIGH_WATER, linger = 200, fd = -1;
    /* A subscription has 33 bytes at most, but the messages of a CURVE handshake count too. */
    int64_t largest = 2048;
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = shard};
    /* Without the first of them anybody could listen to everybody. */
    if (zmq_setsockopt(socket, ZMQ_XPUB_MANUAL, &manual, sizeof manual) < 0 ||
        zmq_setsockopt(socket, ZMQ_SNDHWM, &mark, sizeof mark) < 0 ||
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest) < 0 ||
        zmq_getsockopt(socket, ZMQ_FD, &fd, &(size_t){sizeof fd}) < 0 ||
        epoll_ctl(stream->fd, EPOLL_CTL_ADD, fd, &event) < 0)
        return -errno;
    stream->ready |= 1u << shard;
    return 0;
}

int stream_init(struct stream *stream, void *context, unsigned n_shards, uint64_t seed, struct error *err)
{
    *stream = (struct stream){.seed = seed, .fd = epoll_create1(EPOLL_CLOEXEC)};
    int r = stream->fd < 0 ? -errno : 0;
    while (r == 0 && stream->n_shards < n_shards)
        r = make_shard(stream, context, stream->n_shards++);
    return r < 0 ? error_set(err, r, "stream socket: %s", zmq_strerror(-r)) : 0;
}

void stream_deinit(struct stream *stream)
{
    struct stream_listened *listened, *next;
    HASH_ITER(hh, stream->listened, listened, next)
    {
        HASH_DEL(stream->listened, listened);
        free(listened);
    }
    for (unsigned i = 0; i < stream->n_shards; i++)
        if (stream->shards[i])
            zmq_close(stream->shards[i]);
    if (stream->n_shards > 0)
        close(stream->fd);
    *stream = (struct stream){.fd = -1};
}

void stream_guard(struct stream *stream, const struct client_keys *keys, const struct allowance *allowance)
{
    stream->keys = keys;
    stream->allowance = allowance;
}

static struct stream_listened *find(const struct stream *stream, const struct id128 *session, unsigned hash)
{
    struct stream_listened *listened;
    HASH_FIND_BYHASHVALUE(hh, stream->listened, session, sizeof *session, hash, listened);
    return listened;
}

/* Where somebody may listen to a session that is not in the table. */
static uint32_t shards_unlisted(const struct stream *stream)
{
    return stream->unknown ? UINT32_MAX >> (32 - stream->n_shards) : 0;
}

/* 0; -ENOSPC when nobody can be listened for who is not yet; -ENOMEM. */
static int subscribed(struct stream *stream, unsigned shard, const struct id128 *session)
{
    unsigned hash = (unsigned)hash64(session, sizeof *session, stream->seed);
    struct stream_listened *listened = find(stream, session, hash);
    if (!listened) {
        if (stream->n_listened >= STREAM_MAX_LISTENED)
            return -ENOSPC;
        if (!(listened = calloc(1, sizeof *listened)))
            return -ENOMEM;
        listened->session = *session;
        listened->shards = shards_unlisted(stream);
        HASH_ADD_BYHASHVALUE(hh, stream->listened, session, sizeof *session, hash, listened);
        stream->n_listened++;
    }
    listened->subscriptions++;
    listened->shards |= 1u << shard;
    return 0;
}

/* True when it was the session's last. */
static bool unsubscribed(struct stream *stream, const struct id128 *session)
{
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
    stream->unknown = true;
    HASH_ITER(hh, stream->listened, listened, next)
    {
        if (session_find(sessions, &listened->session))
            continue;
        HASH_DEL(stream->listened, listened);
        free(listened);
        stream->n_listened--;
    }
}

bool stream_may_be_heard(const struct stream *stream, const struct session *session, struct error *reason)
{
    if (!stream->keys || session->key == 0 || stream_has_listener(stream, &session->id))
        return true;
    return allowance_check_subscription(stream->allowance, client_keys_of(stream->keys, session->key),
                                        intake_subscriptions_of(session->key), reason) == PROTO_OK;
}

void stream_report(struct stream *stream, uint64_t now)
{
    if (stream->refused == stream->said || (stream->said_ns > 0 && now - stream->said_ns < CLOCK_NS_PER_S))
        return;
    log_warn("closed %" PRIu64 " connections that exceeded the %u subscriptions of their client's key "
             "(client-subscriptions), the last of %s",
             stream->refused - stream->said, stream->allowance->subscriptions, stream->refused_of);
    stream->said = stream->refused;
    stream->said_ns = now;
}

/* False: it comes of a client whose key was taken away. *ret_client: its key; NULL: it needs none. */
static bool may_listen(const struct stream *stream, zmq_msg_t *message, const struct client_key **ret_client)
{
    uint32_t key = stream->keys ? zap_key_of(message) : 0;
    int fd = key ? zmq_msg_get(message, ZMQ_SRCFD) : -1;
    *ret_client = key ? client_keys_of(stream->keys, key) : NULL;
    if (key && !*ret_client) {
        intake_unwanted(fd, key);
        return false;
    }
    if (key)
        intake_owned(fd, key);
    return true;
}

/* Counts a subscription of this client. False: its connection is closed for it. */
static bool is_within_bounds(struct stream *stream, const struct client_key *client, int fd)
{
    struct error reason;
    if (!client)
        return true;
    enum proto_error verdict = allowance_check_subscription(stream->allowance, client,
                                                            intake_subscriptions_of(client->number), &reason);
    intake_subscribed(fd, true);
    if (verdict == PROTO_OK)
        return true;
    stream->refused++;
    snprintf(stream->refused_of, sizeof stream->refused_of, "%s", client->name);
    intake_again(fd);
    return false;
}

/* True when it was the session's last subscription that ended. */
static bool take(struct stream *stream, unsigned shard, zmq_msg_t *message, struct id128 *ret_session)
{
    const uint8_t *data = zmq_msg_data(message);
    size_t size = zmq_msg_size(message), len = size - 1;
    const struct client_key *client;
    bool may = may_listen(stream, message, &client); /* odd ones count for their key, too */
    /* Other lengths, and user messages (which begin with neither 0 nor 1), are nobody's. */
    if (size < 1 || (len != sizeof(struct id128) && len != PROTO_TOPIC_BYTES) || data[0] > 1)
        return false;
    memcpy(ret_session, data + 1, sizeof *ret_session);
    int fd = zmq_msg_get(message, ZMQ_SRCFD); /* -1: none, as of an end that the socket reports itself */
    bool stands = intake_stands(fd);
    if (data[0] == 0) {
        if (stream_has_listener(stream, ret_session)) /* else it ends none */
            intake_subscribed(fd, false);
        if (stands)
            zmq_setsockopt(stream->shards[shard], ZMQ_UNSUBSCRIBE, data + 1, len);
        return unsubscribed(stream, ret_session);
    }
    if (!may)
        return false;
    int r = subscribed(stream, shard, ret_session);
    if (stands && !is_within_bounds(stream, client, fd))
        return false;
    bool set =
        r == 0 && (!stands || zmq_setsockopt(stream->shards[shard], ZMQ_SUBSCRIBE, data + 1, len) == 0);
    /* A listener that is not heard waits for a welcome that never comes. One that connects again says it
     * again. */
    if (!set && r != -ENOSPC)
        intake_again(fd);
    return false;
}

void stream_woken(struct stream *stream)
{
    struct epoll_event events[STREAM_MAX_SHARDS];
    int n = epoll_wait(stream->fd, events, STREAM_MAX_SHARDS, 0);
    for (int i = 0; i < n; i++)
        stream->ready |= 1u << events[i].data.u32;
}

bool stream_take(struct stream *stream, bool *ret_has_left, struct id128 *ret_left)
{
    zmq_msg_t message;
    struct id128 session;
    bool any = false;
    zmq_msg_init(&message);
    while (!any && stream->ready != 0) {
        unsigned shard = (unsigned)__builtin_ctz(stream->ready);
        any = zmq_msg_recv(&message, stream->shards[shard], ZMQ_DONTWAIT) >= 0;
        if (any)
            *ret_has_left = take(stream, shard, &message, &session);
        else if (errno != EINTR)
            stream->ready &= ~(1u << shard);
    }
    if (any && *ret_has_left)
        *ret_left = session;
    zmq_msg_close(&message);
    return any;
}

/* Where somebody may listen to the session; a bit each. */
static uint32_t shards_of(const struct stream *stream, const void *topic)
{
    struct id128 session;
    memcpy(&session, topic, sizeof session);
    const struct stream_listened *listened =
        find(stream, &session, (unsigned)hash64(&session, sizeof session, stream->seed));
    return listened ? listened->shards : shards_unlisted(stream);
}

static void drop(zmq_msg_t *message)
{
    zmq_msg_close(message);
    zmq_msg_init(message);
}

/* Sends them, and has them no longer. */
static void send_both(struct stream *stream, unsigned shard, zmq_msg_t *topic, zmq_msg_t *payload)
{
    stream->ready |= 1u << shard;
    if (zmq_msg_send(topic, stream->shards[shard], ZMQ_SNDMORE | ZMQ_DONTWAIT) < 0 ||
        zmq_msg_send(payload, stream->shards[shard], ZMQ_DONTWAIT) < 0) {
        drop(topic);
        drop(payload);
    }
}

static void send_copies(struct stream *stream, unsigned shard, zmq_msg_t *topic, zmq_msg_t *payload)
{
    zmq_msg_t topic_copy, payload_copy;
    zmq_msg_init(&topic_copy);
    zmq_msg_init(&payload_copy);
    if (zmq_msg_copy(&topic_copy, topic) == 0 && zmq_msg_copy(&payload_copy, payload) == 0)
        send_both(stream, shard, &topic_copy, &payload_copy);
    zmq_msg_close(&topic_copy);
    zmq_msg_close(&payload_copy);
}

void stream_forward(struct stream *stream, zmq_msg_t *topic, zmq_msg_t *payload)
{
    uint32_t shards = shards_of(stream, zmq_msg_data(topic));
    for (; shards & (shards - 1); shards &= shards - 1)
        send_copies(stream, (unsigned)__builtin_ctz(shards), topic, payload);
    if (shards) {
        send_both(stream, (unsigned)__builtin_ctz(shards), topic, payload);
    } else {
        drop(topic);
        drop(payload);
    }
}

void stream_publish(struct stream *stream, const void *topic, size_t topic_len, const void *payload,
                    size_t len)
{
    for (uint32_t shards = shards_of(stream, topic); shards; shards &= shards - 1) {
        unsigned shard = (unsigned)__builtin_ctz(shards);
        stream->ready |= 1u << shard;
        if (zmq_send(stream->shards[shard], topic, topic_len, ZMQ_SNDMORE | ZMQ_DONTWAIT) >= 0)
            zmq_send(stream->shards[shard], payload, len, ZMQ_DONTWAIT);
    }
}
