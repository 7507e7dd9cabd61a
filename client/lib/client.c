/* SPDX-License-Identifier: MIT */
/* The client's life and its loop.
 *
 * Two sockets of an own ZeroMQ context: a DEALER for requests and answers, a SUB for frames. quern_dispatch
 * takes what both have, in turns, then looks at the timers, and returns as soon as a callback was made. One
 * thread; no callback is ever made outside of it. Sending never waits. */

#include "client/lib/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "common/rundir.h"

/* Messages taken from a socket before the other is looked at, and how often that before the timers are. */
#define BATCH  256
#define ROUNDS 8

#define PATIENCE_DEFAULT_NS (30 * CLOCK_NS_PER_S)
#define KEY_CHARACTERS      40 /* of a CURVE key in Z85 */

int client_say(struct quern_error *ret, int code, const struct error *err)
{
    if (ret && err && err->text[0])
        memcpy(ret->text, err->text, sizeof ret->text);
    else if (ret)
        snprintf(ret->text, sizeof ret->text, "%s", strerror(-code));
    return code;
}

/* The endpoint of what the caller named. */
static int resolve(const char *wanted, char ret_endpoint[256], struct error *err)
{
    char folder[RUNDIR_PATH_MAX + 1];
    if (wanted && strstr(wanted, "://")) {
        if (strlen(wanted) >= 256)
            return error_set(err, -ENAMETOOLONG, "endpoint %.80s… is too long", wanted);
        strcpy(ret_endpoint, wanted);
        return 0;
    }
    if (wanted && wanted[0] != '/' && wanted[0] != '.')
        return error_set(err, -EINVAL,
                         "%.200s is no endpoint: ipc://PATH, tcp://HOST:PORT, or a run directory", wanted);
    int r = rundir_path(wanted, folder, err);
    if (r < 0)
        return r;
    char socket_path[RUNDIR_PATH_MAX + 16];
    snprintf(socket_path, sizeof socket_path, "%s/frontend", folder);
    if (access(socket_path, F_OK) < 0)
        return error_set(err, -ENOENT, "no pool runs in %s (there is no %s)", folder, socket_path);
    snprintf(ret_endpoint, 256, "ipc://%s", socket_path);
    return 0;
}

static void set_int(void *socket, int option, int value)
{
    zmq_setsockopt(socket, option, &value, sizeof value);
}

/* Both sockets speak CURVE with the broker's key and a key pair of this client's own. */
static int encrypt(struct quern *client, const char *server_key, struct error *err)
{
    void *const sockets[] = {client->dealer, client->stream};
    char public_key[KEY_CHARACTERS + 1], secret_key[KEY_CHARACTERS + 1];
    uint8_t binary[32];
    if (strlen(server_key) != KEY_CHARACTERS || !zmq_z85_decode(binary, server_key))
        return error_set(err, -EINVAL, "the server's key is not %d characters of Z85", KEY_CHARACTERS);
    if (zmq_curve_keypair(public_key, secret_key) < 0)
        return error_set(err, -errno, "CURVE: %s", zmq_strerror(errno));
    int r = 0;
    for (int i = 0; i < 2 && r == 0; i++)
        if (zmq_setsockopt(sockets[i], ZMQ_CURVE_SERVERKEY, server_key, KEY_CHARACTERS + 1) < 0 ||
            zmq_setsockopt(sockets[i], ZMQ_CURVE_PUBLICKEY, public_key, KEY_CHARACTERS + 1) < 0 ||
            zmq_setsockopt(sockets[i], ZMQ_CURVE_SECRETKEY, secret_key, KEY_CHARACTERS + 1) < 0)
            r = error_set(err, -errno, "CURVE: %s", zmq_strerror(errno));
    explicit_bzero(secret_key, sizeof secret_key);
    return r;
}

