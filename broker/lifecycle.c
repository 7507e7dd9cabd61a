/* SPDX-License-Identifier: MIT */
/* The life of a request (its states are drawn in request.c).
 *
 * Who holds a request at each moment: the queue while QUEUED; its worker's list while RUNNING or CANCELLING;
 * besides, its session's list, or the list of the abandoned, until it ENDED. A request ends exactly once, in
 * conclude(), and the last frame is in its journal before that: the worker's own, or one made here for what a
 * worker cannot say (a deadline that passed in the queue, a cancel there, a worker that died). That frame
 * continues at the seq and off which the journal has reached, so a client sees one unbroken sequence.
 *
 * The end is told twice: on the stream, which may drop, and on the session's DEALER with the count. */

#include "broker/lifecycle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "broker/backend.h"
#include "broker/frontend.h"
#include "broker/scheduler.h"
#include "broker/text.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/log.h"

#define RETENTION_NS (60 * CLOCK_NS_PER_S) /* ended requests are kept for replays and repeats */

/* The story of each request, for who asks with QUERN_LOG=debug. */
static void tell(const struct request *request, enum request_state next, const char *why)
{
    const uint8_t *id = request->home.id.bytes;
    log_debug("request %02x%02x%02x%02x: %s -> %s, %s", id[0], id[1], id[2], id[3],
              request_state_name(request->state), request_state_name(next), why);
}

/* ---- admission ---- */

/* Reserves room, at the cost of the oldest ended requests, but of none if that would not be enough. */
static int reserve(struct broker *broker, struct journal_log *log, uint64_t bytes)
{
    int r;
    if (!journal_could_hold(&broker->journal, bytes))
        return JOURNAL_E_FULL;
    while ((r = journal_reserve(&broker->journal, log, bytes)) == JOURNAL_E_FULL && broker->ledger.ended)
        ledger_remove(&broker->ledger, &broker->journal, broker->ledger.ended);
    return r;
}

/* The largest context of all workers; 0 while none has registered. */
static uint32_t largest_context(const struct broker *broker)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        if (broker->workers[i].context > largest)
            largest = broker->workers[i].context;
    return largest;
}

static enum proto_error refuse_model(struct bytes model, struct error *err)
{
    if (model.len == 0)
        return error_set(err, PROTO_NO_WORKER, "no worker is left");
    return error_set(err, PROTO_NO_WORKER, "no worker serves the model \"%.*s\"", (int)model.len,
                     (const char *)model.data);
}

static enum proto_error may_enter(struct broker *broker, const struct generation *generation, size_t bytes,
                                  uint32_t *ret_retry_ms, struct error *err)
{
    struct worker *worker;
    if (broker->draining)
        return error_set(err, PROTO_DRAINING, "the pool is shutting down");
    if (scheduler_pick(broker->workers, broker->n_workers, generation->model, &worker) ==
        SCHEDULER_E_NO_WORKER)
        return refuse_model(generation->model, err);
    uint32_t context = largest_context(broker);
    if (context > 0 && generation->max_tokens > context)
        return error_set(err, PROTO_TOO_LONG, "max_tokens %u is above the context length %u",
                         generation->max_tokens, context);
    if (!admission_has_room(&broker->admission, bytes)) {
        *ret_retry_ms = admission_retry_ms(&broker->admission);
        return error_set(err, PROTO_OVERLOADED, "%zu requests of %zu bytes wait already",
                         broker->admission.queued, broker->admission.queued_bytes);
    }
    return PROTO_OK;
}

/* A seed for whoever chose none; never the same twice. */
static uint64_t draw_seed(struct broker *broker)
{
    broker->draws++;
    return hash64(&broker->draws, sizeof broker->draws, broker->secret);
}

static void bind_session(struct request *request, struct session *session)
{
    request->session = session;
    request->abandoned_until = 0;
    DL_APPEND2(session->requests, request, session_prev, session_next);
}

/* Takes a live request off its session, or off the abandoned ones. */
static void unbind_session(struct broker *broker, struct request *request)
{
    struct request **list = request->session ? &request->session->requests : &broker->abandoned;
    DL_DELETE2(*list, request, session_prev, session_next);
    request->session = NULL;
}

