/* SPDX-License-Identifier: MIT */
/* The worker's side of the backend socket.
 *
 *     unregistered ──register, register_ok──▶ registered ──its mark is subscribed: ready──▶ ready
 *          ▲                                                                               │
 *          └───────────────── hello_required: the broker does not know us ─────────────────┘
 *
 * `register` is repeated until it is answered, for the broker may not be there yet or have been started
 * again. Only what a broker says to a worker it knows counts as hearing from it; the rest may be anyone's.
 *
 * Inside a step (the progress hook) cancels, acknowledgements and pings are heeded at once; everything else,
 * and a cancel of what is not known yet, is set aside in order and taken in after the step. */

#include "worker/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "common/log.h"

#include <utlist.h>

#define REGISTER_NS          CLOCK_NS_PER_S /* between registrations without an answer */
#define DEFAULT_HEARTBEAT_NS (250 * CLOCK_NS_PER_MS)
#define LEAST_HEARTBEAT_MS   10
#define MOST_AT_ONCE         64 /* messages of one call, so that a flood does not stop the steps */
#define LINGER_MS            2000

int link_open(struct worker *worker, struct error *err)
{
    const int unlimited = 0, linger = LINGER_MS;
    const int64_t most = PROTO_MAX_WORKER_BYTES;
    worker->heartbeat_ns = DEFAULT_HEARTBEAT_NS;
    worker->heard_ns = clock_ns();
    worker->control = zmq_socket(worker->zmq, ZMQ_DEALER);
    if (!worker->control)
        return error_set(err, -errno, "broker: %s", zmq_strerror(errno));
    /* What piles up while the broker is away is bounded by the requests that run, and by its return. */
    zmq_setsockopt(worker->control, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(worker->control, ZMQ_MAXMSGSIZE, &most, sizeof most);
    zmq_setsockopt(worker->control, ZMQ_LINGER, &linger, sizeof linger);
    if (zmq_connect(worker->control, worker->options.broker) < 0)
        return error_set(err, -errno, "%s: %s", worker->options.broker, zmq_strerror(errno));
    return 0;
}

void link_close(struct worker *worker)
{
    struct deferred *deferred, *next;
    DL_FOREACH_SAFE(worker->deferred, deferred, next)
    {
        free(deferred);
    }
    worker->deferred = NULL;
    if (worker->control)
        zmq_close(worker->control);
    worker->control = NULL;
}

void link_send(struct worker *worker, const struct message *message)
{
    struct error err = {0};
    worker->scratch.len = 0;
    int r = message_encode_or_say(message, &worker->scratch, &err);
    if (r == 0 && zmq_send(worker->control, worker->scratch.data, worker->scratch.len, ZMQ_DONTWAIT) < 0)
        r = error_set(&err, -errno, "%s", zmq_strerror(errno));
    if (r < 0)
        log_error("%s not sent: %s", message_kind_name(message->kind), err.text[0] ? err.text : strerror(-r));
}

/* ---- registration ---- */

static void send_register(struct worker *worker)
{
    const struct model *model = worker->model;
    uint32_t context = engine_context(worker->engine), cache = engine_max_tokens_in_cache(worker->engine);
    struct engine_stats stats;
    engine_stats(worker->engine, &stats);
    struct message message = {.kind = MESSAGE_REGISTER};
    message.register_.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    message.register_.name = bytes_of_string(worker->options.name);
    message.register_.incarnation = worker->options.incarnation;
    message.register_.pid = (uint32_t)getpid();
    message.register_.slots = stats.slots;
    message.register_.stream = bytes_of_string(worker->stream.endpoint);
    message.register_.model = bytes_of_string(model->params.name);
    message.register_.digest = (struct bytes){model->digest, sizeof model->digest};
    message.register_.context = context;
    message.register_.chat = worker->chat != NULL;
    message.register_.kv_blocks = stats.blocks_total;
    message.register_.max_prompt = (context < cache ? context : cache) - 1;
    message.register_.device = bytes_of_string(engine_backend_info(worker->engine)->device);
    message.register_.wseq = worker->stream.window.last;
    link_send(worker, &message);
}

static void send_heartbeat(struct worker *worker)
{
    struct engine_stats stats;
    engine_stats(worker->engine, &stats);
    struct message message = {.kind = MESSAGE_HEARTBEAT};
    message.heartbeat.ref = ++worker->heartbeats;
    message.heartbeat.active = stats.active;
    message.heartbeat.waiting = stats.waiting;
    message.heartbeat.kv_free = stats.blocks_free;
    message.heartbeat.wseq = worker->stream.window.last;
    message.heartbeat.waiting_tokens = stats.waiting_tokens;
    link_send(worker, &message);
}

void link_tend(struct worker *worker, uint64_t now)
{
    if (!worker->registered) {
        if (now < worker->next_register_ns)
            return;
        send_register(worker);
        worker->next_register_ns = now + REGISTER_NS;
        return;
    }
    if (!worker->ready && stream_is_heard(&worker->stream, &worker->mark)) {
        struct message message = {.kind = MESSAGE_READY};
        message.ready.incarnation = worker->options.incarnation;
        link_send(worker, &message);
        worker->ready = true;
        worker->state = worker->draining ? WORKER_DRAINING : WORKER_READY;
        worker->next_report_ns = 0;
        log_info("ready: %s, %s", worker->model->params.name, engine_backend_info(worker->engine)->device);
    }
    if (now >= worker->next_heartbeat_ns) {
        send_heartbeat(worker);
        worker->next_heartbeat_ns = now + worker->heartbeat_ns;
    }
}

static void take_register_ok(struct worker *worker, const struct message *message)
{
    uint32_t ms = message->register_ok.heartbeat_ms;
    if (worker->boot != 0 && worker->boot != message->register_ok.boot)
        log_info("the broker was started again");
    worker->boot = message->register_ok.boot;
    worker->mark = message->register_ok.subscription;
    worker->heartbeat_ns = (ms < LEAST_HEARTBEAT_MS ? LEAST_HEARTBEAT_MS : ms) * CLOCK_NS_PER_MS;
    worker->registered = true;
    worker->ready = false;
}

static void take_error(struct worker *worker, const struct message *message)
{
    if (message->error.error == PROTO_HELLO_REQUIRED && worker->registered) {
        worker->registered = worker->ready = false;
        worker->next_register_ns = 0;
    } else if (message->error.error != PROTO_HELLO_REQUIRED) {
        log_warn("the broker says: %.*s", (int)message->error.text.len,
                 (const char *)message->error.text.data);
    }
}

/* ---- messages ---- */

static bool take_cancel(struct worker *worker, const struct message *message)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    struct request *request;
    memcpy(topic, &message->cancel.session, sizeof(struct id128));
    memcpy(topic + sizeof(struct id128), &message->cancel.id, sizeof(struct id128));
    HASH_FIND(hh, worker->requests, topic, sizeof topic, request);
    return request && engine_cancel(worker->engine, (uint64_t)(uintptr_t)request);
}

