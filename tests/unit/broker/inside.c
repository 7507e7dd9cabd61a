/* SPDX-License-Identifier: MIT */
/* See inside.h. */

#include "tests/unit/broker/inside.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/frames.h"
#include "broker/from_clients.h"
#include "broker/from_workers.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "common/clock.h"
#include "proto/supervision.h"

struct broker *broker;
struct session *sessions[INSIDE_CLIENTS];
int inside_orders;

static void *controls[INSIDE_CLIENTS], *listeners[INSIDE_CLIENTS];
static void *dealers[INSIDE_WORKERS], *publishers[INSIDE_WORKERS];
static struct message_decoder *decoder;
static struct buffer wire;

static void *make_socket(int kind, const char *endpoint, bool binds)
{
    int none = 0, one = 1;
    void *socket = zmq_socket(broker->context, kind);
    ck_assert_ptr_nonnull(socket);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    if (kind == ZMQ_ROUTER)
        zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    if (endpoint)
        ck_assert_int_eq(binds ? zmq_bind(socket, endpoint) : zmq_connect(socket, endpoint), 0);
    return socket;
}

static void make_books(void)
{
    broker->secret = 7;
    broker->now = 1000 * CLOCK_NS_PER_S;
    broker->options.drain_seconds = 30;
    broker->journal.limit = (uint64_t)64 << 20;
    broker->ledger.seed = broker->sessions.seed = broker->admission.shares.seed = broker->secret;
    broker->admission.secret = broker->secret;
    broker->admission.max_queued = ADMISSION_MAX_QUEUED;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    broker->n_workers = INSIDE_WORKERS;
    queue_init(&broker->queue, broker->secret);
    growth_init(&broker->growth, &broker->journal, &broker->ledger, &broker->admission);
    ck_assert_int_eq(vault_create(VAULT_STEP_BYTES, &broker->supervisor.vault_fd), 0);
    ck_assert_int_eq(vault_open(broker->supervisor.vault_fd, &broker->journal.vault, NULL), 0);
    ck_assert_int_eq(routing_init(&broker->routing, broker->workers, INSIDE_WORKERS, false, 7), 0);
    ck_assert_int_eq(message_decoder_new(&broker->decoder), 0);
    ck_assert_int_eq(message_decoder_new(&broker->request_decoder), 0);
    ck_assert_int_eq(message_decoder_new(&broker->frame_decoder), 0);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
}

static struct board_slot board[INSIDE_WORKERS + 1];

static void make_supervisor(void)
{
    int pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, pair), 0);
    inside_orders = pair[0];
    broker->supervisor.fd = pair[1];
    broker->supervisor.boot = INSIDE_BOOT;
    broker->supervisor.n = INSIDE_WORKERS;
    memset(board, 0, sizeof board);
    broker->supervisor.turns = &board[INSIDE_WORKERS];
    for (int i = 0; i < INSIDE_WORKERS; i++)
        broker->supervisor.slots[i] = &board[i];
}

static void make_sockets(void)
{
    struct error err;
    ck_assert_int_eq(stream_init(&broker->stream, broker->context, 1, 7, &err), 0);
    ck_assert_int_eq(zmq_bind(broker->stream.shards[0], "inproc://stream"), 0);
    broker->client_link = (struct client_link){.router = make_socket(ZMQ_ROUTER, "inproc://clients", true),
                                               .sessions = &broker->sessions,
                                               .most_unread = CLIENT_LINK_UNREAD_BYTES};
    ck_assert_int_eq(credit_total_init(&broker->client_link.credit, &err), 0);
    broker->sessions.credit = &broker->client_link.credit;
    broker->worker_link = (struct worker_link){.router = make_socket(ZMQ_ROUTER, NULL, false),
                                               .supervisor = &broker->supervisor,
                                               .workers = broker->workers,
                                               .n_workers = INSIDE_WORKERS};
    strcpy(broker->endpoints.streams[0], "inproc://stream");
    broker->endpoints.n_streams = 1;
}

/* ---- clients ---- */

static struct message decode(void *socket)
{
    static uint8_t bytes[1 << 20];
    struct message message = {.kind = MESSAGE_NONE};
    struct error err = {{0}};
    int n = zmq_recv(socket, bytes, sizeof bytes, ZMQ_DONTWAIT);
    if (n >= 0)
        ck_assert_msg(message_decode(decoder, bytes, (size_t)n, &message, &err) == 0, "%s", err.text);
    return message;
}

static void encode(const struct message *message)
{
    struct error err = {{0}};
    wire.len = 0;
    ck_assert_msg(message_encode_or_say(message, &wire, &err) == 0, "%s", err.text);
}

void client_says_bytes(int client, const void *bytes, size_t len)
{
    ck_assert_int_ge(zmq_send(controls[client], bytes, len, 0), 0);
    from_clients_drain(broker);
}

void client_says(int client, const struct message *message)
{
    encode(message);
    client_says_bytes(client, wire.data, wire.len);
}

struct message client_hears(int client)
{
    return decode(controls[client]);
}

