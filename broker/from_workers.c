/* SPDX-License-Identifier: MIT */
/* What workers say.
 *
 * The supervisor started a worker's process and said where it is reached, and we connected to it there: so
 * whose word it is the connection tells, and a worker can be nobody but itself. A registration whose name,
 * incarnation, pid or stream is another's is refused, and who says it is told to finish and go. One of ours
 * whose model has the alias of another as its name is refused with `conflict`, and ends by itself. A
 * registration connects to the worker's stream; once the worker saw that subscription it says `ready`, and
 * only then requests are assigned, so no frame can be published into the void. Every other message counts
 * only from a peer that registered; a foreign one gets an error and is ignored. */

#include "broker/from_workers.h"

#include <string.h>

#include "broker/frames.h"
#include "broker/core/instruments.h"
#include "broker/core/lifecycle.h"
#include "broker/core/tokenize.h"
#include "broker/wire/worker_intake.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/hex.h"
#include "common/log.h"
#include "common/utf8.h"

#define HEARTBEAT_MS 250

static void refuse(struct broker *broker, const struct peer *peer, enum proto_error error, const char *text)
{
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.error = error;
    message.error.text = bytes_of_string(text);
    worker_link_send_stranger(&broker->worker_link, peer, &message);
}

/* Strangers get a line a second and no more. */
static bool worth_a_line(struct broker *broker)
{
    if (broker->stranger_logged_ns != 0 && broker->now - broker->stranger_logged_ns < CLOCK_NS_PER_S)
        return false;
    broker->stranger_logged_ns = broker->now;
    return true;
}

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

static void take_digest(struct worker *worker, const uint8_t digest[16])
{
    memcpy(worker->digest, digest, sizeof worker->digest);
    hex_write(digest, sizeof worker->digest, worker->digest_text);
}

/* The place at the other end, if it is that whose process this says it is; else NULL. Its pid may be on its
 * way to us. */
static struct worker *expected(struct broker *broker, const struct peer *peer, const struct message *message)
{
    struct worker *worker = worker_link_of(&broker->worker_link, peer);
    if (!worker || worker->state == WORKER_ABSENT || worker->state == WORKER_FAILED)
        return NULL;
    uint32_t pid = broker->supervisor.places[worker->index].record.pid;
    bool is_itself = bytes_equal(message->register_.name, bytes_of_string(worker->name)) &&
                     message->register_.incarnation == worker->incarnation &&
                     (pid == 0 || message->register_.pid == pid) &&
                     bytes_equal(message->register_.stream, bytes_of_string(worker->endpoint));
    return is_itself ? worker : NULL;
}

/* A worker of another model for which clients ask by the name of this one, as an alias; or NULL. Then that
 * name would mean two models. */
static const struct worker *rival(const struct broker *broker, const struct worker *self, struct bytes model)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        const struct worker *other = &broker->workers[i];
        if (other != self && other->model[0] && other->state != WORKER_ABSENT &&
            other->state != WORKER_FAILED && !bytes_equal(model, bytes_of_string(other->model)) &&
            worker_answers_to(other, model))
            return other;
    }
    return NULL;
}

static void refuse_model(struct broker *broker, const struct peer *peer, const struct worker *worker,
                         struct bytes model, const struct worker *other)
{
    struct error err;
    error_set(&err, 0, "model \"%.*s\": this name is an alias of another model of this pool, \"%s\"",
              (int)model.len, (const char *)model.data, other->model);
    utf8_clean(err.text);
    if (worth_a_line(broker))
        log_error("%s rejected: %s", worker->name, err.text);
    refuse(broker, peer, PROTO_CONFLICT, err.text);
}

/* What clients may call its model. */
static void take_names(struct broker *broker, struct worker *worker, struct bytes model)
{
    copy_text(worker->model, sizeof worker->model, model);
    queue_know(&broker->queue, bytes_of_string(worker->model));
    worker->n_aliases = 0;
    for (uint32_t i = 0; i < broker->options.n_aliases; i++) {
        struct bytes alias = bytes_of_string(broker->options.aliases[i]);
        if (bytes_equal(alias, model))
            continue;
        worker->aliases[worker->n_aliases++] = alias;
        queue_know(&broker->queue, alias);
    }
}

