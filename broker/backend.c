/* SPDX-License-Identifier: MIT */
/* Workers on the wire.
 *
 * A worker's process is expected: the supervisor started it, so its name, incarnation and pid are known, and
 * nobody else may register; an orphan of a broker that was killed is told to finish and go. A registration
 * connects the ingest socket; once the worker saw that subscription it says `ready`, and only then requests
 * are assigned, so no frame can be published into the void. Every other message counts only from a peer that
 * registered; a foreign one gets an error and is ignored.
 *
 * Routing ids are refreshed by each registration. A worker that cannot be sent to is of no use and is killed:
 * the supervisor hears of its death like of any other, and that alone ends its requests, after what it still
 * had published was taken in. */

#include "broker/backend.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "broker/frontend.h"
#include "broker/ingest.h"
#include "broker/lifecycle.h"
#include "broker/text.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

/* ---- sending ---- */

bool backend_send_scratch(struct broker *broker, struct worker *worker)
{
    if (worker->peer.len == 0)
        return false;
    int r = outbox_send(&worker->outbox, broker->backend, &worker->peer, broker->scratch.data,
                        broker->scratch.len);
    if (r == 0) {
        broker->outboxes_waiting |= worker->outbox.n > 0;
        return true;
    }
    /* Not connected most often means that it just died, which is told in its own time. */
    if (r != OUTBOX_E_GONE)
        log_error("%s cannot be sent to (%s): it is killed", worker->name,
                  r == OUTBOX_E_FULL ? "it does not read" : strerror(-r));
    worker->peer.len = 0;
    supervisor_kill(&broker->supervisor, worker->index);
    return false;
}

bool backend_send(struct broker *broker, struct worker *worker, const struct message *message)
{
    struct error err = {{0}};
    broker->scratch.len = 0;
    if (message_encode_or_say(message, &broker->scratch, &err) < 0) {
        log_error("a %s for %s cannot be encoded: %s", message_kind_name(message->kind), worker->name,
                  err.text);
        return false;
    }
    return backend_send_scratch(broker, worker);
}

void backend_flush(struct broker *broker)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        struct worker *worker = &broker->workers[i];
        if (worker->peer.len == 0 || worker->outbox.n == 0)
            continue;
        if (outbox_flush(&worker->outbox, broker->backend, &worker->peer) != 0) {
            worker->peer.len = 0;
            supervisor_kill(&broker->supervisor, i);
        }
        broker->outboxes_waiting |= worker->outbox.n > 0;
    }
}

/* To a peer that is no worker of ours: dropped if it cannot be sent at once. */
static void send_to_stranger(struct broker *broker, const struct peer *peer, const struct message *message)
{
    broker->scratch.len = 0;
    if (message_encode(message, &broker->scratch) == 0)
        outbox_try(broker->backend, peer, broker->scratch.data, broker->scratch.len);
}

static void refuse(struct broker *broker, const struct peer *peer, enum proto_error error, const char *text)
{
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.error = error;
    message.error.text = bytes_of_string(text);
    send_to_stranger(broker, peer, &message);
}

/* Strangers get a line a second and no more. */
static bool worth_a_line(struct broker *broker)
{
    if (broker->stranger_ns != 0 && broker->now - broker->stranger_ns < CLOCK_NS_PER_S)
        return false;
    broker->stranger_ns = broker->now;
    return true;
}

/* ---- births and deaths ---- */

void backend_worker_started(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct child *child = &broker->supervisor.children[index];
    worker->incarnation = child->incarnation;
    worker->pid = (uint32_t)child->pid;
    worker->state = WORKER_STARTING;
    memcpy(worker->endpoint, child->stream, sizeof worker->endpoint);
}

static void forget_registration(struct worker *worker)
{
    worker->peer.len = 0;
    outbox_deinit(&worker->outbox);
    ingest_close(worker);
    worker->wseq = worker->acked_wseq = worker->ack_due = worker->resend_asked = 0;
    worker->promised_wseq = worker->heard_ns = 0;
}

