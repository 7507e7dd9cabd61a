/* SPDX-License-Identifier: MIT */
/* One SUB socket for each worker incarnation, drained in batches.
 *
 * A worker counts its frames (wseq), and takes them as lost until they are acknowledged. Frames count here
 * strictly one by one: an older wseq is a repeat and dropped; a newer one is a gap, for which the worker is
 * asked to publish again from the first missing frame. So whatever the stream did, each frame enters its
 * journal once and in order. Within a request, seq and off must continue what the journal has; a worker that
 * breaks its own count is broken, and is killed.
 *
 * A frame is copied once, into the journal. The message itself moves on to the clients' stream as it came:
 * the topic already is the client's, unless a request was attached to another session.
 *
 * Frames of requests that ended (a cancel crossed them on its way, or the broker gave up) are dropped, but
 * count for wseq like all others. */

#include "broker/frames.h"

#include <errno.h>
#include <string.h>

#include "broker/core/lifecycle.h"
#include "broker/wire/worker_intake.h"
#include "common/clock.h"
#include "common/log.h"

#define ACK_EVERY_FRAMES 256
#define ACK_WITHIN_MS    20

/* Old frames behind one another. A worker repeats what is not acknowledged, when it is asked to, which is a
 * thirtieth of that at most (its window). */
#define REPEATS_MOST (1u << 20)

int frames_open(struct broker *broker, struct worker *worker, const struct id128 *subscription,
                struct error *err)
{
    void *socket = zmq_socket(broker->context, ZMQ_SUB);
    if (!socket)
        return error_set(err, -errno, "socket for frames: %s", zmq_strerror(errno));
    worker_intake_expect(worker->index, WORKER_DOOR_STREAM, worker->endpoint);
    int unlimited = 0, linger = 0;
    int64_t largest = PROTO_MAX_ANSWER_BYTES;
    /* Bounded by the window of the acknowledgements instead, and if that is not kept, by worker_intake.h.
     * Everything is subscribed first; then the mark by which the worker knows that it is. */
    if (zmq_setsockopt(socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited) < 0 ||
        zmq_setsockopt(socket, ZMQ_LINGER, &linger, sizeof linger) < 0 ||
        zmq_setsockopt(socket, ZMQ_MAXMSGSIZE, &largest, sizeof largest) < 0 ||
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0) < 0 ||
        zmq_setsockopt(socket, ZMQ_SUBSCRIBE, subscription, sizeof *subscription) < 0 ||
        zmq_connect(socket, worker->endpoint) < 0 || socket_news_init(socket, &worker->news) < 0) {
        int r = -errno;
        zmq_close(socket);
        return error_set(err, r, "%s: %s", worker->endpoint, zmq_strerror(-r));
    }
    worker->stream = socket;
    return 0;
}

void frames_close(struct worker *worker)
{
    if (worker->stream)
        zmq_close(worker->stream);
    worker->stream = NULL;
}

static bool is_return(const struct frame *frame)
{
    return frame->has_end && frame->end.reason == END_ERROR && frame->end.error == PROTO_DRAINING &&
           frame->ids.n == 0 && frame->text.len == 0;
}

/* Its worker has it from a broker that was killed, or was given it again while its end was under way. */
static void cancel_unknown(struct broker *broker, struct worker *worker, const struct request_key *key)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session = key->session;
    cancel.cancel.id = key->id;
    worker_link_send(&broker->worker_link, worker, &cancel, NULL);
}

/* Bytes of an embedding that this frame has to bring. */
static size_t embedding_due(const struct worker *worker, const struct request *request,
                            const struct frame *frame)
{
    bool brings = request->embed && frame->has_end && frame->end.reason == END_STOP;
    return brings ? worker->embedding * sizeof(float) : 0;
}

