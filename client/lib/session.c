/* SPDX-License-Identifier: MIT */
/* The session: opening it, keeping it alive, opening it again.
 *
 *   HELLO ──hello_ok──▶ JOIN ──welcome on the stream──▶ OPEN
 *     ▲                                                  │ hello_required (the broker restarted, or held us
 *     └──────────────────────────────────────────────────┘ for gone)
 *   BROKEN: no common version, or silence beyond patience. For good.
 *
 * The session's identity stays the same over all of it. Nothing is sent twice at once: each step is repeated
 * by its own timer until its answer comes. */

#include "client/lib/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <zmq.h>

#define JOIN_FIRST_NS (20 * CLOCK_NS_PER_MS)
#define JOIN_MAX_NS   (1 * CLOCK_NS_PER_S)

uint64_t random_u64(void)
{
    uint64_t number = 0;
    /* Up to 256 bytes from the kernel's pool, once seeded, cannot fail or come short. */
    if (getrandom(&number, sizeof number, 0) != sizeof number)
        abort();
    return number;
}

struct id128 random_id(void)
{
    struct id128 id;
    if (getrandom(&id, sizeof id, 0) != sizeof id)
        abort();
    return id;
}

int session_check_size(const struct quern *client, size_t len, struct error *err)
{
    size_t max = client->limits.request_bytes ? client->limits.request_bytes : PROTO_MAX_REQUEST_BYTES;
    return len > max ? error_set(err, -EMSGSIZE, "the message has %zu bytes, the pool takes %zu", len, max)
                     : 0;
}

int session_send_bytes(struct quern *client, const struct buffer *bytes, struct error *err)
{
    int r = session_check_size(client, bytes->len, err);
    if (r < 0)
        return r;
    if (zmq_send(client->dealer, bytes->data, bytes->len, ZMQ_DONTWAIT) >= 0)
        return 0;
    if (errno == EAGAIN)
        return error_set(err, -EAGAIN, "too many messages to %s are under way already", client->endpoint);
    return error_set(err, -errno, "%s: %s", client->endpoint, zmq_strerror(errno));
}

int session_send(struct quern *client, const struct message *message, struct error *err)
{
    client->out.len = 0;
    int r = message_encode_or_say(message, &client->out, err);
    return r < 0 ? r : session_send_bytes(client, &client->out, err);
}

void session_break(struct quern *client, int code, const char *text)
{
    client->state = SESSION_BROKEN;
    client->broken = error_set(&client->broken_err, code, "%s", text);
    requests_end_all(client, "worker_lost", text);
}

void session_start(struct quern *client)
{
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.hello.session = client->session;
    client->state = SESSION_HELLO;
    client->hello_ns = client->now;
    session_send(client, &message, NULL);
}

static void session_join(struct quern *client)
{
    struct message message = {.kind = MESSAGE_JOIN};
    message.join.nonce = client->nonce;
    client->join_ns = client->now;
    session_send(client, &message, NULL);
}

static char *copy_text(struct bytes text)
{
    char *copy = malloc(text.len + 1);
    if (copy) {
        memcpy(copy, text.data, text.len);
        copy[text.len] = 0;
    }
    return copy;
}

void session_forget_models(struct quern *client)
{
    for (size_t i = 0; i < client->n_models; i++)
        free((char *)client->models[i].name);
    free(client->models);
    client->models = NULL;
    client->n_models = 0;
}

static void remember_models(struct quern *client, const struct model_info *from, size_t n)
{
    session_forget_models(client);
    client->models = calloc(n + 1, sizeof *client->models);
    for (size_t i = 0; client->models && i < n; i++) {
        struct quern_model *to = &client->models[i];
        to->name = copy_text(from[i].name);
        if (!to->name)
            return;
        memcpy(to->digest, from[i].digest.data, sizeof to->digest);
        to->context = from[i].context;
        to->workers = from[i].workers;
        to->chat = from[i].chat;
        client->n_models++;
    }
}

/* The first endpoint that is reached the way the broker was, else the first. */
static struct bytes choose_stream(const struct quern *client, const struct text_list *stream)
{
    for (size_t i = 0; i < stream->n; i++)
        if (stream->items[i].len > 6 && memcmp(stream->items[i].data, client->endpoint, 6) == 0)
            return stream->items[i];
    return stream->items[0];
}

static int connect_stream(struct quern *client, struct bytes chosen)
{
    char endpoint[sizeof client->stream_endpoint];
    snprintf(endpoint, sizeof endpoint, "%.*s", (int)chosen.len, (const char *)chosen.data);
    if (strcmp(endpoint, client->stream_endpoint) == 0)
        return 0;
    if (client->stream_endpoint[0])
        zmq_disconnect(client->stream, client->stream_endpoint);
    client->stream_endpoint[0] = 0;
    if (zmq_connect(client->stream, endpoint) < 0)
        return -errno;
    strcpy(client->stream_endpoint, endpoint);
    return 0;
}

void session_hello_ok(struct quern *client, const struct message *message)
{
    char text[256];
    if (client->state != SESSION_HELLO)
        return;
    if (message->hello_ok.proto.min > PROTO_VERSION_MAX || message->hello_ok.proto.max < PROTO_VERSION_MIN) {
        snprintf(
            text, sizeof text, "the pool speaks versions %u to %u of the protocol, this program %d to %d",
            message->hello_ok.proto.min, message->hello_ok.proto.max, PROTO_VERSION_MIN, PROTO_VERSION_MAX);
        session_break(client, -EPROTO, text);
        return;
    }
    if (message->hello_ok.stream.n == 0) {
        session_break(client, -EPROTO, "the pool told no endpoint of its stream");
        return;
    }
    int r = connect_stream(client, choose_stream(client, &message->hello_ok.stream));
    if (r < 0) {
        struct bytes name = message->hello_ok.stream.items[0];
        snprintf(text, sizeof text, "the pool's stream %.*s: %s", (int)name.len, (const char *)name.data,
                 zmq_strerror(-r));
        session_break(client, r, text);
        return;
    }
    client->limits = message->hello_ok.limits;
    remember_models(client, message->hello_ok.models.items, message->hello_ok.models.n);
    client->state = SESSION_JOIN;
    client->nonce = random_u64();
    client->join_wait_ns = JOIN_FIRST_NS;
    session_join(client);
}

void session_welcome(struct quern *client, uint64_t nonce)
{
    if (client->state != SESSION_JOIN || nonce != client->nonce)
        return;
    bool again = client->opened_before;
    client->state = SESSION_OPEN;
    client->opened_before = true;
    client->ping_ns = client->now;
    requests_opened(client, again);
}

void session_timers(struct quern *client)
{
    switch (client->state) {
    case SESSION_HELLO:
        if (client->now - client->hello_ns >= HELLO_NS)
            session_start(client);
        break;
    case SESSION_JOIN:
        if (client->now - client->join_ns < client->join_wait_ns)
            break;
        client->join_wait_ns *= 2;
        if (client->join_wait_ns > JOIN_MAX_NS)
            client->join_wait_ns = JOIN_MAX_NS;
        session_join(client);
        break;
    case SESSION_OPEN:
        if (client->now - client->ping_ns >= PING_NS) {
            struct message message = {.kind = MESSAGE_PING};
            client->ping_ns = client->now;
            session_send(client, &message, NULL);
        }
        break;
    case SESSION_BROKEN:
        break;
    }
}