struct message client_listens(int client)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    if (zmq_recv(listeners[client], topic, sizeof topic, ZMQ_DONTWAIT) < 0)
        return (struct message){.kind = MESSAGE_NONE};
    return decode(listeners[client]);
}

static struct id128 session_id(int client)
{
    return (struct id128){{(uint8_t)('a' + client)}};
}

void client_opens(int client)
{
    struct message hello = {.kind = MESSAGE_HELLO};
    hello.hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    hello.hello.session = session_id(client);
    client_says(client, &hello);
    ck_assert_int_eq(client_hears(client).kind, MESSAGE_HELLO_OK);
    sessions[client] = session_find(&broker->sessions, &hello.hello.session);
    ck_assert_ptr_nonnull(sessions[client]);
}

static void subscribe(int client, int option)
{
    struct id128 id = session_id(client);
    ck_assert_int_eq(zmq_setsockopt(listeners[client], option, &id, sizeof id), 0);
    broker->stream.ready = 1;
    from_clients_drain_stream(broker);
    ck_assert_int_eq(stream_has_listener(&broker->stream, &id), option == ZMQ_SUBSCRIBE);
}

void client_listens_no_more(int client)
{
    subscribe(client, ZMQ_UNSUBSCRIBE);
}

void client_listens_again(int client)
{
    subscribe(client, ZMQ_SUBSCRIBE);
}

static void make_client(int client)
{
    controls[client] = make_socket(ZMQ_DEALER, "inproc://clients", false);
    listeners[client] = make_socket(ZMQ_SUB, "inproc://stream", false);
    client_listens_again(client);
    client_opens(client);
}

/* ---- workers ---- */

/* As its loop does, when the stream's descriptor says that something came. */
static void frames_come(int worker)
{
    broker->workers[worker].news.look = true;
    frames_drain(broker, &broker->workers[worker]);
}

void worker_says_bytes(int worker, const void *bytes, size_t len)
{
    ck_assert_int_ge(zmq_send(dealers[worker], bytes, len, 0), 0);
    from_workers_drain(broker);
}

void worker_says(int worker, const struct message *message)
{
    encode(message);
    worker_says_bytes(worker, wire.data, wire.len);
}

struct message worker_hears(int worker)
{
    return decode(dealers[worker]);
}

void worker_registers(int worker, uint64_t wseq, uint64_t acked)
{
    static const uint8_t digest[16] = {9};
    const struct worker *place = &broker->workers[worker];
    struct message hello = {.kind = MESSAGE_REGISTER}, ready = {.kind = MESSAGE_READY};
    hello.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    hello.register_.name = bytes_of_string(place->name);
    hello.register_.incarnation = ready.ready.incarnation = place->incarnation;
    hello.register_.pid = broker->supervisor.places[worker].record.pid;
    hello.register_.stream = bytes_of_string(place->endpoint);
    hello.register_.model = BYTES_LITERAL("m");
    hello.register_.device = BYTES_LITERAL("cpu");
    hello.register_.digest = (struct bytes){digest, sizeof digest};
    hello.register_.slots = 4;
    hello.register_.context = 4096;
    hello.register_.wseq = wseq;
    hello.register_.acked = acked;
    worker_says(worker, &hello);
    ck_assert_int_eq(worker_hears(worker).kind, MESSAGE_REGISTER_OK);
    uint8_t subscription[64];
    while (zmq_recv(publishers[worker], subscription, sizeof subscription, ZMQ_DONTWAIT) >= 0)
        ;
    worker_says(worker, &ready);
    ck_assert_int_eq(place->state, WORKER_READY);
    frames_come(worker);
}

static void make_worker(int worker)
{
    struct worker *place = &broker->workers[worker];
    struct place_record *record = &broker->supervisor.places[worker].record;
    char link[32];
    *place = (struct worker){.index = (uint32_t)worker, .incarnation = 1, .state = WORKER_STARTING};
    snprintf(place->name, sizeof place->name, "worker-%d", worker);
    snprintf(place->endpoint, sizeof place->endpoint, "inproc://worker-%d", worker);
    *record = (struct place_record){.state = PLACE_READY, .incarnation = 1, .pid = 100 + (uint32_t)worker};
    publishers[worker] = make_socket(ZMQ_XPUB, place->endpoint, true);
    snprintf(link, sizeof link, "inproc://link-%d", worker);
    dealers[worker] = make_socket(ZMQ_DEALER, link, true);
    ck_assert_int_eq(worker_link_connect(&broker->worker_link, place, link, NULL), 0);
    worker_registers(worker, 0, 0);
}

void worker_publishes_under(int worker, const struct request_key *topic, const struct frame *frame)
{
    struct message message = {.kind = MESSAGE_FRAME, .frame = *frame};
    if (message.frame.wseq == 0)
        message.frame.wseq = broker->workers[worker].wseq + 1;
    encode(&message);
    ck_assert_int_ge(zmq_send(publishers[worker], topic, sizeof *topic, ZMQ_SNDMORE), 0);
    ck_assert_int_ge(zmq_send(publishers[worker], wire.data, wire.len, 0), 0);
    frames_come(worker);
}

