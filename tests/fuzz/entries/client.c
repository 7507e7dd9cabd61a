/* SPDX-License-Identifier: MIT */
/* Whatever a broker says, in whatever order, libquern's callbacks get each id and each byte of text once and
 * in order, and at most one end, after which nothing comes.
 *
 * The input is a script: each op is a byte and its arguments, and becomes a message as the broker might send
 * it, for one of two requests, at a time that the script advances. Frames may have any place, epoch and
 * length, but what they hold is true to their place: the id at index i is i, the byte of text at offset o is
 * 'a' + o mod 26. So the callback can tell what is missing or wrong. No network: the DEALER is connected to
 * nobody. */

#include "tests/fuzz/driver.h"

#include "client/lib/incoming.h"
#include "client/lib/requests/request.h"
#include "client/lib/session.h"

#include <stdlib.h>
#include <zmq.h>

#define N_REQUESTS 2
#define ENDPOINT   "inproc://broker"

struct script {
    const uint8_t *at, *end;
};

struct seen {
    uint64_t ids, bytes;
    bool over;
};

static struct quern *client;
static void *broker; /* takes what the client sends */
static struct buffer wire;
static struct seen seen[N_REQUESTS];
static struct id128 request_ids[N_REQUESTS];

static uint8_t take(struct script *script)
{
    return script->at < script->end ? *script->at++ : 0;
}

static void on_output(void *arg, const struct quern_output *output)
{
    struct seen *s = arg;
    if (s->over || output->index != s->ids)
        abort();
    for (size_t i = 0; i < output->n_ids; i++)
        if (output->ids[i] != (int32_t)s->ids++)
            abort();
    for (size_t i = 0; i < output->text_len; i++)
        if (output->text[i] != (char)('a' + s->bytes++ % 26))
            abort();
    s->over = output->end != NULL;
}

