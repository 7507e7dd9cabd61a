/* SPDX-License-Identifier: MIT */
/* The session: opening it, keeping it alive, opening it again.
 *
 *   HELLO ──hello_ok──▶ JOIN ──welcome on the stream──▶ OPEN
 *     ▲                                                  │ hello_required (the broker restarted, or held us
 *     └──────────────────────────────────────────────────┘ for gone)
 *   BROKEN: no common version, a key that the pool does not know, or silence beyond patience. For good.
 *
 * The session's identity stays the same over all of it. Nothing is sent twice at once: each step is repeated
 * by its own timer until its answer comes. A broker that does not take the first hello, or the join after it,
 * is believed; one that had taken it and has no room for the moment, as it may after a restart, is asked
 * again while patience lasts. */

#include "client/lib/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/lib/core/outgoing.h"
#include "client/lib/question.h"
#include "client/lib/requests/request.h"
#include "common/utf8.h"

#define HELLO_NS      (1 * CLOCK_NS_PER_S)
#define TAKEN_NS      (100 * CLOCK_NS_PER_MS) /* from the end of a request until the broker is told */
#define JOIN_FIRST_NS (20 * CLOCK_NS_PER_MS)
#define JOIN_MAX_NS   (1 * CLOCK_NS_PER_S)

static void break_for_good(struct quern *client, int code, const char *text)
{
    client->state = SESSION_BROKEN;
    client->broken = error_set(&client->broken_err, code, "%s", text);
    requests_fail_all(client, "worker_lost", text);
    questions_fail_all(client, code, text);
}

void session_start(struct quern *client)
{
    if (client->state == SESSION_OPEN)
        client->closed_ns = client->now;
    client->state = SESSION_HELLO;
    client->hello_ns = client->now;
    outgoing_hello(client);
}

static void join(struct quern *client)
{
    client->join_ns = client->now;
    outgoing_join(client);
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

/* False when out of memory. */
static bool remember_models(struct quern *client, const struct model_info *from, size_t n)
{
    session_forget_models(client);
    client->models = calloc(n + 1, sizeof *client->models);
    if (!client->models)
        return false;
    for (size_t i = 0; i < n; i++) {
        struct quern_model *to = &client->models[i];
        to->name = copy_text(from[i].name);
        if (!to->name)
            return false;
        memcpy(to->digest, from[i].digest.data, sizeof to->digest);
        to->context = from[i].context;
        to->workers = from[i].workers;
        to->chat = from[i].chat;
        to->embedding = from[i].embedding;
        to->ranks = from[i].ranks;
        client->n_models++;
    }
    return true;
}

/* The first endpoint that is reached the way the broker was. No other: who answers on the network has no
 * business to point at sockets of this machine. */
static const struct bytes *choose_stream(const struct quern *client, const struct text_list *stream)
{
    size_t scheme = (size_t)(strstr(client->endpoint, "://") - client->endpoint) + 3;
    for (size_t i = 0; i < stream->n; i++)
        if (stream->items[i].len > scheme && memcmp(stream->items[i].data, client->endpoint, scheme) == 0)
            return &stream->items[i];
    return NULL;
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
    client->stream_news.look = true;
    if (zmq_connect(client->stream, endpoint) < 0)
        return -errno;
    strcpy(client->stream_endpoint, endpoint);
    return 0;
}

static bool names_tenants(const struct text_list *features)
{
    for (size_t i = 0; i < features->n; i++)
        if (bytes_equal(features->items[i], BYTES_LITERAL(PROTO_FEATURE_TENANTS)))
            return true;
    return false;
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
        break_for_good(client, -EPROTO, text);
        return;
    }
    const struct bytes *stream = choose_stream(client, &message->hello_ok.stream);
    if (!stream) {
        snprintf(text, sizeof text, "the pool at %.160s did not name a stream endpoint for this transport",
                 client->endpoint);
        break_for_good(client, -EPROTO, text);
        return;
    }
    int r = connect_stream(client, *stream);
    if (r < 0) {
        snprintf(text, sizeof text, "the pool's stream %.*s: %s", (int)stream->len,
                 (const char *)stream->data, zmq_strerror(-r));
        break_for_good(client, r, text);
        return;
    }
    client->limits = message->hello_ok.limits;
    client->knows_tenants = names_tenants(&message->hello_ok.features);
    /* A pool that serves less than it does is not shown: the timer says hello again. */
    if (!remember_models(client, message->hello_ok.models.items, message->hello_ok.models.n))
        return;
    client->state = SESSION_JOIN;
    client->nonce = state_random_u64();
    client->join_wait_ns = JOIN_FIRST_NS;
    join(client);
}