/* A failure is told at once when others serve. While none ever did, it may be everyone's, and then it is told
 * once, as the reason for which the broker ends. */
static void report_death(struct broker *broker, const struct worker *worker, const struct child *child)
{
    if (child->state == CHILD_GONE)
        return;
    if (child->state == CHILD_FAILED) {
        if (!supervisor_all_failed(&broker->supervisor) && broker->any_ready)
            log_error("%s failed for good: %s", worker->name, child->reason);
        return;
    }
    double wait_s = (double)(child->start_at - broker->now) / (double)CLOCK_NS_PER_S;
    log_warn("%s died: %s; it is started again in %.1f s", worker->name, child->reason, wait_s);
}

void backend_worker_died(struct broker *broker, uint32_t index)
{
    struct worker *worker = &broker->workers[index];
    const struct child *child = &broker->supervisor.children[index];
    worker->state = child->state == CHILD_FAILED ? WORKER_FAILED : WORKER_ABSENT;
    worker->peer.len = 0;
    /* What it had published before it died still counts. */
    while (ingest_drain(broker, worker))
        ;
    report_death(broker, worker, child);
    lifecycle_worker_lost(broker, worker, child->left, child->reason);
    struct tokenize_entry entry;
    while (tokenize_expire(&broker->tokenize, broker->now, (int)index, &entry))
        frontend_tokenize_failed(broker, &entry, PROTO_WORKER_LOST, "the worker died");
    forget_registration(worker);
}

/* ---- what workers say ---- */

static struct worker *worker_of_peer(struct broker *broker, const struct peer *peer)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        struct worker *worker = &broker->workers[i];
        if (worker->peer.len == peer->len && memcmp(worker->peer.bytes, peer->bytes, peer->len) == 0)
            return worker;
    }
    return NULL;
}

static void copy_text(char *to, size_t size, struct bytes text)
{
    size_t len = text.len < size ? text.len : size - 1;
    if (len > 0)
        memcpy(to, text.data, len);
    to[len] = 0;
}

/* The place whose process this is; NULL when we did not start it. */
static struct worker *expected(struct broker *broker, const struct message *message)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        struct worker *worker = &broker->workers[i];
        if (bytes_equal(message->register_.name, bytes_of_string(worker->name)) && worker->pid != 0 &&
            message->register_.incarnation == worker->incarnation && message->register_.pid == worker->pid &&
            bytes_equal(message->register_.stream, bytes_of_string(worker->endpoint)))
            return worker;
    }
    return NULL;
}

static void registered(struct broker *broker, const struct peer *peer, const struct message *message)
{
    struct worker *worker = expected(broker, message);
    if (!worker) {
        if (worth_a_line(broker))
            log_warn("refused a worker that is not ours: \"%.*s\"", (int)message->register_.name.len,
                     (const char *)message->register_.name.data);
        refuse(broker, peer, PROTO_BAD_REQUEST, "register: this worker was not started by this broker");
        send_to_stranger(broker, peer, &(struct message){.kind = MESSAGE_DRAIN});
        return;
    }
    if (message->register_.proto.min > PROTO_VERSION_MAX ||
        message->register_.proto.max < PROTO_VERSION_MIN) {
        refuse(broker, peer, PROTO_UNSUPPORTED, "register: no protocol version in common");
        return;
    }
    copy_text(worker->model, sizeof worker->model, message->register_.model);
    copy_text(worker->device, sizeof worker->device, message->register_.device);
    memcpy(worker->digest, message->register_.digest.data, sizeof worker->digest);
    worker->context = message->register_.context;
    worker->slots = message->register_.slots;
    worker->chat = message->register_.chat;
    worker->peer = *peer;
    worker->state = WORKER_LOADING;
    struct hash128 mark = hash128(worker->name, strlen(worker->name), broker->secret + worker->incarnation);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = broker->boot;
    ok.register_ok.heartbeat_ms = BACKEND_HEARTBEAT_MS;
    memcpy(&ok.register_ok.subscription, &mark, sizeof ok.register_ok.subscription);
    struct error err;
    if (!worker->stream && ingest_open(broker, worker, &ok.register_ok.subscription, &err) < 0) {
        log_error("%s: %s", worker->name, err.text);
        supervisor_kill(&broker->supervisor, worker->index);
        return;
    }
    backend_send(broker, worker, &ok);
}