static void take_drain(struct worker *worker)
{
    if (worker->draining)
        return;
    worker->draining = true;
    worker->state = WORKER_DRAINING;
    worker->next_report_ns = 0;
}

static void answer_ping(struct worker *worker, uint64_t ref)
{
    struct message message = {.kind = MESSAGE_PONG};
    message.pong.ref = ref;
    link_send(worker, &message);
}

/* Takes a message. False: not while a step runs. */
static bool take(struct worker *worker, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_CANCEL: /* unknown during a step: its assignment may be set aside */
        return take_cancel(worker, message) || !worker->in_step;
    case MESSAGE_ACK:
        window_ack(&worker->stream.window, message->ack.wseq);
        return true;
    case MESSAGE_PING:
        answer_ping(worker, message->ping.ref);
        return true;
    case MESSAGE_PONG:
        return true;
    default:
        break;
    }
    if (worker->in_step)
        return false;
    switch (message->kind) {
    case MESSAGE_REGISTER_OK:
        take_register_ok(worker, message);
        break;
    case MESSAGE_ASSIGN:
        assign_take(worker, message);
        break;
    case MESSAGE_TOKENIZE:
        assign_tokenize(worker, message);
        break;
    case MESSAGE_RESEND:
        stream_resend(&worker->stream, message->resend.wseq);
        break;
    case MESSAGE_DRAIN:
        take_drain(worker);
        break;
    case MESSAGE_ERROR:
        take_error(worker, message);
        break;
    default:
        log_warn("the broker sent a %s", message_kind_name(message->kind));
    }
    return true;
}

/* An assignment that cannot be read ends its request at once; other noise is only logged. */
static void take_malformed(struct worker *worker, const struct error *err)
{
    struct message answer = {.kind = MESSAGE_ERROR};
    log_warn("the broker sent what is no message: %s", err->text);
    answer.error.has_id = message_decoder_failed_id(worker->decoder, &answer.error.id);
    if (!answer.error.has_id)
        return;
    answer.error.error = PROTO_BAD_REQUEST;
    answer.error.text = bytes_of_string(err->text);
    link_send(worker, &answer);
}

static void take_bytes(struct worker *worker, const void *data, size_t len)
{
    struct message message;
    struct error err = {0};
    int r = message_decode(worker->decoder, data, len, &message, &err);
    if (r != 0) {
        take_malformed(worker, &err);
        return;
    }
    if (message.kind != MESSAGE_ERROR)
        worker->heard_ns = clock_ns();
    if (take(worker, &message))
        return;
    struct deferred *deferred = malloc(sizeof *deferred + len);
    if (!deferred) {
        log_error("out of memory: a %s is lost", message_kind_name(message.kind));
        return;
    }
    deferred->len = len;
    memcpy(deferred->data, data, len);
    DL_APPEND(worker->deferred, deferred);
}

void link_read(struct worker *worker)
{
    zmq_msg_t part;
    while (worker->deferred && !worker->in_step) {
        struct deferred *first = worker->deferred;
        DL_DELETE(worker->deferred, first);
        take_bytes(worker, first->data, first->len);
        free(first);
    }
    zmq_msg_init(&part);
    for (int i = 0; i < MOST_AT_ONCE; i++) {
        if (zmq_msg_recv(&part, worker->control, ZMQ_DONTWAIT) < 0)
            break;
        bool whole = !zmq_msg_more(&part);
        if (whole)
            take_bytes(worker, zmq_msg_data(&part), zmq_msg_size(&part));
        while (zmq_msg_more(&part) && zmq_msg_recv(&part, worker->control, ZMQ_DONTWAIT) >= 0)
            ; /* of many parts is nothing that a broker sends */
    }
    zmq_msg_close(&part);
}