void session_lost(struct quern *client)
{
    if (client->state == SESSION_OPEN || client->state == SESSION_JOIN)
        session_start(client);
}

void session_refused(struct quern *client, const struct message *message)
{
    enum proto_error error = message->error.error;
    bool for_now = error == PROTO_OVERLOADED || error == PROTO_DRAINING;
    char reason[PROTO_MAX_TEXT_BYTES + 1], text[PROTO_MAX_TEXT_BYTES + 64];
    bool of_hello = message->error.of == MESSAGE_HELLO || message->error.of == MESSAGE_NONE;
    bool of_this_step = (client->state == SESSION_HELLO && of_hello) ||
                        (client->state == SESSION_JOIN && message->error.of == MESSAGE_JOIN);
    if (!of_this_step || (for_now && client->opened_before))
        return;
    snprintf(text, sizeof text, "the pool refuses: %s: %s", proto_error_name(error),
             utf8_printable(message->error.text, sizeof reason, reason));
    break_for_good(client, for_now ? -EAGAIN : -EPROTO, text);
}

void session_pong(struct quern *client, const struct message *message)
{
    client->answered_ns = client->now;
    /* An older pool does not tell it; one without workers has nothing to tell. */
    client->has_load = message->pong.slots > 0 || message->pong.draining || message->pong.load > 0;
    client->load = (struct quern_load){.tokens = message->pong.load,
                                       .own = message->pong.own,
                                       .slots = message->pong.slots,
                                       .kept = message->pong.kept / 1000.0,
                                       .draining = message->pong.draining};
}

void session_welcome(struct quern *client, uint64_t nonce)
{
    if (client->state != SESSION_JOIN || nonce != client->nonce)
        return;
    bool again = client->opened_before;
    client->state = SESSION_OPEN;
    client->opened_before = true;
    client->has_load = false;
    client->answered_ns = client->now;
    client->ping_ns = client->now;
    requests_opened(client, again);
    questions_opened(client);
}

/* The next event that libzmq tells of; 0: none. It has two parts, of which the second is an address. */
static uint16_t next_event(const struct quern *client)
{
    uint8_t event[64];
    uint16_t number = 0;
    if (!client->handshakes || zmq_recv(client->handshakes, event, sizeof event, ZMQ_DONTWAIT) < 0)
        return 0;
    memcpy(&number, event, sizeof number);
    zmq_recv(client->handshakes, event, sizeof event, ZMQ_DONTWAIT);
    return number;
}

/* A handshake that fails for the client's key is final: its socket does not try again. One that fails without
 * a word may have met another pool's key, or a pool that was just ending. */
static void judge_handshakes(struct quern *client)
{
    char text[384];
    uint16_t event;
    while ((event = next_event(client)) != 0) {
        if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED)
            client->failed_handshakes = 0;
        else if (event == ZMQ_EVENT_HANDSHAKE_FAILED_NO_DETAIL)
            client->failed_handshakes++;
        if (event != ZMQ_EVENT_HANDSHAKE_FAILED_AUTH)
            continue;
        snprintf(text, sizeof text, "the pool at %s does not know this client's key%s", client->endpoint,
                 client->opened_before ? " any more" : "");
        break_for_good(client, -EACCES, text);
        return;
    }
}

/* Whoever is silent is not waited for any longer; nor is one who answers, but not what was asked. */
static void judge_patience(struct quern *client)
{
    bool reopens = client->opened_before && client->state != SESSION_OPEN;
    uint64_t silent = client->now - client->heard_ns, closed = reopens ? client->now - client->closed_ns : 0;
    char text[384];
    if (silent < client->patience_ns && closed < client->patience_ns)
        return;
    if (silent >= client->patience_ns)
        snprintf(text, sizeof text, "the broker at %s has not answered for %.1f s", client->endpoint,
                 (double)silent / CLOCK_NS_PER_S);
    else
        snprintf(text, sizeof text, "the session at %s was lost and could not be reopened within %.1f s",
                 client->endpoint, (double)closed / CLOCK_NS_PER_S);
    break_for_good(client, -ETIMEDOUT, text);
}

/* Whether what was taken is to be told before the next ping is due. */
static bool must_tell(const struct quern *client)
{
    return client->taken.len >= TAKEN_AT_ONCE * sizeof(struct id128) ||
           (client->taken.len > 0 && client->now - client->taken_ns >= TAKEN_NS);
}

void session_timers(struct quern *client)
{
    judge_handshakes(client);
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
        join(client);
        break;
    case SESSION_OPEN:
        if (client->now - client->ping_ns >= client->ping_every_ns || must_tell(client)) {
            client->ping_ns = client->now;
            outgoing_ping(client);
        }
        break;
    case SESSION_BROKEN:
        return;
    }
    judge_patience(client);
}
