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

/* Of a generate that goes in parts, in one message: enough to be quick, and other messages are not kept. */
#define PART_BYTES ((size_t)1 << 20)
#define PART_HEAD  512 /* what stands around the bytes of a part, at most */

static size_t message_bytes(const struct quern *client)
{
    return client->limits.request_bytes ? client->limits.request_bytes : PROTO_MAX_REQUEST_BYTES;
}

bool outgoing_in_parts(const struct quern *client, size_t len)
{
    return len > message_bytes(client) && client->limits.generate_bytes > 0 &&
           message_bytes(client) > 2 * PART_HEAD;
}

static int check(size_t len, size_t max, struct error *err)
{
    return len > max ? error_set(err, -EMSGSIZE, "the message has %s; the pool accepts %s",
                                 amount_of_bytes(len).text, amount_of_bytes(max).text)
                     : 0;
}

int outgoing_check_size(const struct quern *client, size_t len, struct error *err)
{
    return check(len, message_bytes(client), err);
}

int outgoing_check_generate(const struct quern *client, size_t len, struct error *err)
{
    return check(len, outgoing_in_parts(client, len) ? client->limits.generate_bytes : message_bytes(client),
                 err);
}

/* The socket did not take a message. */
static int say_unsent(struct quern *client, struct error *err)
{
    const int code = errno;
    if (code == EAGAIN) { /* it will be tried again and again */
        socket_news_ask(client->dealer, &client->dealer_news);
        return error_set(err, -EAGAIN, "too many unsent messages to %s", client->endpoint);
    }
    return error_set(err, -code, "%s: %s", client->endpoint, zmq_strerror(code));
}

int outgoing_bytes(struct quern *client, const struct buffer *bytes, struct error *err)
{
    int r = outgoing_check_size(client, bytes->len, err);
    if (r < 0)
        return r;
    client->dealer_news.look = true;
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

struct piece { /* of a generate: `len` bytes from `at` on */
    uint8_t *to;
    size_t at, len;
};

static void put(const struct piece *piece, size_t at, uint8_t byte)
{
    if (at >= piece->at && at - piece->at < piece->len)
        piece->to[at - piece->at] = byte;
}

static void write_generate(const struct request *request, const struct piece *piece)
{
    const struct quern_encoded *encoded = request->encoded;
    memcpy(piece->to, encoded->bytes.data + piece->at, piece->len);
    for (unsigned i = 0; encoded->id_at > 0 && i < sizeof request->id; i++)
        put(piece, encoded->id_at + i, request->id.bytes[i]);
    for (unsigned i = 0; encoded->seed_at > 0 && i < 8; i++)
        put(piece, encoded->seed_at + i, (uint8_t)(request->seed >> (56 - 8 * i)));
    if (encoded->part_at > 0)
        put(piece, encoded->part_at, request->part ? MSGPACK_TRUE : MSGPACK_FALSE);
}

static struct piped *new_piped(struct quern *client, size_t len)
{
    struct piped *piped = malloc(sizeof *piped + len);
    if (!piped)
        return NULL;
    piped->total = &client->piped;
    piped->len = len;
    return piped;
}

/* Takes the memory. */
static int send_piped(struct quern *client, struct piped *piped, struct error *err)
{
    const size_t len = piped->len;
    zmq_msg_t part;
    if (zmq_msg_init_data(&part, piped->bytes, len, free_piped, piped) < 0) {
        free(piped);
        return error_set(err, -ENOMEM, "out of memory");
    }
    client->piped += len;
    client->dealer_news.look = true;
    if (zmq_msg_send(&part, client->dealer, ZMQ_DONTWAIT) >= 0)
        return 0;
    int r = say_unsent(client, err);
    zmq_msg_close(&part);
    return r;
}

static int send_large(struct quern *client, const struct request *request, struct error *err)
{
    const size_t len = request->encoded->bytes.len;
    struct piped *piped = new_piped(client, len);
    if (!piped)
        return error_set(err, -ENOMEM, "out of memory");
    write_generate(request, &(struct piece){piped->bytes, 0, len});
    return send_piped(client, piped, err);
}

int outgoing_part(struct quern *client, struct request *request, struct error *err)
{
    const size_t total = request->encoded->bytes.len, at = request->parts_sent;
    const size_t room = message_bytes(client) - PART_HEAD, most = room < PART_BYTES ? room : PART_BYTES;
    const size_t len = total - at < most ? total - at : most;
    struct buffer data = {0};
    struct message message = {.kind = MESSAGE_GENERATE_PART};
    client->out.len = 0;
    if (buffer_reserve(&data, len) < 0)
        return error_set(err, -ENOMEM, "out of memory");
    write_generate(request, &(struct piece){data.data, at, len});
    message.generate_part.id = request->id;
    message.generate_part.total = (uint32_t)total;
    message.generate_part.at = (uint32_t)at;
    message.generate_part.data = (struct bytes){data.data, len};
    message.generate_part.tenant = bytes_of_string(request->encoded->tenant);
    int r = message_encode_or_say(&message, &client->out, err);
    buffer_deinit(&data);
    struct piped *piped = r == 0 ? new_piped(client, client->out.len) : NULL;
    if (r == 0 && !piped)
        r = error_set(err, -ENOMEM, "out of memory");
    if (r < 0)
        return r;
    memcpy(piped->bytes, client->out.data, client->out.len);
    r = send_piped(client, piped, err);
    if (r == 0)
        request->parts_sent += len;
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
    write_generate(request, &(struct piece){client->out.data, 0, len});
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
    message.ping.load = client->asks_load;
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