static void registered(struct broker *broker, const struct peer *peer, const struct message *message)
{
    struct worker *worker = expected(broker, peer, message);
    if (!worker) {
        if (worth_a_line(broker))
            log_warn("rejected a worker of another pool: \"%.*s\"", (int)message->register_.name.len,
                     (const char *)message->register_.name.data);
        refuse(broker, peer, PROTO_BAD_REQUEST, "register: this worker was not started by this broker");
        worker_link_send_stranger(&broker->worker_link, peer, &(struct message){.kind = MESSAGE_DRAIN});
        return;
    }
    if (message->register_.proto.min > PROTO_VERSION_MAX ||
        message->register_.proto.max < PROTO_VERSION_MIN) {
        refuse(broker, peer, PROTO_UNSUPPORTED, "register: no protocol version in common");
        return;
    }
    const struct worker *other = rival(broker, worker, message->register_.model);
    if (other) {
        refuse_model(broker, peer, worker, message->register_.model, other);
        return;
    }
    take_names(broker, worker, message->register_.model);
    copy_text(worker->device, sizeof worker->device, message->register_.device);
    worker->device_number = message->register_.device_number;
    copy_text(worker->device_uuid, sizeof worker->device_uuid, message->register_.device_uuid);
    copy_text(worker->device_driver, sizeof worker->device_driver, message->register_.device_driver);
    worker->device_capability = message->register_.device_capability;
    take_digest(worker, message->register_.digest.data);
    worker->context = message->register_.context;
    worker->slots = message->register_.slots;
    if (broker->options.journal == 0)
        growth_follow(&broker->growth, broker->workers, broker->n_workers,
                      journal_limit_in(vault_bytes(broker->journal.vault)));
    worker->chat = message->register_.chat;
    worker->embedding = message->register_.embedding;
    worker->ranks = message->register_.ranks;
    copy_text(worker->tools, sizeof worker->tools, message->register_.tools);
    worker->thinks = message->register_.thinks;
    copy_text(worker->dialect, sizeof worker->dialect, message->register_.dialect);
    copy_text(worker->arithmetic, sizeof worker->arithmetic, message->register_.arithmetic);
    copy_text(worker->choices, sizeof worker->choices, message->register_.choices);
    copy_text(worker->sampling, sizeof worker->sampling, message->register_.sampling);
    sampling_defaults_read(message->register_.sampling, &worker->defaults);
    if (worker_of_peer(broker, peer) != worker) { /* else it only asks again */
        worker->state = WORKER_LOADING;
        worker->under_way = 0; /* what was sent to another routing id is not seen any more */
        worker->relieved = false;
    }
    worker->peer = *peer;
    struct hash128 mark = hash128(worker->name, strlen(worker->name), broker->secret + worker->incarnation);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = broker->supervisor.boot;
    ok.register_ok.heartbeat_ms = HEARTBEAT_MS;
    memcpy(&ok.register_ok.subscription, &mark, sizeof ok.register_ok.subscription);
    struct error err;
    if (!worker->stream) {
        /* What it had made for an earlier broker: as far as that had acknowledged it, it is in the journal;
         * the rest may be or not. */
        worker->wseq = worker->acked_wseq = message->register_.acked;
        worker->adopted_wseq = message->register_.wseq;
        worker->adopted = worker->adopted_wseq > 0 || worker->n_requests > 0;
        if (frames_open(broker, worker, &ok.register_ok.subscription, &err) < 0) {
            log_error("%s: %s", worker->name, err.text);
            supervisor_kill(&broker->supervisor, worker->index);
            return;
        }
    }
    worker_link_send(&broker->worker_link, worker, &ok, NULL);
}

