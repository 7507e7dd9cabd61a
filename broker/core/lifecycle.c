/* SPDX-License-Identifier: MIT */
/* The life of a request (its states are drawn in request.c).
 *
 * Who holds a request at each moment: the queue while QUEUED; its worker's list while RUNNING or CANCELLING;
 * besides, its session's list, or the list of the abandoned, until it ENDED. A request ends exactly once, in
 * lifecycle_end(), and the last frame is in its journal before that: the worker's own, or one made here for
 * what a worker cannot say (a deadline that passed in the queue, a cancel there, a worker that died). That
 * frame continues at the seq and off which the journal has reached, so a client sees one unbroken sequence.
 *
 * The end is told twice: on the stream, which may drop, and on the session's DEALER with the count. */

#include "broker/core/lifecycle.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <utlist.h>

#include "broker/books/record.h"
#include "broker/books/resume.h"
#include "common/amount.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/utf8.h"

#define OVERDUE_NS (2 * CLOCK_NS_PER_S) /* a cancel takes effect within a step: twice the longest */

/* The story of each request, for who asks with QUERN_LOG=debug. */
static void tell(const struct request *request, enum request_state next, const char *why)
{
    log_debug("request %s: %s -> %s, %s", request_label(request).text, request_state_name(request->state),
              request_state_name(next), why);
}

/* ---- credit ---- */

/* Its worker is told at the end of this turn. */
static void tell_credit(void *arg, struct request *request)
{
    struct broker *broker = arg;
    record_credited(request);
    if (request->worker)
        worker_link_credit(&broker->worker_link, request->worker, &request->home, request->growth.credit);
}

void lifecycle_grow(struct broker *broker, struct request *request)
{
    if (growth_ask(&broker->growth, request))
        tell_credit(broker, request);
}

void lifecycle_grow_waiting(struct broker *broker)
{
    growth_retry(&broker->growth, tell_credit, broker);
}

/* ---- assignment ---- */

static void leave_queue(struct broker *broker, struct request *request)
{
    queue_remove(&broker->queue, request);
    admission_dequeued(&broker->admission, request);
}

static uint64_t milliseconds_left(const struct request *request, uint64_t now)
{
    if (request->deadline_ns == UINT64_MAX)
        return 0;
    uint64_t left = (request->deadline_ns - now) / CLOCK_NS_PER_MS;
    return left ? left : 1;
}

/* Sends the request to the worker as it came, but with all that was fixed at admission, and with what it has
 * made elsewhere. As worker_link_send. */
static int assign(struct broker *broker, struct worker *worker, const struct request *request,
                  struct error *err)
{
    struct message asked, assign = {.kind = MESSAGE_ASSIGN};
    int r = message_decode(broker->request_decoder, request->body.data, request->body.len, &asked, err);
    if (r != 0)
        return r < 0 ? r : -EINVAL;
    assign.assign.session = request->home.session;
    assign.assign.id = request->home.id;
    assign.assign.epoch = request->epoch;
    assign.assign.deadline_left_ms = milliseconds_left(request, broker->now);
    assign.assign.queue_us = (broker->now - request->arrived_ns) / 1000;
    assign.assign.generation = asked.generate.generation;
    assign.assign.credit = request->growth.credit;
    assign.assign.most = request->growth.most;
    char space[PROTO_MAX_SPACE_BYTES + 1];
    request_set_cache_space(request, broker->options.share_prefixes, space, &assign.assign.generation);
    assign.assign.generation.has_seed = true;
    assign.assign.generation.sampling.seed = request->seed;
    sampling_complete_for(&assign.assign.generation.sampling, request->sampling, worker->defaults.values);
    assign.assign.generation.lost = request->n_lost < PROTO_MAX_LOST ? request->n_lost : PROTO_MAX_LOST;
    struct ids output = {0};
    r = ids_append(&output, asked.generate.generation.output.items, asked.generate.generation.output.n);
    if (r == 0)
        r = resume_ids(&request->log, broker->frame_decoder, &output);
    if (r == 0) {
        assign.assign.generation.output = (struct id_list){output.data, output.len};
        assign.assign.generation.off = request->log.text_bytes;
        r = worker_link_send(&broker->worker_link, worker, &assign, err);
    } else {
        error_set(err, r, "its output so far cannot be read");
    }
    ids_deinit(&output);
    return r;
}

/* Where the request does not say, it gets what its first worker has, and keeps that wherever it goes. */
static void fix_sampling(struct request *request, const struct worker *worker)
{
    memcpy(request->sampling, worker->defaults.values, sizeof request->sampling);
}

