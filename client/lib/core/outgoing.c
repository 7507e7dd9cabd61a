/* SPDX-License-Identifier: MIT */
/* Messages to the broker, all of them on the DEALER.
 *
 * libzmq keeps what is under way, up to its high-water mark; beyond, sending fails at once and is tried again
 * by the timer of whoever wanted it. A message that is larger than the broker takes would vanish without a
 * word, so it never gets that far. */

#include "client/lib/core/outgoing.h"
#include "common/amount.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#define MSGPACK_FALSE 0xc2
#define MSGPACK_TRUE  0xc3

int outgoing_check_size(const struct quern *client, size_t len, struct error *err)
{
    size_t max = client->limits.request_bytes ? client->limits.request_bytes : PROTO_MAX_REQUEST_BYTES;
    return len > max ? error_set(err, -EMSGSIZE, "the message has %s; the pool accepts %s",
                                 amount_of_bytes(len).text, amount_of_bytes(max).text)
                     : 0;
}

/* The socket did not take a message. */
static int say_unsent(const struct quern *client, struct error *err)
{
    if (errno == EAGAIN)
        return error_set(err, -EAGAIN, "too many messages to %s are already under way", client->endpoint);
    return error_set(err, -errno, "%s: %s", client->endpoint, zmq_strerror(errno));
}

int outgoing_bytes(struct quern *client, const struct buffer *bytes, struct error *err)
{
    int r = outgoing_check_size(client, bytes->len, err);
    if (r < 0)
        return r;
    if (zmq_send(client->dealer, bytes->data, bytes->len, ZMQ_DONTWAIT) >= 0)
        return 0;
    return say_unsent(client, err);
}

/* A large message while libzmq holds it. Its bytes are counted to bound what waits there. */
struct piped {
    _Atomic size_t *total; /* in the client, which outlives its sockets */
    size_t len;
    uint8_t bytes[];
};

/* May be called by libzmq's thread. */
static void free_piped(void *data, void *hint)
{
    struct piped *piped = hint;
    *piped->total -= piped->len;
    free(piped);
}

static void write_generate(const struct request *request, uint8_t *to)
{
    const struct quern_encoded *encoded = request->encoded;
    memcpy(to, encoded->bytes.data, encoded->bytes.len);
    if (encoded->id_at > 0)
        memcpy(to + encoded->id_at, request->id.bytes, sizeof request->id);
    for (unsigned i = 0; encoded->seed_at > 0 && i < 8; i++)
        to[encoded->seed_at + i] = (uint8_t)(request->seed >> (56 - 8 * i));
    if (encoded->part_at > 0)
        to[encoded->part_at] = request->part ? MSGPACK_TRUE : MSGPACK_FALSE;
}

static int send_large(struct quern *client, const struct request *request, struct error *err)
{
    const size_t len = request->encoded->bytes.len;
    struct piped *piped = malloc(sizeof *piped + len);
    zmq_msg_t part;
    if (!piped)
        return error_set(err, -ENOMEM, "out of memory");
    piped->total = &client->piped;
    piped->len = len;
    write_generate(request, piped->bytes);
    if (zmq_msg_init_data(&part, piped->bytes, len, free_piped, piped) < 0) {
        free(piped);
        return error_set(err, -ENOMEM, "out of memory");
    }
    client->piped += len;
    if (zmq_msg_send(&part, client->dealer, ZMQ_DONTWAIT) >= 0)
        return 0;
    int r = say_unsent(client, err);
    zmq_msg_close(&part);
    return r;
}

int outgoing_generate(struct quern *client, const struct request *request, struct error *err)
{
    const size_t len = request->encoded->bytes.len;
    int r = outgoing_check_size(client, len, err);
    if (r < 0 || len > BRIEF_BYTES)
        return r < 0 ? r : send_large(client, request, err);
    client->out.len = 0;
    if (buffer_reserve(&client->out, len) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    write_generate(request, client->out.data);
    client->out.len = len;
    return outgoing_bytes(client, &client->out, err);
}

int outgoing_message(struct quern *client, const struct message *message, struct error *err)
{
    client->out.len = 0;
    int r = message_encode_or_say(message, &client->out, err);
    return r < 0 ? r : outgoing_bytes(client, &client->out, err);
}

int outgoing_hello(struct quern *client)
{
    static const struct bytes feature = {"taken", 5};
    struct message message = {.kind = MESSAGE_HELLO};
    message.hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.hello.session = client->session;
    message.hello.features = (struct text_list){&feature, 1};
    return outgoing_message(client, &message, NULL);
}

int outgoing_join(struct quern *client)
{
    struct message message = {.kind = MESSAGE_JOIN};
    message.join.nonce = client->nonce;
    return outgoing_message(client, &message, NULL);
}

int outgoing_ping(struct quern *client)
{
    struct message message = {.kind = MESSAGE_PING};
    struct bytes taken[TAKEN_AT_ONCE];
    size_t n = 0;
    for (size_t at = 0; at < client->taken.len && n < TAKEN_AT_ONCE; at += sizeof(struct id128))
        taken[n++] = (struct bytes){client->taken.data + at, sizeof(struct id128)};
    message.ping.taken.items = taken;
    message.ping.taken.n = n;
    int r = outgoing_message(client, &message, NULL);
    if (r == 0)
        buffer_consume(&client->taken, n * sizeof(struct id128));
    return r;
}

int outgoing_bye(struct quern *client)
{
    struct message message = {.kind = MESSAGE_BYE};
    return outgoing_message(client, &message, NULL);
}

int outgoing_cancel(struct quern *client, const struct request *request, struct error *err)
{
    struct message message = {.kind = MESSAGE_CANCEL};
    message.cancel.id = request->id;
    return outgoing_message(client, &message, err);
}

int outgoing_attach(struct quern *client, const struct request *request, struct error *err)
{
    struct message message = {.kind = MESSAGE_ATTACH};
    message.attach.session = request->session; /* zero: our own */
    message.attach.id = request->id;
    message.attach.next = request->next;
    return outgoing_message(client, &message, err);
}

int outgoing_replay(struct quern *client, const struct request *request)
{
    struct message message = {.kind = MESSAGE_REPLAY};
    message.replay.id = request->id;
    message.replay.epoch = request->epoch;
    message.replay.next = request->next;
    return outgoing_message(client, &message, NULL);
}
