/* SPDX-License-Identifier: MIT */
/* What comes in: messages on the DEALER, frames on the stream.
 *
 * Each is decoded and handed to whom it concerns: the session, a request, or the question that is waited for.
 * Nothing is believed but its bounds, which the decoder holds: what cannot be read, has no place in the state
 * that we are in, or is about nobody here, is passed over. */

#include "client/lib/incoming.h"

#include <zmq.h>

#include "client/lib/question.h"
#include "client/lib/requests/request.h"
#include "client/lib/session.h"

/* Messages taken from a socket before the other is looked at; and how often, and for how long, before the
 * timers are: callbacks may take their time, and timers keep the session. */
#define BATCH   64
#define ROUNDS  32
#define TAKE_NS (20 * CLOCK_NS_PER_MS)

static void on_error(struct quern *client, const struct message *message)
{
    if (message->error.error == PROTO_HELLO_REQUIRED)
        session_lost(client);
    else if (message->error.has_id)
        request_refused(client, message);
    else if (message->error.ref != 0)
        question_answer(client, message);
    else
        session_refused(client, message);
}

void incoming_message(struct quern *client, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_HELLO_OK:
        session_hello_ok(client, message);
        break;
    case MESSAGE_ERROR:
        on_error(client, message);
        break;
    case MESSAGE_ACCEPTED:
        request_accepted(client, message);
        break;
    case MESSAGE_ATTACH_OK:
        request_attached(client, message);
        break;
    case MESSAGE_CANCEL_OK:
        request_cancelled(client, message);
        break;
    case MESSAGE_REPLAY_OK:
        request_page(client, message);
        break;
    case MESSAGE_END:
        request_end_told(client, message);
        break;
    case MESSAGE_STATUS_OK:
    case MESSAGE_TOKENIZE_OK:
    case MESSAGE_DETOKENIZE_OK:
    case MESSAGE_PREFIXES_OK:
    case MESSAGE_TENANTS_OK:
    case MESSAGE_TRACE_OK:
    case MESSAGE_PROFILE_OK:
    case MESSAGE_TRIM_OK:
        question_answer(client, message);
        break;
    case MESSAGE_PONG:
        session_pong(client, message);
        break;
    default: /* bye_ok: that it came is all it says */
        break;
    }
}

static void on_message(struct quern *client, const void *data, size_t len)
{
    struct message message;
    client->heard_ns = client->now;
    /* What cannot be read comes from a newer broker, or from none: it is not ours to judge. */
    if (message_decode(client->decoder, data, len, &message, NULL) == 0)
        incoming_message(client, &message);
}

/* Its topic begins with our session: the socket lets nothing else through. */
static void on_stream(struct quern *client, const void *data, size_t len)
{
    struct message message;
    if (message_decode(client->frame_decoder, data, len, &message, NULL) != 0)
        return; /* a gap that the replay closes */
    client->heard_ns = client->now;
    if (message.kind == MESSAGE_FRAME)
        request_frame(client, &message.frame, data, len);
    else if (message.kind == MESSAGE_PROGRESS)
        request_progress(client, &message);
    else if (message.kind == MESSAGE_WELCOME)
        session_welcome(client, message.welcome.nonce);
}

/* Takes one message of the DEALER. 0 when there is none. */
static int take_message(struct quern *client)
{
    zmq_msg_t part;
    if (!client->dealer_news.look)
        return 0;
    zmq_msg_init(&part);
    int got = zmq_msg_recv(&part, client->dealer, ZMQ_DONTWAIT) >= 0;
    if (!got)
        socket_news_over(&client->dealer_news);
    if (got && !zmq_msg_more(&part))
        on_message(client, zmq_msg_data(&part), zmq_msg_size(&part));
    bool more = got && zmq_msg_more(&part);
    zmq_msg_close(&part);
    while (more) { /* several parts are nothing of ours */
        zmq_msg_init(&part);
        more = zmq_msg_recv(&part, client->dealer, ZMQ_DONTWAIT) >= 0 && zmq_msg_more(&part);
        zmq_msg_close(&part);
    }
    return got;
}

/* Takes one message of the stream: two parts. 0 when there is none. */
static int take_frame(struct quern *client)
{
    zmq_msg_t topic, part;
    if (!client->stream_news.look)
        return 0;
    zmq_msg_init(&topic);
    if (zmq_msg_recv(&topic, client->stream, ZMQ_DONTWAIT) < 0) {
        socket_news_over(&client->stream_news);
        zmq_msg_close(&topic);
        return 0;
    }
    bool more = zmq_msg_more(&topic);
    for (int parts = 1; more; parts++) {
        zmq_msg_init(&part);
        if (zmq_msg_recv(&part, client->stream, ZMQ_DONTWAIT) < 0) {
            zmq_msg_close(&part);
            break;
        }
        more = zmq_msg_more(&part);
        if (parts == 1 && !more)
            on_stream(client, zmq_msg_data(&part), zmq_msg_size(&part));
        zmq_msg_close(&part);
    }
    zmq_msg_close(&topic);
    return 1;
}

void incoming_take(struct quern *client)
{
    const uint64_t start = clock_ns();
    int rounds = 0, messages, frames;
    do {
        messages = frames = 0;
        while (messages < BATCH && take_message(client))
            messages++;
        while (frames < BATCH && take_frame(client))
            frames++;
    } while ((messages == BATCH || frames == BATCH) && ++rounds < ROUNDS && clock_ns() - start < TAKE_NS);
}