/* Journals the frame and passes it on. False when the worker broke the sequence. */
static bool take_frame(struct broker *broker, struct worker *worker, const struct frame *frame,
                       zmq_msg_t *topic, zmq_msg_t *payload)
{
    struct request *request = ledger_find_home(&broker->ledger, zmq_msg_data(topic));
    bool over = !request || (worker->adopted && request->state == REQUEST_ENDED);
    if (over && !frame->has_end)
        cancel_unknown(broker, worker, zmq_msg_data(topic));
    if (!request || request->worker != worker || epoch_compare(frame->epoch, request->epoch) != 0)
        return true;
    if (frame->wseq <= worker->adopted_wseq &&
        (frame->seq < request->log.count || frame->off < request->log.text_bytes))
        return true; /* an earlier broker had taken it */
    if (frame->seq != request->log.count || frame->off != request->log.text_bytes ||
        memcmp(&frame->id, &request->home.id, sizeof frame->id) != 0)
        return false;
    if (frame->embedding.len != embedding_due(worker, request, frame))
        return false;
    if (is_return(frame)) {
        /* Or it would draw all that waits, and refuse it. */
        worker_is_ending(worker, broker->now);
        lifecycle_returned(broker, request);
        return true;
    }
    ledger_make_room(&broker->ledger, &broker->journal, journal_growth(&request->log, zmq_msg_size(payload)),
                     true);
    int r = journal_append(&broker->journal, &request->log, (uint32_t)frame->ids.n, (uint32_t)frame->text.len,
                           zmq_msg_data(payload), zmq_msg_size(payload));
    if (r != 0) {
        /* The worker is told first: a request that ended here is not its business any more. */
        lifecycle_cancel(broker, request);
        lifecycle_fail(broker, request, PROTO_INTERNAL, "no room in the journal");
        return true;
    }
    if (growth_is_due(request) && !frame->has_end)
        lifecycle_grow(broker, request);
    broker->counters.tokens += frame->ids.n;
    lifecycle_charge(broker, request, frame->ids.n);
    if (frame->ids.n > 0 && !request->prefilled)
        routing_prefilled(&broker->routing, request);
    /* Before the message moves on, because the end borrows from it. */
    if (frame->has_end)
        lifecycle_end(broker, request, &frame->end);
    if (memcmp(&request->current, &request->home, sizeof request->home) != 0)
        memcpy(zmq_msg_data(topic), &request->current, sizeof request->current);
    /* A vector is too large to wait for a listener that does not read: the client hears of the end, and
     * asks. */
    if (frame->embedding.len == 0)
        stream_forward(&broker->stream, topic, payload);
    return true;
}

/* Goes on to whoever has the request now; who does not listen misses it. */
static void pass_progress(struct broker *broker, const struct worker *worker, const struct message *message,
                          zmq_msg_t *topic, zmq_msg_t *payload)
{
    const struct request *request = ledger_find_home(&broker->ledger, zmq_msg_data(topic));
    if (!request || request->worker != worker ||
        epoch_compare(message->progress.epoch, request->epoch) != 0 ||
        memcmp(&message->progress.id, &request->home.id, sizeof request->home.id) != 0)
        return;
    memcpy(zmq_msg_data(topic), &request->current, sizeof request->current);
    stream_forward(&broker->stream, topic, payload);
}

