/* SPDX-License-Identifier: MIT */
/* Any messages of clients and workers, in any order, as a broker takes them: whatever it answers is a
 * message, its books agree, and when all is over nothing is left in the vault.
 *
 * An input is messages: a byte that says from whom (modulo 6: two clients, two workers, the streams of the
 * two) and how long after the last (the rest, in twentieths of a second), two how long it is, and its bytes;
 * on a stream the first 32 are the topic. The workers were started by this pool, and have not registered. No
 * network: sockets within the process. */

#include "tests/fuzz/driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/frames.h"
#include "broker/from_clients.h"
#include "broker/from_workers.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/upkeep.h"
#include "broker/core/replay.h"
#include "broker/core/tokenize.h"
#include "common/clock.h"

enum { CLIENTS = 2, WORKERS = 2, STREAMS = CLIENTS + WORKERS, SENDERS = STREAMS + WORKERS };
#define MOST_ANSWER ((size_t)32 << 20)

static struct broker *broker;
static void *context, *clients_router, *workers_router;
static void *senders[SENDERS];
static struct vault *vault;
static struct board_slot board[WORKERS + 1];
static int supervision[2];
static struct message_decoder *decoders[4]; /* the last: of answers */
static uint8_t *answer;                     /* [MOST_ANSWER] */

/* ---- the pool ---- */

static void *new_socket(int type)
{
    int none = 0, one = 1;
    void *socket = zmq_socket(context, type);
    if (!socket || zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none) < 0 ||
        zmq_setsockopt(socket, ZMQ_SNDHWM, &none, sizeof none) < 0 ||
        zmq_setsockopt(socket, ZMQ_RCVHWM, &none, sizeof none) < 0 ||
        (type == ZMQ_ROUTER && zmq_setsockopt(socket, ZMQ_ROUTER_MANDATORY, &one, sizeof one) < 0))
        abort();
    return socket;
}

static void *bound(int type, const char *endpoint)
{
    void *socket = new_socket(type);
    if (zmq_bind(socket, endpoint) < 0)
        abort();
    return socket;
}

static void *dealer(const char *endpoint, const char *name)
{
    void *socket = new_socket(ZMQ_DEALER);
    if (zmq_setsockopt(socket, ZMQ_ROUTING_ID, name, strlen(name)) < 0 || zmq_connect(socket, endpoint) < 0)
        abort();
    return socket;
}

static void begin(void)
{
    int vault_fd;
    char text[32];
    context = zmq_ctx_new();
    clients_router = bound(ZMQ_ROUTER, "inproc://clients");
    workers_router = bound(ZMQ_ROUTER, "inproc://workers");
    for (int i = 0; i < STREAMS; i++) {
        snprintf(text, sizeof text, "peer-%d", i);
        senders[i] = dealer(i < CLIENTS ? "inproc://clients" : "inproc://workers", text);
    }
    for (int i = 0; i < WORKERS; i++) {
        snprintf(text, sizeof text, "inproc://stream-%d", i);
        senders[STREAMS + i] = bound(ZMQ_PUB, text);
    }
    broker = calloc(1, sizeof *broker);
    answer = malloc(MOST_ANSWER);
    if (!broker || !answer || vault_create(VAULT_STEP_BYTES, &vault_fd) < 0 ||
        vault_open(vault_fd, &vault, NULL) < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, supervision) < 0 ||
        credit_total_init(&broker->client_link.credit, NULL) < 0 ||
        stream_init(&broker->stream, context, 1, 1, NULL) < 0)
        abort();
    for (int i = 0; i < 4; i++)
        if (message_decoder_new(&decoders[i]) < 0)
            abort();
}

static void start_worker(uint32_t i)
{
    struct worker *worker = &broker->workers[i];
    struct place_record *record = &broker->supervisor.places[i].record;
    worker->index = i;
    worker->state = WORKER_STARTING;
    worker->incarnation = 1;
    snprintf(worker->name, sizeof worker->name, "worker-%u", i);
    snprintf(worker->endpoint, sizeof worker->endpoint, "inproc://stream-%u", i);
    worker->link.len = (uint8_t)snprintf((char *)worker->link.bytes, sizeof worker->link.bytes, "peer-%u",
                                         CLIENTS + i); /* as `begin` calls it */
    *record = (struct place_record){.index = i, .state = PLACE_STARTING, .incarnation = 1, .pid = 100 + i};
}

