/* SPDX-License-Identifier: MIT */
/* The worker's side of the worker link.
 *
 * `register` is repeated until it is answered, for the broker may not be there yet or have been started
 * again. Only what a broker says to a worker it knows counts as hearing from it; the rest may be anyone's.
 *
 * Messages are decoded in place. A decoded message borrows from the bytes as they came and from the decoder's
 * memory, so keeping one means keeping both: nothing of a prompt is copied. They stay where they are, since
 * the bytes of a short message lie inside its zmq_msg_t. */

#include "worker/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"

#define REGISTER_NS          CLOCK_NS_PER_S         /* between registrations without an answer */
#define REGISTER_SOON_NS     (50 * CLOCK_NS_PER_MS) /* and at first, doubling, where a broker was just now */
#define DEFAULT_HEARTBEAT_NS (250 * CLOCK_NS_PER_MS)
#define LEAST_HEARTBEAT_MS   10
#define MOST_AT_ONCE         64 /* messages of one call, so that a flood does not stop the steps */
#define LINGER_MS            2000

int link_open(struct link *link, void *zmq, const struct listener *listener, const struct stream *stream,
              const struct message *introduction, struct error *err)
{
    const int unlimited = 0, linger = LINGER_MS;
    const int64_t most = PROTO_MAX_WORKER_BYTES;
    *link = (struct link){.stream = stream,
                          .introduction = *introduction,
                          .heartbeat_ns = DEFAULT_HEARTBEAT_NS,
                          .register_wait_ns = REGISTER_NS,
                          .heard_ns = clock_ns()};
    link->socket = zmq_socket(zmq, ZMQ_DEALER);
    if (!link->socket)
        return error_set(err, -errno, "broker: %s", zmq_strerror(errno));
    /* What a broker that stands still does not read is bounded by the requests that run. */
    if (zmq_setsockopt(link->socket, ZMQ_SNDHWM, &unlimited, sizeof unlimited) < 0 ||
        zmq_setsockopt(link->socket, ZMQ_MAXMSGSIZE, &most, sizeof most) < 0 ||
        zmq_setsockopt(link->socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
        socket_news_init(link->socket, &link->news) < 0)
        return error_set(err, -errno, "broker: %s", zmq_strerror(errno));
    return listener_bind(listener, link->socket, err);
}

void link_close(struct link *link)
{
    if (link->socket)
        zmq_close(link->socket);
    received_free(link->received);
    buffer_deinit(&link->scratch);
    *link = (struct link){0};
}

/* 0; -EAGAIN: no broker is connected, else nothing waits; or -errno, which is logged. */
static int send_message(struct link *link, const struct message *message)
{
    struct error err = {0};
    link->scratch.len = 0;
    link->news.look = true;
    int r = message_encode_or_say(message, &link->scratch, &err);
    if (r == 0 && zmq_send(link->socket, link->scratch.data, link->scratch.len, ZMQ_DONTWAIT) < 0)
        r = error_set(&err, -errno, "%s", zmq_strerror(errno));
    if (r == -EAGAIN)
        socket_news_ask(link->socket, &link->news);
    else if (r < 0)
        log_error("%s not sent: %s", message_kind_name(message->kind), err.text[0] ? err.text : strerror(-r));
    return r;
}

bool link_send(struct link *link, const struct message *message)
{
    return send_message(link, message) == 0;
}

void link_must_send(struct link *link, const struct message *message)
{
    int r = send_message(link, message);
    if (r < 0 && r != -EAGAIN)
        _exit(EXIT_FAILURE);
}

/* ---- registration ---- */

static void send_heartbeat(struct link *link, const struct link_load *load)
{
    struct message message = {.kind = MESSAGE_HEARTBEAT};
    message.heartbeat.ref = ++link->heartbeats;
    message.heartbeat.active = load->active;
    message.heartbeat.waiting = load->waiting;
    message.heartbeat.kv_free = load->kv_free;
    message.heartbeat.wseq = link->stream->window.last;
    message.heartbeat.waiting_tokens = load->waiting_tokens;
    message.heartbeat.draining = load->draining;
    link_send(link, &message);
}

static void send_register(struct link *link)
{
    link->introduction.register_.wseq = link->stream->window.last;
    link->introduction.register_.acked = link->stream->window.acked;
    link->alone = send_message(link, &link->introduction) == -EAGAIN;
}

static void begin_registration(struct link *link)
{
    link->registered = link->ready = false;
    link->next_register_ns = 0;
    link->register_wait_ns = REGISTER_SOON_NS;
}

/* A broker that was killed takes its subscription along, which is seen long before a heartbeat is missed. */
static bool lost_its_listener(const struct link *link)
{
    return link->ready && link->listened && !stream_has_listener(link->stream);
}

static bool may_be_ready(const struct link *link)
{
    return link->registered && !link->ready && stream_is_heard(link->stream, &link->mark);
}

/* A worker that only believes to be ready would never be given anything: it is said again. */
static bool say_ready(struct link *link)
{
    struct message message = {.kind = MESSAGE_READY};
    message.ready.incarnation = link->introduction.register_.incarnation;
    link->ready = link_send(link, &message);
    link->listened = stream_has_listener(link->stream);
    return link->ready;
}

static bool has_company(const struct link *link)
{
    int events = 0;
    size_t len = sizeof events;
    return link->alone && zmq_getsockopt(link->socket, ZMQ_EVENTS, &events, &len) == 0 &&
           (events & ZMQ_POLLOUT);
}

uint64_t link_due_ns(const struct link *link)
{
    return link->registered ? link->next_heartbeat_ns : link->next_register_ns;
}

bool link_is_due(const struct link *link, uint64_t now)
{
    return now >= link_due_ns(link) || may_be_ready(link) || lost_its_listener(link) || has_company(link);
}

void link_hurry(struct link *link)
{
    link->next_heartbeat_ns = 0;
}

bool link_tend(struct link *link, const struct link_load *load, uint64_t now)
{
    if (lost_its_listener(link))
        begin_registration(link);
    bool became_ready = may_be_ready(link) && say_ready(link);
    if (now < link_due_ns(link) && !has_company(link))
        return became_ready;
    if (link->registered) {
        send_heartbeat(link, load);
        link->next_heartbeat_ns = now + link->heartbeat_ns;
    } else {
        send_register(link);
        link->next_register_ns = now + link->register_wait_ns;
        link->register_wait_ns *= 2;
        if (link->register_wait_ns > REGISTER_NS)
            link->register_wait_ns = REGISTER_NS;
    }
    return became_ready;
}

static void take_register_ok(struct link *link, const struct message *message)
{
    uint32_t ms = message->register_ok.heartbeat_ms;
    if (link->boot != 0 && link->boot != message->register_ok.boot)
        log_info("the broker was restarted");
    link->boot = message->register_ok.boot;
    link->mark = message->register_ok.subscription;
    link->heartbeat_ns = (ms < LEAST_HEARTBEAT_MS ? LEAST_HEARTBEAT_MS : ms) * CLOCK_NS_PER_MS;
    link->registered = true;
    link->ready = false;
}

static void take_error(struct link *link, const struct message *message)
{
    if (message->error.error == PROTO_CONFLICT && !link->registered) {
        error_set(&link->refusal, 0, "%.*s", (int)message->error.text.len,
                  (const char *)message->error.text.data);
    } else if (message->error.error != PROTO_HELLO_REQUIRED) {
        log_warn("error from the broker: %.*s", (int)message->error.text.len,
                 (const char *)message->error.text.data);
    } else if (link->registered) {
        begin_registration(link);
    }
}

/* ---- messages ---- */

static void answer_ping(struct link *link, uint64_t ref)
{
    struct message message = {.kind = MESSAGE_PONG};
    message.pong.ref = ref;
    link_send(link, &message);
}

/* An assignment that cannot be read, as it is or for want of memory, ends its request at once; other noise is
 * only logged. */
static void take_unread(struct link *link, int code, struct error *err)
{
    struct message answer = {.kind = MESSAGE_ERROR};
    if (code == -ENOMEM)
        error_set(err, 0, "the worker is out of memory");
    log_warn("cannot read the broker's message: %s", err->text);
    answer.error.has_id = message_decoder_failed_id(link->received->decoder, &answer.error.id);
    if (!answer.error.has_id)
        return;
    answer.error.error = code == -ENOMEM ? PROTO_INTERNAL : PROTO_BAD_REQUEST;
    answer.error.text = bytes_of_string(err->text);
    link_must_send(link, &answer);
}

/* Takes the link's own business. False: it is the owner's. */
static bool take_own(struct link *link, const struct message *message)
{
    switch (message->kind) {
    case MESSAGE_REGISTER_OK:
        take_register_ok(link, message);
        return true;
    case MESSAGE_ERROR:
        take_error(link, message);
        return true;
    case MESSAGE_PING:
        answer_ping(link, message->ping.ref);
        return true;
    case MESSAGE_PONG:
        return true;
    case MESSAGE_CREDIT:
    case MESSAGE_CANCEL:
    case MESSAGE_ACK:
    case MESSAGE_ASSIGN:
    case MESSAGE_TOKENIZE:
    case MESSAGE_DETOKENIZE:
    case MESSAGE_TRACE:
    case MESSAGE_PROFILE:
    case MESSAGE_TRIM:
    case MESSAGE_RESEND:
    case MESSAGE_DRAIN:
        return false;
    default:
        log_warn("the broker sent a %s", message_kind_name(message->kind));
        return true;
    }
}

static struct received *received_new(void)
{
    struct received *received = calloc(1, sizeof *received);
    if (!received || message_decoder_new(&received->decoder) < 0) {
        free(received);
        return NULL;
    }
    zmq_msg_init(&received->bytes);
    return received;
}

struct received *received_free(struct received *received)
{
    if (received) {
        zmq_msg_close(&received->bytes);
        message_decoder_free(received->decoder);
        free(received);
    }
    return NULL;
}

/* Receives one message of a single part, which is all that a broker sends; others are dropped whole. False:
 * nothing is there, or not enough memory for it yet. */
static bool receive(struct link *link, bool *ret_whole)
{
    if (!link->news.look || (!link->received && !(link->received = received_new())))
        return false;
    zmq_msg_t *bytes = &link->received->bytes;
    if (zmq_msg_recv(bytes, link->socket, ZMQ_DONTWAIT) < 0) {
        socket_news_over(&link->news);
        return false;
    }
    *ret_whole = !zmq_msg_more(bytes);
    while (zmq_msg_more(bytes) && zmq_msg_recv(bytes, link->socket, ZMQ_DONTWAIT) >= 0)
        ;
    return true;
}

const struct message *link_receive(struct link *link)
{
    bool whole;
    for (int i = 0; i < MOST_AT_ONCE && receive(link, &whole); i++) {
        struct received *received = link->received;
        struct error err = {0};
        if (!whole)
            continue;
        int r = message_decode(received->decoder, zmq_msg_data(&received->bytes),
                               zmq_msg_size(&received->bytes), &received->message, &err);
        if (r != 0) {
            take_unread(link, r, &err);
            continue;
        }
        if (received->message.kind != MESSAGE_ERROR)
            link->heard_ns = clock_ns();
        if (!take_own(link, &received->message))
            return &received->message;
    }
    return NULL;
}

struct received *link_keep(struct link *link)
{
    struct received *received = link->received;
    link->received = NULL;
    return received;
}
