/* SPDX-License-Identifier: MIT */
/* See bare.h. */

#include "tests/unit/client/lib/bare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "client/lib/incoming.h"
#include "client/lib/session.h"

#define ENDPOINT "inproc://broker"

struct quern *client;
void *broker;
static struct message_decoder *decoder;
static struct buffer wire; /* of the message that was made last */

void bare_set_up(void)
{
    client = calloc(1, sizeof *client);
    ck_assert_ptr_nonnull(client);
    ck_assert_int_eq(message_decoder_new(&client->decoder), 0);
    ck_assert_int_eq(message_decoder_new(&client->frame_decoder), 0);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    client->context = zmq_ctx_new();
    client->dealer = zmq_socket(client->context, ZMQ_DEALER);
    client->stream = zmq_socket(client->context, ZMQ_SUB);
    ck_assert_int_eq(socket_news_init(client->dealer, &client->dealer_news), 0);
    ck_assert_int_eq(socket_news_init(client->stream, &client->stream_news), 0);
    broker = zmq_socket(client->context, ZMQ_DEALER);
    strcpy(client->endpoint, ENDPOINT);
    ck_assert_int_eq(zmq_bind(broker, ENDPOINT), 0);
    ck_assert_int_eq(zmq_connect(client->dealer, ENDPOINT), 0);
    client->watched = -1;
    client->limits = PROTO_LIMITS;
    client->session = state_random_id();
    client->patience_ns = 30 * CLOCK_NS_PER_S;
    client->ping_every_ns = CLOCK_NS_PER_S;
    client->now = client->heard_ns = 1000 * CLOCK_NS_PER_S;
    session_start(client);
    ck_assert_says(MESSAGE_HELLO);
}

void bare_tear_down(void)
{
    int none = 0;
    zmq_setsockopt(client->dealer, ZMQ_LINGER, &none, sizeof none);
    zmq_close(broker);
    decoder = message_decoder_free(decoder);
    client = quern_free(client);
    buffer_deinit(&wire);
}

void bare_take(void)
{
    client->dealer_news.look = client->stream_news.look = true;
    incoming_take(client);
}

void bare_open(void)
{
    client->state = SESSION_JOIN;
    session_welcome(client, client->nonce);
}

static size_t receive(uint8_t *bytes, size_t size)
{
    int n = zmq_recv(broker, bytes, size, ZMQ_DONTWAIT);
    ck_assert_int_le(n, (int)size);
    return n < 0 ? 0 : (size_t)n;
}

struct message bare_next(void)
{
    static uint8_t bytes[64 << 10];
    struct message message = {.kind = MESSAGE_NONE};
    struct error err = {{0}};
    size_t n = receive(bytes, sizeof bytes);
    if (n > 0)
        ck_assert_msg(message_decode(decoder, bytes, n, &message, &err) == 0, "%s", err.text);
    return message;
}

bool bare_next_is_generate(void)
{
    uint8_t bytes[1024];
    size_t n = receive(bytes, sizeof bytes);
    return n == sizeof BARE_WIRE - 1 && memcmp(bytes, BARE_WIRE, n) == 0;
}

struct bytes bare_encode(const struct message *message)
{
    wire.len = 0;
    ck_assert_int_eq(message_encode(message, &wire), 0);
    return (struct bytes){wire.data, wire.len};
}

void bare_output(void *arg, const struct quern_output *output)
{
    struct told *told = arg;
    ck_assert_int_eq(told->ends, 0);
    ck_assert_uint_le(output->n_ids, 8);
    ck_assert_uint_le(output->n_ids * output->n_logprobs, 16);
    ck_assert_uint_lt(output->text_len, sizeof told->text);
    if (output->admitted) {
        told->admissions++;
        told->admitted = *output->admitted;
    }
    if (output->progress) {
        told->readings++;
        told->progress = *output->progress;
    }
    told->calls++;
    told->index = output->index;
    told->n_ids = output->n_ids;
    told->n_logprobs = output->n_logprobs;
    told->text_len = output->text_len;
    if (output->n_ids > 0)
        memcpy(told->ids, output->ids, output->n_ids * sizeof *output->ids);
    if (output->logprobs)
        memcpy(told->logprobs, output->logprobs,
               output->n_ids * output->n_logprobs * sizeof *output->logprobs);
    told->pieces = output->pieces;
    if (output->prompt_digest)
        memcpy(told->prompt_digest, output->prompt_digest, sizeof told->prompt_digest);
    snprintf(told->text, sizeof told->text, "%.*s", (int)output->text_len, output->text);
    if (!output->end)
        return;
    told->ends++;
    told->end = *output->end;
    snprintf(told->error, sizeof told->error, "%s", output->end->error);
    snprintf(told->error_text, sizeof told->error_text, "%s", output->end->text);
    told->end.error = told->error;
    told->end.text = told->error_text;
}

struct request *bare_request(enum request_state state, struct told *told)
{
    struct request *request = state_add_request(client, state_random_id(), bare_output, told);
    ck_assert_ptr_nonnull(request);
    request->encoded = calloc(1, sizeof *request->encoded);
    ck_assert_ptr_nonnull(request->encoded);
    request->encoded->refs = 1;
    ck_assert_int_eq(buffer_append(&request->encoded->bytes, BARE_WIRE, sizeof BARE_WIRE - 1), 0);
    if (state == REQUEST_NEW || state == REQUEST_SENT)
        ck_assert_int_eq(state_request_waits(client, request), 0);
    if (state == REQUEST_SENT)
        state_request_sent(client, request);
    request->state = state;
    request->sent_ns = request->heard_ns = client->now;
    return request;
}