/* Copies what was asked into a fresh request and puts it into the queue. */
static int enqueue(struct broker *broker, struct request *request, const struct generation *generation,
                   struct bytes body)
{
    int r = buffer_append(&request->body, body.data, body.len);
    if (r < 0)
        return r;
    request->body_hash = hash128(body.data, body.len, 0);
    if (generation->model.len > 0) {
        size_t at = (size_t)((const uint8_t *)generation->model.data - (const uint8_t *)body.data);
        request->model = (struct bytes){request->body.data + at, generation->model.len};
    }
    admission_fix(request, generation, draw_seed(broker), broker->now);
    request->epoch = (struct epoch){broker->boot, 0};
    r = queue_push(&broker->queue, request);
    if (r == 0)
        admission_queued(&broker->admission, request->body.len);
    return r;
}

static enum proto_error admit_new(struct broker *broker, struct request_key key,
                                  const struct generation *generation, struct bytes body,
                                  struct request **ret_request, uint32_t *ret_retry_ms, struct error *err)
{
    struct request *request = ledger_add(&broker->ledger, key);
    if (!request)
        return error_set(err, PROTO_INTERNAL, "out of memory");
    uint64_t worst = journal_worst_case(generation->max_tokens, generation->logprobs, request_overhead());
    int r = reserve(broker, &request->log, worst);
    if (r == 0)
        r = enqueue(broker, request, generation, body);
    if (r != 0) {
        ledger_remove(&broker->ledger, &broker->journal, request);
        if (r < 0)
            return error_set(err, PROTO_INTERNAL, "out of memory");
        if (worst > broker->journal.limit)
            return error_set(
                err, PROTO_TOO_LONG, "max_tokens %u could take %llu bytes, the journal holds %llu",
                generation->max_tokens, (unsigned long long)worst, (unsigned long long)broker->journal.limit);
        *ret_retry_ms = admission_retry_ms(&broker->admission);
        return error_set(err, PROTO_OVERLOADED, "the journal is full of requests that run or wait");
    }
    *ret_request = request;
    return PROTO_OK;
}

enum proto_error lifecycle_admit(struct broker *broker, struct session *session, struct id128 id,
                                 const struct generation *generation, struct bytes body,
                                 struct request **ret_request, bool *ret_again, uint32_t *ret_retry_ms,
                                 struct error *err)
{
    struct request_key key = {session->id, id};
    struct request *request = ledger_find(&broker->ledger, &key);
    if (request) {
        if (!request_same_body(request, body.data, body.len))
            return error_set(err, PROTO_CONFLICT, "this id was used for another request");
        *ret_request = request;
        *ret_again = true;
        return PROTO_OK;
    }
    enum proto_error error = may_enter(broker, generation, body.len, ret_retry_ms, err);
    if (error == PROTO_OK)
        error = admit_new(broker, key, generation, body, &request, ret_retry_ms, err);
    if (error != PROTO_OK)
        return error;
    bind_session(request, session);
    broker->counters.admitted++;
    *ret_request = request;
    *ret_again = false;
    return PROTO_OK;
}

/* ---- assignment ---- */

static void leave_queue(struct broker *broker, struct request *request)
{
    queue_remove(&broker->queue, request);
    admission_dequeued(&broker->admission, request->body.len);
}

static uint64_t milliseconds_left(const struct request *request, uint64_t now)
{
    if (request->deadline_ns == UINT64_MAX)
        return 0;
    uint64_t left = (request->deadline_ns - now) / CLOCK_NS_PER_MS;
    return left ? left : 1;
}

/* Builds the assign in the scratch buffer from the request as it came. */
static int encode_assign(struct broker *broker, const struct request *request)
{
    struct message asked, assign = {.kind = MESSAGE_ASSIGN};
    int r = message_decode(broker->request_decoder, request->body.data, request->body.len, &asked, NULL);
    if (r != 0)
        return r < 0 ? r : -EINVAL;
    assign.assign.session = request->home.session;
    assign.assign.id = request->home.id;
    assign.assign.epoch = request->epoch;
    assign.assign.deadline_left_ms = milliseconds_left(request, broker->now);
    assign.assign.queue_us = (broker->now - request->arrived_ns) / 1000;
    assign.assign.generation = asked.generate.generation;
    assign.assign.generation.has_seed = true;
    assign.assign.generation.seed = request->seed;
    broker->scratch.len = 0;
    return message_encode(&assign, &broker->scratch);
}