/* -EBADMSG with the reason when the worker cannot be believed any more; or -ENOMEM. */
static int take(struct broker *broker, struct worker *worker, zmq_msg_t *topic, zmq_msg_t *payload,
                struct error *err)
{
    struct message message;
    if (zmq_msg_size(topic) != PROTO_TOPIC_BYTES)
        return error_set(err, -EBADMSG, "a topic of %zu bytes", zmq_msg_size(topic));
    int r =
        message_decode(broker->frame_decoder, zmq_msg_data(payload), zmq_msg_size(payload), &message, err);
    if (r != 0)
        return r < 0 ? error_set(err, r, "not enough memory for a frame") : -EBADMSG;
    if (message.kind == MESSAGE_PROGRESS) {
        pass_progress(broker, worker, &message, topic, payload);
        return 0;
    }
    if (message.kind != MESSAGE_FRAME)
        return error_set(err, -EBADMSG, "a %s on its stream", message_kind_name(message.kind));
    const struct frame *frame = &message.frame;
    if (frame->wseq <= worker->wseq)
        return ++worker->repeats <= REPEATS_MOST ? 0 : error_set(err, -EBADMSG, "too many repeated frames");
    if (frame->wseq != worker->wseq + 1) {
        worker_link_ask_resend(&broker->worker_link, worker, broker->now);
        return 0;
    }
    worker->wseq = frame->wseq;
    worker->repeats = 0;
    worker->resend_asked = 0;
    if (!take_frame(broker, worker, frame, topic, payload)) {
        worker->wseq--; /* it is not here: a `finished` that counts on it ends nothing */
        return error_set(err, -EBADMSG, "a frame that does not continue its request");
    }
    return 0;
}

/* Receives and takes one message; 1 when there is none. */
static int take_next(struct broker *broker, struct worker *worker, zmq_msg_t *topic, zmq_msg_t *payload,
                     struct error *err)
{
    if (!worker->news.look)
        return 1;
    if (zmq_msg_recv(topic, worker->stream, ZMQ_DONTWAIT) < 0) {
        socket_news_over(&worker->news);
        return 1;
    }
    if (!zmq_msg_more(topic) || zmq_msg_recv(payload, worker->stream, ZMQ_DONTWAIT) < 0 ||
        zmq_msg_more(payload))
        return error_set(err, -EBADMSG, "a message that does not have two parts");
    worker_intake_taken(worker->index, zmq_msg_size(topic) + zmq_msg_size(payload), 2);
    return take(broker, worker, topic, payload, err);
}

void frames_settle(struct broker *broker, struct worker *worker)
{
    if (!worker->adopted || worker->settled || worker->state != WORKER_READY ||
        worker->wseq < worker->adopted_wseq)
        return;
    worker->settled = true;
    lifecycle_adopted(broker, worker);
}

/* Nothing that it sent is taken any more; what it holds of our memory goes. */
static void give_up(struct broker *broker, struct worker *worker, const char *what)
{
    log_error("%s sent %s: killing it", worker->name, what);
    frames_close(worker);
    supervisor_kill(&broker->supervisor, worker->index);
}

/* False when the worker sent what nobody can take. */
static bool is_bounded(struct broker *broker, struct worker *worker)
{
    enum worker_intake_verdict verdict = worker_intake_judge(worker->index);
    if (verdict == WORKER_INTAKE_FINE)
        return true;
    give_up(broker, worker, worker_intake_describe(verdict));
    worker_link_disconnect(&broker->worker_link, worker);
    return false;
}

bool frames_drain(struct broker *broker, struct worker *worker)
{
    if (!is_bounded(broker, worker) || !worker->stream)
        return false;
    zmq_msg_t topic, payload;
    struct error err = {{0}};
    int r = 0;
    zmq_msg_init(&topic);
    zmq_msg_init(&payload);
    for (int i = 0; r == 0 && i < BROKER_BATCH; i++)
        r = take_next(broker, worker, &topic, &payload, &err);
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
    if (r < 0) {
        give_up(broker, worker, err.text);
        return false;
    }
    worker->drained = r > 0;
    lifecycle_settle_finished(broker, worker);
    frames_settle(broker, worker);
    if (worker->wseq - worker->acked_wseq >= ACK_EVERY_FRAMES)
        worker->ack_due = broker->now;
    else if (worker->wseq != worker->acked_wseq && worker->ack_due == 0)
        worker->ack_due = broker->now + ACK_WITHIN_MS * CLOCK_NS_PER_MS;
    worker_link_acknowledge(&broker->worker_link, worker, broker->now);
    return r == 0;
}