/* The room in the journal with which it starts. By now the contexts are known. */
static bool start(struct broker *broker, struct request *request)
{
    uint32_t context = broker_largest_context(broker);
    if (request->growth.order == 0 && request->growth.most > context)
        request->growth.most = context;
    if (growth_start(&broker->growth, request) != 0)
        return false;
    record_credited(request);
    return true;
}

void lifecycle_stay(struct broker *broker, struct request *request)
{
    if (journal_made(&request->log) > 0)
        return;
    growth_withdraw(&broker->growth, request);
    record_credited(request);
}

/* Gives the request, the first of these targets in the queue, to a worker, or ends it. False when it has to
 * wait. */
static bool dispatch_first(struct broker *broker, struct request *request, uint64_t targets)
{
    struct worker *worker;
    struct error err = {{0}};
    if (request->deadline_ns <= broker->now) {
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_DEADLINE});
        return true;
    }
    const struct scheduler_wish wish = {.model = request->model,
                                        .digest = request->has_digest ? request->digest : NULL,
                                        .embed = request->embed,
                                        .pair = request->pair,
                                        .bytes = request_assign_bytes(request)};
    int r = routing_choose(&broker->routing, &wish, request, &worker);
    if (r == SCHEDULER_E_BUSY) {
        scheduler_hold(broker->workers, broker->n_workers, &wish);
        return false;
    }
    if (r == SCHEDULER_E_NO_WORKER) {
        if (scheduler_lacks_embeddings(broker->workers, broker->n_workers, &wish))
            lifecycle_fail(broker, request, PROTO_UNSUPPORTED, "%s",
                           request->pair ? LIFECYCLE_NO_RANKING : LIFECYCLE_NO_EMBEDDINGS);
        else if (request->epoch.move > 0)
            lifecycle_fail(broker, request, PROTO_WORKER_LOST, "no worker is left to continue it");
        else
            lifecycle_fail(broker, request, PROTO_NO_WORKER, "no worker serves this request any more");
        return true;
    }
    if (!start(broker, request))
        return false;
    /* Before it is sent: who is said to have it may not have it yet, but never the other way round. */
    bool had_digest = request->has_digest;
    if (!had_digest)
        fix_sampling(request, worker);
    request->has_digest = true;
    memcpy(request->digest, worker->digest, sizeof request->digest);
    record_assigned(request, (struct record_holder){worker->index, worker->incarnation});
    r = assign(broker, worker, request, &err);
    if (r != 0) {
        request->has_digest = had_digest;
        record_returned(request);
        lifecycle_stay(broker, request);
    }
    if (r < 0) {
        lifecycle_fail(broker, request, PROTO_INTERNAL, "cannot be handed to a worker: %s", err.text);
    } else if (r == 0) {
        queue_take(&broker->queue, request, targets);
        admission_dequeued(&broker->admission, request);
        tell(request, REQUEST_RUNNING, worker->name);
        request->state = REQUEST_RUNNING;
        routing_assigned(&broker->routing, request, worker);
    }
    return true; /* a worker that was lost is no candidate the next time */
}

void lifecycle_dispatch(struct broker *broker)
{
    struct request *request;
    uint64_t targets = QUEUE_ALL; /* for which some worker may have room */
    scheduler_release(broker->workers, broker->n_workers);
    while ((request = queue_first(&broker->queue, targets)))
        if (!dispatch_first(broker, request, targets))
            targets &= ~QUEUE_TARGET(request->queued_target);
}

static void send_cancel(struct broker *broker, struct worker *worker, const struct request_key *key)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session = key->session;
    cancel.cancel.id = key->id;
    worker_link_send(&broker->worker_link, worker, &cancel, NULL);
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
    request->cancelled_ns = broker->now;
    record_cancelled(request);
    send_cancel(broker, request->worker, &request->home);
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

void lifecycle_charge(struct broker *broker, const struct request *request, uint64_t tokens)
{
    if (request->key != 0)
        allowance_charge(&broker->allowance, client_keys_of(&broker->client_keys, request->key), tokens,
                         broker->now);
    rate_charge(request->rate, (int64_t)tokens, broker->now);
}

/* Of the prompt an estimate was charged when it came; from here on it counts as what it was. */
static void settle_rate(struct broker *broker, struct request *request)
{
    rate_charge(request->rate, -(int64_t)request->prompt_tokens, broker->now);
    rate_leave(request->rate);
    request->rate = NULL;
}