void lifecycle_dispatch(struct broker *broker)
{
    struct request *request;
    while ((request = queue_first(&broker->queue))) {
        if (request->deadline_ns <= broker->now) {
            lifecycle_end_here(broker, request, &(struct ending){.reason = END_DEADLINE});
            continue;
        }
        struct worker *worker;
        int r = scheduler_pick(broker->workers, broker->n_workers, request->model, &worker);
        if (r == SCHEDULER_E_BUSY)
            return;
        if (r == SCHEDULER_E_NO_WORKER) {
            lifecycle_fail(broker, request, PROTO_NO_WORKER, "no worker serves this request any more");
            continue;
        }
        r = encode_assign(broker, request);
        if (r < 0) {
            lifecycle_fail(broker, request, PROTO_INTERNAL, "cannot be handed to a worker: %s", strerror(-r));
            continue;
        }
        if (!backend_send_scratch(broker, worker))
            continue; /* the worker is no candidate any more */
        leave_queue(broker, request);
        tell(request, REQUEST_RUNNING, worker->name);
        request->state = REQUEST_RUNNING;
        worker_take(worker, request);
    }
}

void lifecycle_cancel(struct broker *broker, struct request *request)
{
    if (request->state == REQUEST_QUEUED) {
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
        return;
    }
    if (request->state != REQUEST_RUNNING)
        return;
    tell(request, REQUEST_CANCELLING, request->worker->name);
    request->state = REQUEST_CANCELLING;
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session = request->home.session;
    cancel.cancel.id = request->home.id;
    backend_send(broker, request->worker, &cancel);
}

/* ---- the end ---- */

/* Makes the `end` message and keeps it for repeats. */
static void remember_end(struct request *request, const struct ending *ending)
{
    struct message end = {.kind = MESSAGE_END};
    end.end.id = request->home.id;
    end.end.epoch = request->epoch;
    end.end.count = request->log.count;
    end.end.end = *ending;
    request->end_message.len = 0;
    if (message_encode(&end, &request->end_message) < 0)
        buffer_deinit(&request->end_message);
}

static void conclude(struct broker *broker, struct request *request, const struct ending *ending)
{
    tell(request, REQUEST_ENDED, end_reason_name(ending->reason));
    if (request->worker)
        worker_drop(request->worker, request);
    remember_end(request, ending);
    if (request->session)
        frontend_send_end(broker, request->session, request);
    unbind_session(broker, request);
    ledger_ended(&broker->ledger, request, broker->now);
    journal_settle(&broker->journal, &request->log, request_overhead());
    admission_ended(&broker->admission, broker->now);
    broker->counters.ended++;
}

void lifecycle_ended(struct broker *broker, struct request *request, const struct ending *ending)
{
    conclude(broker, request, ending);
}

void lifecycle_end_here(struct broker *broker, struct request *request, const struct ending *ending)
{
    if (request->state == REQUEST_QUEUED)
        leave_queue(broker, request);
    struct message last = {.kind = MESSAGE_FRAME};
    last.frame.id = request->home.id;
    last.frame.epoch = request->epoch;
    last.frame.seq = request->log.count;
    last.frame.off = request->log.text_bytes;
    last.frame.has_end = true;
    last.frame.end = *ending;
    last.frame.end.usage.output_tokens = (uint32_t)request->log.count;
    broker->scratch.len = 0;
    if (message_encode(&last, &broker->scratch) == 0) {
        /* Room for the end was reserved; without it the end is still told below. */
        journal_append(&broker->journal, &request->log, 0, 0, broker->scratch.data, broker->scratch.len);
        stream_publish(&broker->stream, &request->current, sizeof request->current, broker->scratch.data,
                       broker->scratch.len);
    }
    conclude(broker, request, &last.frame.end);
}