/* Frames that a heartbeat promised and that are not here by the next one are lost: a gap at the end of the
 * stream, which no later frame shows. */
static void heartbeat(struct broker *broker, struct worker *worker, const struct message *message)
{
    if (worker->promised_wseq > worker->wseq && worker->drained)
        ingest_ask_again(broker, worker);
    worker->promised_wseq = message->heartbeat.wseq;
    struct message pong = {.kind = MESSAGE_PONG};
    pong.pong.ref = message->heartbeat.ref;
    backend_send(broker, worker, &pong);
}

/* An error is the answer to a tokenize, or to an assign that the worker could not take. */
static void refused_by(struct broker *broker, struct worker *worker, const struct message *message)
{
    struct tokenize_entry entry;
    char text[PROTO_MAX_TEXT_BYTES + 1];
    copy_text(text, sizeof text, message->error.text);
    text_clean(text);
    if (!message->error.has_id) {
        if (tokenize_take(&broker->tokenize, message->error.ref, worker->index, &entry))
            frontend_tokenize_failed(broker, &entry, message->error.error, text);
        return;
    }
    for (struct request *request = worker->requests; request; request = request->worker_next)
        if (memcmp(&request->home.id, &message->error.id, sizeof request->home.id) == 0) {
            lifecycle_fail(broker, request, message->error.error, "%s", text);
            return;
        }
}

static void take(struct broker *broker, const struct peer *peer, const void *data, size_t len)
{
    struct message message;
    struct error err;
    struct worker *worker = worker_of_peer(broker, peer);
    if (message_decode(broker->decoder, data, len, &message, &err) != 0) {
        if (worth_a_line(broker))
            log_warn("the backend got what is no message from %s: %s", worker ? worker->name : "a stranger",
                     err.text);
        refuse(broker, peer, PROTO_BAD_REQUEST, text_clean(err.text));
        return;
    }
    if (message.kind == MESSAGE_REGISTER) {
        registered(broker, peer, &message);
        worker = worker_of_peer(broker, peer);
    } else if (!worker) {
        refuse(broker, peer, PROTO_HELLO_REQUIRED, "register first");
    }
    if (!worker)
        return;
    worker->heard_ns = broker->now;
    switch (message.kind) {
    case MESSAGE_REGISTER:
        break;
    case MESSAGE_READY:
        if (worker->state == WORKER_LOADING) {
            worker->state = WORKER_READY;
            broker->any_ready = true;
            supervisor_ready(&broker->supervisor, worker->index, broker->now);
        }
        break;
    case MESSAGE_HEARTBEAT:
        heartbeat(broker, worker, &message);
        break;
    case MESSAGE_FINISHED:
        lifecycle_finished(broker, worker, &message, (struct bytes){data, len});
        break;
    case MESSAGE_TOKENIZE_OK:
        frontend_tokenized(broker, worker, &message);
        break;
    case MESSAGE_ERROR:
        refused_by(broker, worker, &message);
        break;
    default:
        log_warn("%s sent a %s to the backend", worker->name, message_kind_name(message.kind));
    }
}

bool backend_drain(struct broker *broker)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    int i;
    for (i = 0; i < BROKER_BATCH; i++) {
        struct peer peer;
        if (!router_receive(broker->backend, &peer, &part))
            break;
        take(broker, &peer, zmq_msg_data(&part), zmq_msg_size(&part));
    }
    zmq_msg_close(&part);
    return i == BROKER_BATCH;
}

void backend_tick(struct broker *broker)
{
    struct tokenize_entry entry;
    while (tokenize_expire(&broker->tokenize, broker->now, -1, &entry))
        frontend_tokenize_failed(broker, &entry, PROTO_INTERNAL, "the worker did not answer");
}