static int make_sockets(struct quern *client, const char *server_key, struct error *err)
{
    client->context = zmq_ctx_new();
    if (client->context)
        client->dealer = zmq_socket(client->context, ZMQ_DEALER);
    if (client->dealer)
        client->stream = zmq_socket(client->context, ZMQ_SUB);
    if (!client->stream)
        return error_set(err, -errno, "ZeroMQ: %s", zmq_strerror(errno));
    int64_t largest = PROTO_MAX_WORKER_BYTES;
    zmq_setsockopt(client->dealer, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    zmq_setsockopt(client->stream, ZMQ_MAXMSGSIZE, &largest, sizeof largest);
    set_int(client->dealer, ZMQ_LINGER, 200); /* the goodbye */
    set_int(client->dealer, ZMQ_SNDHWM, 4096);
    set_int(client->dealer, ZMQ_RCVHWM, 4096);
    set_int(client->stream, ZMQ_LINGER, 0);
    set_int(client->stream, ZMQ_RCVHWM, 65536);
    set_int(client->dealer, ZMQ_RECONNECT_IVL, 20);
    set_int(client->dealer, ZMQ_RECONNECT_IVL_MAX, 500);
    set_int(client->stream, ZMQ_RECONNECT_IVL, 20);
    set_int(client->stream, ZMQ_RECONNECT_IVL_MAX, 500);
    int r = server_key ? encrypt(client, server_key, err) : 0;
    if (r < 0)
        return r;
    if (zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session) < 0 ||
        zmq_connect(client->dealer, client->endpoint) < 0)
        return error_set(err, -errno, "%s: %s", client->endpoint, zmq_strerror(errno));
    return 0;
}

static int round_once(struct quern *client, int64_t wait_ms);

static int open_session(struct quern *client, int timeout_ms, struct error *err)
{
    uint64_t start = client->now = client->heard_ns = client->timers_ns = clock_ns();
    session_start(client);
    while (client->state != SESSION_OPEN) {
        int r = round_once(client, 10);
        if (r < 0 && r != -EINTR)
            return error_set(err, r, "%s", client->broken_err.text);
        if (r == -EINTR)
            return error_set(err, r, "interrupted");
        if (clock_ns() - start < (uint64_t)timeout_ms * CLOCK_NS_PER_MS)
            continue;
        if (client->state == SESSION_HELLO)
            return error_set(err, -ETIMEDOUT, "no broker answers at %s (waited %d ms)", client->endpoint,
                             timeout_ms);
        return error_set(err, -ETIMEDOUT,
                         "the broker at %s answers, but its stream %s does not (waited %d ms)",
                         client->endpoint, client->stream_endpoint, timeout_ms);
    }
    return 0;
}

int quern_connect(const char *endpoint, int timeout_ms, struct quern **ret_client,
                  struct quern_error *ret_err)
{
    return quern_connect_curve(endpoint, NULL, timeout_ms, ret_client, ret_err);
}

int quern_connect_curve(const char *endpoint, const char *server_key, int timeout_ms,
                        struct quern **ret_client, struct quern_error *ret_err)
{
    struct error err = {0};
    struct quern *client = calloc(1, sizeof *client);
    if (!client)
        return client_say(ret_err, -ENOMEM, NULL);
    client->session = random_id();
    client->patience_ns = PATIENCE_DEFAULT_NS;
    int r = message_decoder_new(&client->decoder);
    if (r == 0)
        r = message_decoder_new(&client->frame_decoder);
    if (r == 0)
        r = resolve(endpoint, client->endpoint, &err);
    if (r == 0)
        r = make_sockets(client, server_key, &err);
    if (r == 0)
        r = open_session(client, timeout_ms, &err);
    if (r < 0) {
        quern_free(client);
        return client_say(ret_err, r, &err);
    }
    *ret_client = client;
    return 0;
}

struct quern *quern_free(struct quern *client)
{
    if (!client)
        return NULL;
    if (client->dealer && client->opened_before) {
        struct message message = {.kind = MESSAGE_BYE};
        session_send(client, &message, NULL);
    }
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    {
        request_free(client, request);
    }
    if (client->stream)
        zmq_close(client->stream);
    if (client->dealer)
        zmq_close(client->dealer);
    if (client->context)
        zmq_ctx_term(client->context);
    message_decoder_free(client->decoder);
    message_decoder_free(client->frame_decoder);
    buffer_deinit(&client->out);
    session_forget_models(client);
    free(client->status_memory);
    ids_deinit(&client->tokens);
    free(client);
    return NULL;
}