void lifecycle_end(struct broker *broker, struct request *request, const struct ending *ending)
{
    tell(request, REQUEST_ENDED, end_reason_name(ending->reason));
    if (request->worker)
        routing_left(&broker->routing, request, &ending->usage);
    remember_end(request, ending);
    lifecycle_charge(broker, request, ending->usage.prompt_tokens);
    settle_rate(broker, request);
    if (request->session)
        client_link_send_end(&broker->client_link, request->session, request);
    session_unbind(&broker->sessions, request);
    growth_left(&broker->growth, request);
    admission_ended(&broker->admission, request, broker->now);
    ledger_ended(&broker->ledger, &broker->journal, request, broker->now);
    broker->counters.ended++;
}

void lifecycle_had_ended(struct broker *broker, struct request *request, const struct ending *ending,
                         bool taken)
{
    remember_end(request, ending);
    ledger_ended(&broker->ledger, &broker->journal, request, request->ended_ns);
    if (taken)
        ledger_taken(&broker->ledger, &broker->journal, request);
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
    last.frame.end.lost = request->n_lost;
    broker->scratch.len = 0;
    if (message_encode(&last, &broker->scratch) == 0) {
        /* Room for the end was reserved; without it the end is still told below. */
        journal_append(&broker->journal, &request->log, 0, 0, broker->scratch.data, broker->scratch.len);
        stream_publish(&broker->stream, &request->current, sizeof request->current, broker->scratch.data,
                       broker->scratch.len);
    }
    lifecycle_end(broker, request, &last.frame.end);
}

void lifecycle_fail(struct broker *broker, struct request *request, enum proto_error error,
                    const char *format, ...)
{
    char text[PROTO_MAX_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    struct ending ending = {.reason = END_ERROR, .error = error, .text = bytes_of_string(utf8_clean(text))};
    lifecycle_end_here(broker, request, &ending);
}

/* ---- what workers say ---- */

/* Nothing is lost by saying it again: what the worker has under the same epoch it goes on with. */
void lifecycle_adopted(struct broker *broker, struct worker *worker)
{
    struct request *request, *next;
    DL_FOREACH_SAFE2(worker->requests, request, next, worker_next)
    {
        struct error err = {{0}};
        int r = assign(broker, worker, request, &err);
        if (r < 0)
            lifecycle_fail(broker, request, PROTO_INTERNAL, "cannot be handed to a worker: %s", err.text);
        else if (request->state == REQUEST_CANCELLING)
            send_cancel(broker, worker, &request->home);
    }
}

/* Ends the request of a `finished` if its frames are all in. */
static bool finish(struct broker *broker, struct worker *worker, struct request *request,
                   const struct message *message)
{
    if (message->finished.wseq > worker->wseq)
        return false;
    if (message->finished.count != request->log.count)
        lifecycle_fail(broker, request, PROTO_INTERNAL, "%s generated %llu tokens, but %llu arrived",
                       worker->name, (unsigned long long)message->finished.count,
                       (unsigned long long)request->log.count);
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

static void queue_again(struct broker *broker, struct request *request, const char *why)
{
    routing_left(&broker->routing, request, NULL);
    if (queue_push(&broker->queue, request) < 0) {
        lifecycle_fail(broker, request, PROTO_INTERNAL, "out of memory");
        return;
    }
    tell(request, REQUEST_QUEUED, why);
    record_returned(request);
    lifecycle_stay(broker, request);
    request->state = REQUEST_QUEUED;
    admission_queued(&broker->admission, request);
}

/* Another worker goes on where this one was: whatever it has still published is of an epoch that is over. */
static void move(struct broker *broker, struct request *request, const char *why)
{
    request->epoch.move++;
    broker->counters.moved++;
    queue_again(broker, request, why);
    record_moved(request);
}

void lifecycle_returned(struct broker *broker, struct request *request)
{
    if (request->state == REQUEST_CANCELLING) /* there is nothing left of it to stop */
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
    else if (request->log.first)
        move(broker, request, "its worker handed it over");
    else
        queue_again(broker, request, "its worker is ending");
}

void lifecycle_worker_lost(struct broker *broker, struct worker *worker, bool left, const char *reason)
{
    struct request *request, *next;
    unsigned n_moved = 0;
    DL_FOREACH_SAFE2(worker->requests, request, next, worker_next)
    {
        if (request->state == REQUEST_CANCELLING) {
            lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
        } else if (left && !request->log.first) {
            lifecycle_returned(broker, request);
        } else if (request->n_lost < PROTO_MAX_LOST) {
            request->n_lost++;
            n_moved++;
            move(broker, request, "its worker died");
        } else { /* a request that kills workers must not visit them all */
            const struct amount before = amount_of(PROTO_MAX_LOST, "worker");
            request->n_lost = PROTO_MAX_LOST + 1; /* and no more: damaged memory may have said any number */
            lifecycle_fail(broker, request, PROTO_WORKER_LOST,
                           "%s: %.400s; %s running this request had died before", worker->name, reason,
                           before.text);
        }
    }
    if (n_moved > 0)
        log_info("moving %s of %s", amount_of(n_moved, "request").text, worker->name);
    routing_lost(&broker->routing, worker);
}

/* Whether another one can go on with all that this one has, which serves no more: one of a smaller context
 * could not. */
static bool has_deputy(const struct broker *broker, const struct worker *worker)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        const struct worker *other = &broker->workers[i];
        if (worker_is_serving(other) && other->context >= worker->context &&
            memcmp(other->digest, worker->digest, sizeof other->digest) == 0)
            return true;
    }
    return false;
}