void lifecycle_fail(struct broker *broker, struct request *request, enum proto_error error,
                    const char *format, ...)
{
    char text[PROTO_MAX_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct ending ending = {.reason = END_ERROR, .error = error, .text = bytes_of_string(text_clean(text))};
    lifecycle_end_here(broker, request, &ending);
}

/* ---- what workers say ---- */

/* Ends the request of a `finished` if its frames are all in. */
static bool finish(struct broker *broker, struct worker *worker, struct request *request,
                   const struct message *message)
{
    if (message->finished.wseq > worker->wseq)
        return false;
    if (message->finished.count != request->log.count)
        lifecycle_fail(broker, request, PROTO_INTERNAL, "%s made %llu tokens, %llu came", worker->name,
                       (unsigned long long)message->finished.count, (unsigned long long)request->log.count);
    else
        lifecycle_end_here(broker, request, &message->finished.end);
    return true;
}

void lifecycle_finished(struct broker *broker, struct worker *worker, const struct message *message,
                        struct bytes raw)
{
    struct request_key key = {message->finished.session, message->finished.id};
    struct request *request = ledger_find_home(&broker->ledger, &key);
    /* Usually its last frame came first, and ended it. */
    if (!request || request->worker != worker || request->finished ||
        epoch_compare(message->finished.epoch, request->epoch) != 0)
        return;
    if (finish(broker, worker, request, message))
        return;
    request->finished_message.len = 0;
    if (buffer_append(&request->finished_message, raw.data, raw.len) < 0)
        return; /* its last frame will do */
    request->finished = true;
    worker->n_finished++;
}

void lifecycle_settle_finished(struct broker *broker, struct worker *worker)
{
    struct request *request, *next;
    if (worker->n_finished == 0)
        return;
    DL_FOREACH_SAFE2(worker->requests, request, next, worker_next)
    {
        struct message message;
        const struct buffer *raw = &request->finished_message;
        if (request->finished &&
            message_decode(broker->request_decoder, raw->data, raw->len, &message, NULL) == 0)
            finish(broker, worker, request, &message);
    }
}

void lifecycle_returned(struct broker *broker, struct request *request)
{
    worker_drop(request->worker, request);
    if (queue_push(&broker->queue, request) < 0) {
        lifecycle_fail(broker, request, PROTO_INTERNAL, "out of memory");
        return;
    }
    tell(request, REQUEST_QUEUED, "its worker is ending");
    request->state = REQUEST_QUEUED;
    admission_queued(&broker->admission, request->body.len);
}

void lifecycle_worker_lost(struct broker *broker, struct worker *worker, bool left, const char *reason)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(worker->requests, request, next, worker_next)
    {
        if (request->state == REQUEST_CANCELLING)
            lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
        else if (left && !request->log.first)
            lifecycle_returned(broker, request);
        else
            lifecycle_fail(broker, request, PROTO_WORKER_LOST, "%s: %.400s", worker->name, reason);
    }
}

/* ---- sessions come and go ---- */

void lifecycle_abandon(struct broker *broker, struct session *session)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(session->requests, request, next, session_next)
    {
        unbind_session(broker, request);
        DL_APPEND2(broker->abandoned, request, session_prev, session_next);
        bool keep = request->on_disconnect == DISCONNECT_KEEP;
        request->abandoned_until = keep ? broker->now + request->keep_ns : UINT64_MAX;
        if (!keep)
            lifecycle_cancel(broker, request);
    }
}

void lifecycle_adopt(struct broker *broker, struct session *session)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(broker->abandoned, request, next, session_next)
    {
        if (memcmp(&request->current.session, &session->id, sizeof session->id) != 0)
            continue;
        unbind_session(broker, request);
        bind_session(request, session);
    }
}

int lifecycle_attach(struct broker *broker, struct request *request, struct session *session)
{
    int r = ledger_attach(&broker->ledger, request, session->id);
    if (r < 0 || request->state == REQUEST_ENDED || request->session == session)
        return r;
    unbind_session(broker, request);
    bind_session(request, session);
    return 0;
}

/* ---- time ---- */

void lifecycle_expire(struct broker *broker)
{
    struct request *request;
    while ((request = queue_expired(&broker->queue, broker->now)))
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_DEADLINE});
}

void lifecycle_forgive(struct broker *broker, uint64_t late)
{
    for (struct request *request = broker->abandoned; request; request = request->session_next)
        if (request->abandoned_until != UINT64_MAX)
            request->abandoned_until += late;
}

void lifecycle_tick(struct broker *broker)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(broker->abandoned, request, next, session_next)
    {
        if (request->abandoned_until > broker->now)
            continue;
        request->abandoned_until = UINT64_MAX;
        lifecycle_cancel(broker, request);
    }
    while ((request = broker->ledger.ended) && broker->now - request->ended_ns >= RETENTION_NS)
        ledger_remove(&broker->ledger, &broker->journal, request);
}

size_t lifecycle_alive(const struct broker *broker)
{
    size_t alive = broker->queue.n;
    for (uint32_t i = 0; i < broker->n_workers; i++)
        alive += broker->workers[i].n_requests;
    return alive;
}