void quern_set_patience(struct quern *client, uint32_t milliseconds)
{
    client->patience_ns = milliseconds * CLOCK_NS_PER_MS;
}

const struct quern_model *quern_models(const struct quern *client, size_t *ret_n)
{
    *ret_n = client->n_models;
    return client->models;
}

struct quern_id quern_session(const struct quern *client)
{
    struct quern_id id;
    memcpy(id.bytes, client->session.bytes, sizeof id.bytes);
    return id;
}

static void on_error(struct quern *client, const struct message *message)
{
    if (message->error.error == PROTO_HELLO_REQUIRED) {
        if (client->state == SESSION_OPEN || client->state == SESSION_JOIN)
            session_start(client);
        return;
    }
    if (client->state == SESSION_HELLO && !message->error.has_id && message->error.ref == 0) {
        char text[PROTO_MAX_TEXT_BYTES + 64];
        snprintf(text, sizeof text, "the pool refuses: %s: %.*s", proto_error_name(message->error.error),
                 (int)message->error.text.len, (const char *)message->error.text.data);
        session_break(client, -EPROTO, text);
        return;
    }
    if (!message->error.has_id) {
        question_answer(client, message);
        return;
    }
    struct request *request = request_find(client, &message->error.id);
    if (request)
        request_refused(client, request, message);
}

static void on_message(struct quern *client, const void *data, size_t len)
{
    struct message message;
    client->heard_ns = client->now;
    /* What cannot be read comes from a newer broker, or from none: it is not ours to judge. */
    if (message_decode(client->decoder, data, len, &message, NULL) != 0)
        return;
    switch (message.kind) {
    case MESSAGE_HELLO_OK:
        session_hello_ok(client, &message);
        break;
    case MESSAGE_ACCEPTED:
        request_accepted(client, &message);
        break;
    case MESSAGE_ERROR:
        on_error(client, &message);
        break;
    case MESSAGE_CANCEL_OK: {
        struct request *request = request_find(client, &message.cancel_ok.id);
        if (request && request->cancels > 0)
            request->cancels--;
        break;
    }
    case MESSAGE_REPLAY_OK:
        stream_page(client, &message);
        break;
    case MESSAGE_ATTACH_OK:
        request_attached(client, &message);
        break;
    case MESSAGE_END:
        request_end_told(client, &message);
        break;
    case MESSAGE_STATUS_OK:
    case MESSAGE_TOKENIZE_OK:
        question_answer(client, &message);
        break;
    default: /* pong, bye_ok: that it came is all they say */
        break;
    }
}

static void on_stream(struct quern *client, const void *topic, size_t topic_len, const void *data, size_t len)
{
    struct message message;
    if (topic_len < sizeof client->session || memcmp(topic, &client->session, sizeof client->session) != 0)
        return;
    if (message_decode(client->frame_decoder, data, len, &message, NULL) != 0)
        return; /* a gap that the replay closes */
    client->heard_ns = client->now;
    if (message.kind == MESSAGE_FRAME)
        stream_frame(client, &message.frame, data, len);
    else if (message.kind == MESSAGE_WELCOME)
        session_welcome(client, message.welcome.nonce);
}

/* Takes one message of the DEALER. 0 when there is none. */
static int take_message(struct quern *client)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    int got = zmq_msg_recv(&part, client->dealer, ZMQ_DONTWAIT) >= 0;
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
    zmq_msg_init(&topic);
    if (zmq_msg_recv(&topic, client->stream, ZMQ_DONTWAIT) < 0) {
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
            on_stream(client, zmq_msg_data(&topic), zmq_msg_size(&topic), zmq_msg_data(&part),
                      zmq_msg_size(&part));
        zmq_msg_close(&part);
    }
    zmq_msg_close(&topic);
    return 1;
}