/* Frames that a heartbeat promised and that are not here by the next one are lost: a gap at the end of the
 * stream, which no later frame shows. */
static void heartbeat(struct broker *broker, struct worker *worker, const struct message *message)
{
    if (worker->promised_wseq > worker->wseq && worker->drained)
        worker_link_ask_resend(&broker->worker_link, worker, broker->now);
    worker->promised_wseq = message->heartbeat.wseq;
    if (message->heartbeat.draining)
        worker_is_ending(worker, broker->now);
    struct message pong = {.kind = MESSAGE_PONG};
    pong.pong.ref = message->heartbeat.ref;
    worker_link_send(&broker->worker_link, worker, &pong, NULL);
}

/* An error is the answer to a tokenize or detokenize; what a worker cannot do for a request is told by its
 * `finished`. */
static void refused_by(struct broker *broker, struct worker *worker, const struct message *message)
{
    char text[PROTO_MAX_TEXT_BYTES + 1];
    copy_text(text, sizeof text, message->error.text);
    utf8_clean(text);
    tokenize_refused(broker, worker, message->error.ref, message->error.error, text);
}

static void take(struct broker *broker, const struct peer *peer, const void *data, size_t len)
{
    struct message message;
    struct error err;
    struct worker *worker = worker_of_peer(broker, peer);
    if (message_decode(broker->decoder, data, len, &message, &err) != 0) {
        if (worth_a_line(broker))
            log_warn("%s sent an invalid message: %s", worker ? worker->name : "an unregistered process",
                     err.text);
        refuse(broker, peer, PROTO_BAD_REQUEST, err.text);
        return;
    }
    if (message.kind == MESSAGE_REGISTER) {
        registered(broker, peer, &message);
        worker = worker_of_peer(broker, peer);
    } else if (!worker) {
        refuse(broker, peer, PROTO_HELLO_REQUIRED, "expected register first");
    }
    if (!worker)
        return;
    switch (message.kind) {
    case MESSAGE_REGISTER:
        break;
    case MESSAGE_READY:
        if (worker->state == WORKER_LOADING) {
            worker->state = WORKER_READY;
            broker->any_ready = true;
            supervisor_ready(&broker->supervisor, worker->index);
            if (worker->wseq < worker->adopted_wseq)
                worker_link_ask_resend(&broker->worker_link, worker, broker->now);
            frames_settle(broker, worker);
        }
        break;
    case MESSAGE_HEARTBEAT:
        heartbeat(broker, worker, &message);
        break;
    case MESSAGE_FINISHED:
        lifecycle_finished(broker, worker, &message, (struct bytes){data, len});
        break;
    case MESSAGE_TOKENIZE_OK:
    case MESSAGE_DETOKENIZE_OK:
        tokenize_answered(broker, worker, &message);
        break;
    case MESSAGE_TRACE_OK:
    case MESSAGE_PROFILE_OK:
    case MESSAGE_TRIM_OK:
        instruments_answered(broker, worker, &message);
        break;
    case MESSAGE_PONG:
        worker_link_taken(worker, message.pong.ref);
        break;
    case MESSAGE_ERROR:
        refused_by(broker, worker, &message);
        break;
    default:
        log_warn("%s sent a %s, which a worker may not send", worker->name, message_kind_name(message.kind));
    }
}

bool from_workers_drain(struct broker *broker)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    int i;
    for (i = 0; i < BROKER_BATCH; i++) {
        struct peer peer;
        if (!router_receive(broker->worker_link.router, &peer, &part)) {
            socket_news_over(&broker->worker_link.news);
            break;
        }
        const struct worker *worker = worker_link_of(&broker->worker_link, &peer);
        if (worker)
            worker_intake_taken(worker->index, zmq_msg_size(&part), 1);
        take(broker, &peer, zmq_msg_data(&part), zmq_msg_size(&part));
    }
    zmq_msg_close(&part);
    return i == BROKER_BATCH;
}