static void open_pool(void)
{
    const struct credit_total credit = broker->client_link.credit;
    const struct stream stream = broker->stream;
    memset(broker, 0, sizeof *broker);
    broker->stream = stream;
    broker->context = context;
    broker->now = CLOCK_NS_PER_S;
    broker->client_link = (struct client_link){.router = clients_router,
                                               .sessions = &broker->sessions,
                                               .credit = credit,
                                               .most_unread = CLIENT_LINK_UNREAD_BYTES};
    broker->sessions.credit = &broker->client_link.credit;
    broker->supervisor = (struct supervisor){.fd = supervision[0],
                                             .boot = 9,
                                             .turns = &board[WORKERS],
                                             .n = WORKERS,
                                             .rundir_fd = -1,
                                             .vault_fd = -1};
    broker->worker_link = (struct worker_link){.router = workers_router,
                                               .supervisor = &broker->supervisor,
                                               .workers = broker->workers,
                                               .n_workers = WORKERS};
    broker->n_workers = WORKERS;
    broker->decoder = decoders[0];
    broker->request_decoder = decoders[1];
    broker->frame_decoder = decoders[2];
    broker->journal = (struct journal){.limit = JOURNAL_LIMIT_BYTES, .vault = vault};
    broker->ledger.retention_ns = 2 * CLOCK_NS_PER_S;
    broker->admission.max_queued = 8;
    broker->admission.max_queued_bytes = ADMISSION_MAX_QUEUED_BYTES;
    queue_init(&broker->queue, 1);
    growth_init(&broker->growth, &broker->journal, &broker->ledger, &broker->admission);
    for (uint32_t i = 0; i < WORKERS; i++) {
        broker->supervisor.slots[i] = &board[i];
        start_worker(i);
    }
    if (routing_init(&broker->routing, broker->workers, WORKERS, false, 1) < 0)
        abort();
}

static void close_pool(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        frames_close(&broker->workers[i]);
        outbox_deinit(&broker->workers[i].outbox);
        buffer_deinit(&broker->workers[i].credits.topics);
        ids_deinit(&broker->workers[i].credits.counts);
    }
    lifecycle_clear(broker);
    queue_deinit(&broker->queue);
    growth_deinit(&broker->growth);
    routing_deinit(&broker->routing);
    tokenize_table_deinit(&broker->tokenize);
    journal_page_deinit(&broker->page);
    buffer_deinit(&broker->scratch);
    buffer_deinit(&broker->client_link.scratch);
    buffer_deinit(&broker->worker_link.scratch);
    if (broker->ledger.n != 0 || broker->assemblies || vault_used(vault) != 0)
        abort();
}

/* ---- one turn of its loop ---- */

static void turn(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        broker->workers[i].news.look = true;
        frames_drain(broker, &broker->workers[i]);
    }
    from_workers_drain(broker);
    from_clients_drain(broker);
    lifecycle_expire(broker);
    client_link_shed(&broker->client_link);
    broker_upkeep(broker);
    tokenize_expire(broker);
    lifecycle_dispatch(broker);
    tokenize_dispatch(broker);
    supervisor_flush(&broker->supervisor);
    for (uint32_t i = 0; i < WORKERS; i++)
        worker_link_acknowledge(&broker->worker_link, &broker->workers[i], broker->now);
    client_link_flush(&broker->client_link);
    replay_send_owed(broker);
    broker->paged_bytes = 0;
    worker_link_flush(&broker->worker_link);
}

static void take_orders(void)
{
    struct order order;
    while (supervision_receive(supervision[1], &order, sizeof order) == 0)
        if (order.kind > ORDER_STOP || order.index >= WORKERS)
            abort();
}

static void read_answers(void)
{
    struct message message;
    int n;
    for (int i = 0; i < STREAMS; i++)
        while ((n = zmq_recv(senders[i], answer, MOST_ANSWER, ZMQ_DONTWAIT)) >= 0)
            if ((size_t)n > MOST_ANSWER ||
                message_decode(decoders[3], answer, (size_t)n, &message, NULL) != 0)
                abort();
}

/* Requests that wait, that workers have, and that have ended are all there are. */
static void check_books(void)
{
    struct request *request, *next;
    size_t alive = 0;
    HASH_ITER(by_home, broker->ledger.by_home, request, next)
    {
        alive += request->state != REQUEST_ENDED;
    }
    if (alive != broker_n_alive(broker))
        abort();
}

static void say(unsigned from, const uint8_t *data, size_t len)
{
    int events;
    size_t size = sizeof events;
    if (from < STREAMS) {
        zmq_send(senders[from], data, len, ZMQ_DONTWAIT);
        return;
    }
    zmq_getsockopt(senders[from], ZMQ_EVENTS, &events, &size); /* it learns who listens */
    size_t topic = len < 32 ? len : 32;
    zmq_send(senders[from], data, topic, ZMQ_DONTWAIT | ZMQ_SNDMORE);
    zmq_send(senders[from], data + topic, len - topic, ZMQ_DONTWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    if (!broker)
        begin();
    open_pool();
    for (size_t at = 0; len - at >= 3;) {
        size_t n = data[at + 1] | (size_t)data[at + 2] << 8;
        unsigned from = data[at] % SENDERS;
        broker->now += data[at] / SENDERS * (CLOCK_NS_PER_S / 20);
        at += 3;
        n = n < len - at ? n : len - at;
        say(from, data + at, n);
        at += n;
        turn();
        check_books();
        read_answers();
        take_orders();
    }
    lifecycle_end_all(broker, "over");
    check_books();
    close_pool();
    read_answers();
    take_orders();
    return 0;
}