/* Takes what both sockets have, up to a bound. An empty socket costs a system call to find empty: so the
 * DEALER, which mostly is, is looked at once for many frames. */
static void take_what_came(struct quern *client)
{
    for (int rounds = 0; rounds < ROUNDS; rounds++) {
        int messages = 0, frames = 0;
        while (messages < BATCH && take_message(client))
            messages++;
        while (frames < BATCH && take_frame(client))
            frames++;
        if (messages < BATCH && frames < BATCH)
            return;
    }
}

static void run_timers(struct quern *client)
{
    /* Whoever did not call for a while has no right to call the broker silent. */
    if (client->now - client->timers_ns > 2 * PING_NS)
        client->heard_ns = client->now;
    client->timers_ns = client->now;
    session_timers(client);
    requests_timers(client);
    if (client->state != SESSION_BROKEN && client->now - client->heard_ns >= client->patience_ns) {
        char text[384];
        snprintf(text, sizeof text, "the broker at %s has not answered for %.1f s", client->endpoint,
                 (double)(client->now - client->heard_ns) / CLOCK_NS_PER_S);
        session_break(client, -ETIMEDOUT, text);
    }
}

/* Waits for something to come, takes it, runs the timers. 0, -EINTR, or the code of a broken session. */
static int round_once(struct quern *client, int64_t wait_ms)
{
    zmq_pollitem_t items[2] = {{.socket = client->dealer, .events = ZMQ_POLLIN},
                               {.socket = client->stream, .events = ZMQ_POLLIN}};
    if (client->state == SESSION_BROKEN)
        return client->broken;
    int before = client->delivered;
    bool interrupted = wait_ms > 0 && zmq_poll(items, 2, wait_ms) < 0 && errno == EINTR;
    client->now = clock_ns();
    take_what_came(client);
    if (client->now - client->timers_ns >= TIMERS_NS || client->delivered == before)
        run_timers(client);
    if (client->state == SESSION_BROKEN)
        return client->broken;
    return interrupted ? -EINTR : 0;
}

int quern_dispatch(struct quern *client, int timeout_ms, struct quern_error *ret_err)
{
    struct error err = {0};
    if (client->dispatching) {
        error_set(&err, 0, "quern_dispatch was called from inside a callback");
        return client_say(ret_err, -EBUSY, &err);
    }
    client->dispatching = true;
    client->delivered = 0;
    uint64_t start = clock_ns();
    int r = round_once(client, 0);
    while (r == 0 && client->delivered == 0 && !client->question.answered) {
        /* In short waits, for the timers of requests and of the opening. */
        int64_t left =
            timeout_ms < 0 ? INT64_MAX : timeout_ms - (int64_t)((clock_ns() - start) / CLOCK_NS_PER_MS);
        if (left <= 0)
            break;
        int64_t step = client->requests || client->state != SESSION_OPEN ? 20 : 250;
        r = round_once(client, left < step ? left : step);
    }
    client->dispatching = false;
    if (client->delivered > 0 || r == -EINTR)
        return client->delivered;
    return r < 0 ? client_say(ret_err, r, &client->broken_err) : 0;
}

struct waiting {
    quern_output_fn *fn;
    void *arg;
    bool over;
};

static void on_waited_output(void *arg, const struct quern_output *output)
{
    struct waiting *waiting = arg;
    waiting->over = output->end != NULL;
    if (waiting->fn)
        waiting->fn(waiting->arg, output);
}

int quern_generate_wait(struct quern *client, const struct quern_request *request, quern_output_fn *fn,
                        void *arg, struct quern_error *err)
{
    struct waiting waiting = {fn, arg, false};
    int r = quern_generate(client, request, on_waited_output, &waiting, NULL, err);
    /* A broken session ends its requests too: the callback has heard, before the code comes back. */
    while (r >= 0 && !waiting.over)
        r = quern_dispatch(client, -1, err);
    return waiting.over || r > 0 ? 0 : r;
}