/* When its time is up, what it has waits for the process that takes its place; but when the pool itself ends,
 * there will be none. */
void lifecycle_relieve(struct broker *broker)
{
    struct message drain = {.kind = MESSAGE_DRAIN, .drain = {.hand_over = true}};
    uint64_t patience = broker->options.drain_seconds * CLOCK_NS_PER_S;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        struct worker *worker = &broker->workers[i];
        if (worker->state != WORKER_DRAINING || worker->relieved || worker->n_requests == 0)
            continue;
        bool late = !broker->draining && broker->now - worker->ending_ns >= patience;
        if (!late && !has_deputy(broker, worker))
            continue;
        log_info("%s is ending: handing over %s", worker->name,
                 amount_of(worker->n_requests, "request").text);
        worker->relieved = true;
        worker_link_send(&broker->worker_link, worker, &drain, NULL);
    }
}

/* ---- time ---- */

void lifecycle_expire(struct broker *broker)
{
    struct request *request;
    while ((request = queue_expired(&broker->queue, broker->now)))
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_DEADLINE});
}

static bool is_overdue(uint64_t due, uint64_t now)
{
    return due <= now && now - due >= OVERDUE_NS;
}

/* Frames that came meanwhile count first, or a broker that stood still would end what had ended well. */
void lifecycle_end_overdue(struct broker *broker)
{
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        struct worker *worker = &broker->workers[i];
        struct request *request, *next;
        DL_FOREACH_SAFE2(worker->requests, request, next, worker_next)
        {
            bool cancelling = request->state == REQUEST_CANCELLING;
            if (!worker->drained)
                break;
            if (cancelling && is_overdue(request->cancelled_ns, broker->now)) {
                lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
            } else if (is_overdue(request->deadline_ns, broker->now)) {
                lifecycle_cancel(broker, request); /* or the worker would go on when it can */
                lifecycle_end_here(broker, request, &(struct ending){.reason = END_DEADLINE});
            }
        }
    }
}

void lifecycle_end_all(struct broker *broker, const char *reason)
{
    struct request *request;
    while ((request = queue_first(&broker->queue, QUEUE_ALL)))
        lifecycle_fail(broker, request, PROTO_DRAINING, "%s", reason);
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        while ((request = broker->workers[i].requests)) {
            lifecycle_cancel(broker, request); /* or its worker would go on while it can */
            lifecycle_fail(broker, request, PROTO_DRAINING, "%s", reason);
        }
    }
}

void lifecycle_taken(struct broker *broker, const struct session *session, struct id128 id)
{
    const struct request_key key = {session->id, id};
    struct request *request = ledger_find(&broker->ledger, &key);
    if (request)
        ledger_taken(&broker->ledger, &broker->journal, request);
}

static bool is_awaited(const struct broker *broker, const struct kept *kept)
{
    const struct request *request;
    DL_FOREACH2(kept->requests, request, kept_next)
    {
        const struct session *session = session_find(&broker->sessions, &request->current.session);
        if (session && session->tells)
            return true;
    }
    return false;
}

bool lifecycle_is_awaited(const struct broker *broker)
{
    for (const struct kept *kept = broker->ledger.kept; kept; kept = kept->hh.next)
        if (is_awaited(broker, kept))
            return true;
    return false;
}

void lifecycle_forget(struct broker *broker)
{
    ledger_forget(&broker->ledger, &broker->journal, broker->now);
}