void worker_publishes(int worker, struct id128 session, const struct frame *frame)
{
    worker_publishes_under(worker, &(struct request_key){session, frame->id}, frame);
}

int inside_killed(uint32_t *ret_index)
{
    struct order order;
    int n = 0;
    while (supervision_receive(inside_orders, &order, sizeof order) == 0) {
        if (order.kind != ORDER_KILL)
            continue;
        *ret_index = order.index;
        n++;
    }
    return n;
}

/* ---- the whole ---- */

void inside_set_up(void)
{
    uint32_t none;
    broker = calloc(1, sizeof *broker);
    ck_assert_ptr_nonnull(broker);
    broker->context = zmq_ctx_new();
    make_books();
    make_supervisor();
    make_sockets();
    for (int i = 0; i < INSIDE_CLIENTS; i++)
        make_client(i);
    for (int i = 0; i < INSIDE_WORKERS; i++)
        make_worker(i);
    ck_assert_int_eq(inside_killed(&none), 0);
}

static void free_books(void)
{
    lifecycle_end_all(broker, "the test is over");
    for (int i = 0; i < INSIDE_WORKERS; i++)
        ck_assert_uint_eq(broker->workers[i].load, 0);
    lifecycle_clear(broker);
    ck_assert_uint_eq(broker->journal.used, 0);
    ck_assert_uint_eq(broker->admission.queued, 0);
    ck_assert_ptr_null(broker->admission.shares.by_id);
    queue_deinit(&broker->queue);
    growth_deinit(&broker->growth);
    routing_deinit(&broker->routing);
    rates_deinit(&broker->rates);
    vault_close(broker->journal.vault);
    tokenize_table_deinit(&broker->tokenize);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    message_decoder_free(broker->decoder);
    message_decoder_free(broker->request_decoder);
    message_decoder_free(broker->frame_decoder);
}

void inside_tear_down(void)
{
    for (int i = 0; i < INSIDE_WORKERS; i++) {
        zmq_close(dealers[i]);
        zmq_close(publishers[i]);
    }
    free_books();
    for (int i = 0; i < INSIDE_WORKERS; i++) {
        frames_close(&broker->workers[i]);
        outbox_deinit(&broker->workers[i].outbox);
        buffer_deinit(&broker->workers[i].credits.topics);
        ids_deinit(&broker->workers[i].credits.counts);
    }
    for (int i = 0; i < INSIDE_CLIENTS; i++) {
        zmq_close(controls[i]);
        zmq_close(listeners[i]);
    }
    stream_deinit(&broker->stream);
    client_link_deinit(&broker->client_link);
    worker_link_deinit(&broker->worker_link);
    zmq_ctx_term(broker->context);
    credit_total_deinit(&broker->client_link.credit);
    close(inside_orders);
    close(broker->supervisor.fd);
    close(broker->supervisor.vault_fd);
    free(broker);
    decoder = message_decoder_free(decoder);
    buffer_deinit(&wire);
}

void inside_pass(uint64_t ns)
{
    broker->now += ns;
    for (int i = 0; i < INSIDE_CLIENTS; i++)
        if (sessions[i])
            session_renew(sessions[i], broker->now);
}

/* ---- requests ---- */

struct id128 inside_id(uint8_t name)
{
    return (struct id128){{name}};
}

struct message client_generates(int client, uint8_t name, void (*change)(struct generation *))
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    generate.generate.id = inside_id(name);
    generation_defaults(&generate.generate.generation);
    generate.generate.generation.prompt.text = BYTES_LITERAL("a prompt");
    generate.generate.generation.max_tokens = 100;
    if (change)
        change(&generate.generate.generation);
    client_says(client, &generate);
    return client_hears(client);
}

struct request *inside_find(int client, uint8_t name)
{
    const struct request_key key = {session_id(client), inside_id(name)};
    return ledger_find(&broker->ledger, &key);
}

struct request *inside_admit(int client, uint8_t name, void (*change)(struct generation *))
{
    struct message said = client_generates(client, name, change);
    ck_assert_msg(said.kind == MESSAGE_ACCEPTED, "%s: %.*s", message_kind_name(said.kind),
                  said.kind == MESSAGE_ERROR ? (int)said.error.text.len : 0,
                  said.kind == MESSAGE_ERROR ? (const char *)said.error.text.data : "");
    return inside_find(client, name);
}

void inside_produce(const struct request *request, unsigned n, enum end_reason reason)
{
    static const int32_t ids[16];
    struct frame frame = {.id = request->home.id,
                          .epoch = request->epoch,
                          .seq = request->log.count,
                          .off = request->log.text_bytes,
                          .ids = {ids, n},
                          .text = {"abcdefghijklmnop", n},
                          .has_end = reason != END_REASON_COUNT};
    ck_assert_ptr_nonnull(request->worker);
    if (frame.has_end)
        frame.end = (struct ending){.reason = reason, .usage = {3, 0, (uint32_t)request->log.count + n}};
    worker_publishes((int)request->worker->index, request->home.session, &frame);
}
