/* SPDX-License-Identifier: MIT */
/* To workers.
 *
 * The routing id of a connection is ours to choose (ZMQ_CONNECT_ROUTING_ID), so who speaks is known before he
 * has said a word. A worker that has not registered cannot be sent to. One that died is told of in its own
 * time, and what is sent to it until then goes nowhere; one that does not read is killed here, and counts as
 * unregistered at once, so that nothing more is assigned to it.
 *
 * A message that is not brief is followed by a ping with its length. The worker takes one message after the
 * other, so its pong says that it has taken this one. */

#include "broker/links/worker_link.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <zmq.h>

#include "broker/wire/worker_intake.h"
#include "common/clock.h"
#include "common/log.h"

_Static_assert(WORKER_INTAKE_WORKERS == WORKER_MAX, "each place has its count");

#define RESEND_AGAIN_NS (100 * CLOCK_NS_PER_MS)

/* Its socket, to be used otherwise than to receive. */
static void *router_of(struct worker_link *link)
{
    link->news.look = true;
    return link->router;
}

int worker_link_connect(struct worker_link *link, struct worker *worker, const char *endpoint,
                        struct error *err)
{
    worker_link_disconnect(link, worker);
    worker_intake_begin(worker->index);
    worker_intake_expect(worker->index, WORKER_DOOR_LINK, endpoint);
    struct peer *peer = &worker->link;
    int len =
        snprintf((char *)peer->bytes, sizeof peer->bytes, "%s.%" PRIu64, worker->name, link->n_connected++);
    if (zmq_setsockopt(router_of(link), ZMQ_CONNECT_ROUTING_ID, peer->bytes, (size_t)len) < 0 ||
        zmq_connect(link->router, endpoint) < 0)
        return error_set(err, -errno, "%s: %s", endpoint, zmq_strerror(errno));
    peer->len = (uint8_t)len;
    snprintf(worker->link_endpoint, sizeof worker->link_endpoint, "%s", endpoint);
    return 0;
}

void worker_link_disconnect(struct worker_link *link, struct worker *worker)
{
    /* What is still to be sent is for nobody; the socket's own linger is for the workers that live. */
    int none = 0, usual = WORKER_LINK_LINGER_MS;
    worker->peer.len = 0;
    worker->credits.topics.len = worker->credits.counts.len = 0;
    if (worker->link.len == 0)
        return;
    zmq_setsockopt(link->router, ZMQ_LINGER, &none, sizeof none);
    zmq_disconnect(router_of(link), worker->link_endpoint);
    zmq_setsockopt(link->router, ZMQ_LINGER, &usual, sizeof usual);
    worker->link.len = 0;
}

struct worker *worker_link_of(struct worker_link *link, const struct peer *peer)
{
    for (uint32_t i = 0; i < link->n_workers; i++) {
        const struct peer *known = &link->workers[i].link;
        if (known->len > 0 && known->len == peer->len && memcmp(known->bytes, peer->bytes, peer->len) == 0)
            return &link->workers[i];
    }
    return NULL;
}

static void give_up(struct worker_link *link, struct worker *worker, int r)
{
    if (r != OUTBOX_E_GONE)
        log_error("cannot send to %s (%s): killing it", worker->name,
                  r == OUTBOX_E_FULL ? "it does not read" : strerror(-r));
    worker->peer.len = 0;
    worker->credits.topics.len = worker->credits.counts.len = 0;
    supervisor_kill(link->supervisor, worker->index);
}

static int send_message(struct worker_link *link, struct worker *worker, const struct message *message,
                        struct error *err)
{
    if (worker->peer.len == 0)
        return WORKER_LINK_E_LOST;
    struct error reason = {{0}};
    link->scratch.len = 0;
    int r = message_encode_or_say(message, &link->scratch, err ? err : &reason);
    if (r < 0 && !err)
        log_error("a %s for %s cannot be encoded: %s", message_kind_name(message->kind), worker->name,
                  reason.text);
    if (r < 0)
        return r;
    r = outbox_send(&worker->outbox, router_of(link), &worker->peer, link->scratch.data, link->scratch.len);
    if (r != 0) {
        give_up(link, worker, r);
        return WORKER_LINK_E_LOST;
    }
    link->waiting |= worker->outbox.n > 0;
    return 0;
}