static void make_client(void)
{
    client = calloc(1, sizeof *client);
    if (!client || message_decoder_new(&client->decoder) < 0 ||
        message_decoder_new(&client->frame_decoder) < 0)
        abort();
    client->context = zmq_ctx_new();
    client->dealer = zmq_socket(client->context, ZMQ_DEALER);
    client->stream = zmq_socket(client->context, ZMQ_SUB);
    broker = zmq_socket(client->context, ZMQ_DEALER);
    int unlimited = 0;
    zmq_setsockopt(client->dealer, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(broker, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    strcpy(client->endpoint, ENDPOINT);
    strcpy(client->stream_endpoint, ENDPOINT);
    if (zmq_bind(broker, ENDPOINT) < 0 || zmq_connect(client->dealer, ENDPOINT) < 0)
        abort();
}

/* Two requests: one generated here, one attached. */
static void start_requests(void)
{
    static const int32_t prompt[] = {1, 2};
    struct quern_request request;
    struct quern_id id, session = {{9}};
    client->state = SESSION_OPEN;
    client->opened_before = true;
    client->limits = (struct limits){.prompt_ids = 2};
    memset(seen, 0, sizeof seen);
    quern_request_init(&request);
    request.ids = prompt;
    request.n_ids = 2;
    if (quern_generate(client, &request, on_output, &seen[0], &id, NULL) < 0)
        abort();
    memcpy(request_ids[0].bytes, id.bytes, 16);
    memset(id.bytes, 7, sizeof id.bytes);
    memcpy(request_ids[1].bytes, id.bytes, 16);
    if (quern_attach(client, session, id, on_output, &seen[1], NULL) < 0)
        abort();
    client->now = clock_ns();
}

static struct epoch an_epoch(uint8_t b)
{
    return (struct epoch){1 + (b >> 4 & 1), b >> 5 & 1};
}

/* A frame at a place near what was seen, or far from it. */
static struct frame a_frame(struct script *script, unsigned which, int32_t *ids, char *text)
{
    uint8_t shape = take(script), place = take(script), size = take(script);
    uint64_t seq = place & 15, off = place >> 4;
    if (shape & 1) {
        seq = seen[which].ids;
        off = seen[which].bytes;
    }
    size_t n = size & 7, len = size >> 3 & 15;
    for (size_t i = 0; i < n; i++)
        ids[i] = (int32_t)(seq + i);
    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + (off + i) % 26);
    struct frame frame = {.id = request_ids[which],
                          .epoch = an_epoch(shape),
                          .seq = seq,
                          .off = off,
                          .ids = {ids, n},
                          .text = {text, len},
                          .has_end = (shape & 14) == 14};
    frame.end.reason = END_LENGTH;
    return frame;
}

static void stream_op(struct script *script, unsigned which)
{
    int32_t ids[8];
    char text[16];
    struct message message = {.kind = MESSAGE_FRAME}, decoded;
    message.frame = a_frame(script, which, ids, text);
    wire.len = 0;
    if (message_encode(&message, &wire) != 0 ||
        message_decode(client->frame_decoder, wire.data, wire.len, &decoded, NULL) != 0)
        abort();
    request_frame(client, &decoded.frame, wire.data, wire.len);
}

static void page_op(struct script *script, unsigned which)
{
    struct buffer frames[4] = {0};
    struct bytes items[4];
    struct message page = {.kind = MESSAGE_REPLAY_OK};
    uint8_t shape = take(script);
    size_t n = shape & 3;
    for (size_t i = 0; i < n; i++) {
        int32_t ids[8];
        char text[16];
        struct message message = {.kind = MESSAGE_FRAME};
        message.frame = a_frame(script, which, ids, text);
        if (message_encode(&message, &frames[i]) != 0)
            abort();
        items[i] = (struct bytes){frames[i].data, frames[i].len};
    }
    page.replay_ok.id = request_ids[which];
    page.replay_ok.epoch = an_epoch(shape);
    page.replay_ok.done = shape & 4;
    page.replay_ok.frames.items = items;
    page.replay_ok.frames.n = n;
    incoming_message(client, &page);
    for (size_t i = 0; i < n; i++)
        buffer_deinit(&frames[i]);
}

static void verdict_op(struct script *script, unsigned which)
{
    static const enum proto_error errors[] = {PROTO_UNKNOWN_REQUEST, PROTO_OVERLOADED, PROTO_DRAINING,
                                              PROTO_INTERNAL};
    uint8_t b = take(script);
    struct message message = {0};
    switch (b & 7) {
    case 0:
    case 1:
        message.kind = MESSAGE_ACCEPTED;
        message.accepted.id = request_ids[which];
        message.accepted.epoch = an_epoch(b);
        break;
    case 2:
    case 3:
        message.kind = MESSAGE_ATTACH_OK;
        message.attach_ok.id = request_ids[which];
        message.attach_ok.epoch = an_epoch(b);
        break;
    case 4:
    case 5:
        message.kind = MESSAGE_END;
        message.end.id = request_ids[which];
        message.end.count = take(script) & 15;
        message.end.end.reason = END_STOP;
        break;
    case 6:
        if (b & 8) {
            message.kind = MESSAGE_CANCEL_OK;
            message.cancel_ok.id = request_ids[which];
            break;
        }
        /* fall through */
    default:
        message.kind = MESSAGE_ERROR;
        message.error.has_id = true;
        message.error.id = request_ids[which];
        message.error.error = errors[b >> 6];
        message.error.text = BYTES_LITERAL("no");
    }
    incoming_message(client, &message);
}

/* The session: opened again, by the broker's own boot or another; lost, or refused. */
static void session_op(struct script *script)
{
    struct bytes endpoint = bytes_of_string(ENDPOINT);
    struct message message = {.kind = MESSAGE_HELLO_OK};
    uint8_t b = take(script);
    message.hello_ok.proto = (struct version_range){1, 1};
    message.hello_ok.boot = b & 1;
    message.hello_ok.stream = (struct text_list){&endpoint, 1};
    if (b & 2)
        session_start(client);
    if (b & 4)
        incoming_message(client, &message);
    if (b & 8)
        session_welcome(client, client->nonce);
    if (b & 0x30) {
        static const enum proto_error errors[] = {PROTO_HELLO_REQUIRED, PROTO_OVERLOADED, PROTO_UNSUPPORTED};
        struct message no = {.kind = MESSAGE_ERROR};
        no.error.error = errors[(b >> 4 & 3) - 1];
        no.error.text = BYTES_LITERAL("not now");
        incoming_message(client, &no);
    }
}

static void run_op(struct script *script)
{
    uint8_t op = take(script);
    unsigned which = op >> 7;
    switch (op & 7) {
    case 0:
    case 1:
    case 2:
        stream_op(script, which);
        break;
    case 3:
    case 4:
        page_op(script, which);
        break;
    case 5:
        verdict_op(script, which);
        break;
    case 6:
        session_op(script);
        break;
    default:
        client->now += take(script) * 20 * CLOCK_NS_PER_MS;
        session_timers(client);
        requests_timers(client);
        if (op & 64) {
            struct quern_id id;
            memcpy(id.bytes, request_ids[which].bytes, 16);
            quern_cancel(client, id, NULL);
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    struct script script = {data, data + (len < 4096 ? len : 4096)};
    if (!client)
        make_client();
    start_requests();
    while (script.at < script.end)
        run_op(&script);
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    state_remove_request(client, request);
    return 0;
}