int worker_link_send(struct worker_link *link, struct worker *worker, const struct message *message,
                     struct error *err)
{
    int r = send_message(link, worker, message, err);
    size_t len = link->scratch.len;
    if (r != 0 || len <= REQUEST_BRIEF_BYTES)
        return r;
    worker->under_way += len;
    return send_message(link, worker, &(struct message){.kind = MESSAGE_PING, .ping = {.ref = len}}, err);
}

void worker_link_taken(struct worker *worker, uint64_t ref)
{
    worker->under_way -= ref < worker->under_way ? ref : worker->under_way;
}

void worker_link_send_stranger(struct worker_link *link, const struct peer *peer,
                               const struct message *message)
{
    link->scratch.len = 0;
    if (message_encode(message, &link->scratch) == 0)
        outbox_try(router_of(link), peer, link->scratch.data, link->scratch.len);
}

void worker_link_ask_resend(struct worker_link *link, struct worker *worker, uint64_t now)
{
    if (worker->resend_asked && now - worker->resend_asked < RESEND_AGAIN_NS)
        return;
    worker->resend_asked = now;
    struct message resend = {.kind = MESSAGE_RESEND, .resend = {.wseq = worker->wseq + 1}};
    worker_link_send(link, worker, &resend, NULL);
}

void worker_link_acknowledge(struct worker_link *link, struct worker *worker, uint64_t now)
{
    if (worker->ack_due == 0 || worker->ack_due > now)
        return;
    struct message ack = {.kind = MESSAGE_ACK, .ack = {.wseq = worker->wseq}};
    worker->acked_wseq = worker->wseq;
    worker->ack_due = 0;
    worker_link_send(link, worker, &ack, NULL);
}

/* ---- credit ---- */

static void send_credits(struct worker_link *link, struct worker *worker)
{
    struct worker_credits *credits = &worker->credits;
    struct bytes topics[PROTO_MAX_CREDITS];
    for (size_t i = 0; i < credits->counts.len; i++)
        topics[i] = (struct bytes){credits->topics.data + i * PROTO_TOPIC_BYTES, PROTO_TOPIC_BYTES};
    struct message message = {.kind = MESSAGE_CREDIT};
    message.credit.topics.items = topics;
    message.credit.topics.n = credits->counts.len;
    message.credit.counts = (struct id_list){credits->counts.data, credits->counts.len};
    worker_link_send(link, worker, &message, NULL);
    credits->topics.len = credits->counts.len = 0;
}

void worker_link_credit(struct worker_link *link, struct worker *worker, const struct request_key *key,
                        uint64_t count)
{
    struct worker_credits *credits = &worker->credits;
    int32_t ids = count < INT32_MAX ? (int32_t)count : INT32_MAX;
    if (worker->peer.len == 0) /* it will be told with its requests */
        return;
    if (ids_push(&credits->counts, ids) < 0 || buffer_append(&credits->topics, key, sizeof *key) < 0) {
        give_up(link, worker, -ENOMEM); /* one of the two has one more than the other */
        return;
    }
    if (credits->counts.len == PROTO_MAX_CREDITS)
        send_credits(link, worker);
}

void worker_link_send_credits(struct worker_link *link)
{
    for (uint32_t i = 0; i < link->n_workers; i++)
        if (link->workers[i].credits.counts.len > 0)
            send_credits(link, &link->workers[i]);
}

void worker_link_flush(struct worker_link *link)
{
    link->waiting = false;
    for (uint32_t i = 0; i < link->n_workers; i++) {
        struct worker *worker = &link->workers[i];
        if (worker->peer.len == 0 || worker->outbox.n == 0)
            continue;
        int r = outbox_flush(&worker->outbox, router_of(link), &worker->peer);
        if (r != 0)
            give_up(link, worker, r);
        link->waiting |= r == 0 && worker->outbox.n > 0;
    }
}

void worker_link_deinit(struct worker_link *link)
{
    buffer_deinit(&link->scratch);
    if (link->router)
        zmq_close(link->router);
    link->router = NULL;
}
