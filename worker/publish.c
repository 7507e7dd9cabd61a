/* SPDX-License-Identifier: MIT */
/* Events into frames.
 *
 * What a request made gathers in it until it is flushed: after every step that took as long as a frame may
 * wait, at its end, and otherwise once that time has passed since its last frame. So a real model sends one
 * frame a step, and a very fast one does not drown the broker in frames of one token.
 *
 * The last frame carries the end; `finished` tells the broker the same with the count, on the socket that
 * loses nothing. */

#include "worker/worker.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/engine/text.h"

#include <utlist.h>

#define MOST_IDS  512   /* of one frame: with log probabilities it stays well below PROTO_MAX_FRAME_BYTES */
#define MOST_TEXT 65536 /* bytes of text of one frame */

_Static_assert(sizeof(struct logprob) == sizeof(struct token_logprob), "log probabilities are copied whole");

/* A token that the broker never gets would leave its request waiting for ever; a dead worker does not. */
static _Noreturn void die(const char *what, int code)
{
    log_error("%s: %s", what, strerror(-code));
    _exit(EXIT_FAILURE);
}

/* The longest beginning of the text, up to `most` bytes, that cuts no character. */
static size_t cut_text(const uint8_t *text, size_t len, size_t most)
{
    if (len <= most)
        return len;
    len = most;
    while (len > most - 4 && (text[len] & 0xc0) == 0x80)
        len--;
    return len;
}

/* Publishes what is pending, and the ending if there is one. It takes more than one frame only when a single
 * token has a very long text. */
static void flush(struct worker *worker, struct request *request, const struct ending *ending, uint64_t now)
{
    struct message message = {.kind = MESSAGE_FRAME};
    struct frame *frame = &message.frame;
    memcpy(&frame->id, request->topic + sizeof(struct id128), sizeof frame->id);
    frame->epoch = request->epoch;
    size_t taken = 0;
    do {
        bool first = taken == 0;
        frame->seq = request->seq;
        frame->off = request->off;
        frame->ids = (struct id_list){request->ids.data, first ? request->ids.len : 0};
        frame->logprobs.width = first ? request->width : 0;
        frame->logprobs.items = (const struct token_logprob *)(const void *)request->logprobs.data;
        frame->text.data = request->text.data + taken;
        frame->text.len = cut_text(frame->text.data, request->text.len - taken, MOST_TEXT);
        taken += frame->text.len;
        frame->has_end = ending && taken == request->text.len;
        if (frame->has_end)
            frame->end = *ending;
        request->seq += frame->ids.n;
        request->off += frame->text.len;
        int r = stream_publish(&worker->stream, request->topic, &message);
        if (r < 0)
            die("a frame could not be kept", r);
    } while (taken < request->text.len);
    request->ids.len = request->text.len = request->logprobs.len = 0;
    request->flushed_ns = now;
    if (request->is_pending)
        DL_DELETE2(worker->pending, request, prev_pending, next_pending);
    request->is_pending = false;
}

static void free_request(struct worker *worker, struct request *request)
{
    if (!request->muted)
        HASH_DELETE(hh, worker->requests, request);
    if (request->is_pending)
        DL_DELETE2(worker->pending, request, prev_pending, next_pending);
    worker->n_requests--;
    ids_deinit(&request->ids);
    buffer_deinit(&request->text);
    buffer_deinit(&request->logprobs);
    free(request);
}

void publish_forget(struct worker *worker)
{
    struct request *request, *next;
    HASH_ITER(hh, worker->requests, request, next)
    {
        free_request(worker, request);
    }
}

static void finish(struct worker *worker, struct request *request, const struct ending *ending, uint64_t now)
{
    if (!request->muted) {
        flush(worker, request, ending, now);
        struct message message = {.kind = MESSAGE_FINISHED};
        memcpy(&message.finished.session, request->topic, sizeof message.finished.session);
        memcpy(&message.finished.id, request->topic + sizeof(struct id128), sizeof message.finished.id);
        message.finished.epoch = request->epoch;
        message.finished.count = request->seq;
        message.finished.wseq = worker->stream.window.last;
        message.finished.end = *ending;
        link_send(worker, &message);
    }
    free_request(worker, request);
}

/* A reason as the protocol wants it: a chat template may say anything. Lives until the next call. */
static struct bytes clean_reason(struct worker *worker, const char *reason)
{
    struct text text = {0};
    worker->reason.len = 0;
    int r = text_push(&text, bytes_of_string(reason), &worker->reason);
    if (r == 0)
        r = text_finish(&text, &worker->reason);
    text_deinit(&text);
    if (r < 0)
        return BYTES_LITERAL("out of memory for the reason");
    return (struct bytes){worker->reason.data,
                          cut_text(worker->reason.data, worker->reason.len, PROTO_MAX_TEXT_BYTES)};
}

void publish_refusal(struct worker *worker, struct request *request, enum proto_error error, const char *text)
{
    const struct ending ending = {.reason = END_ERROR,
                                  .error = error,
                                  .text = clean_reason(worker, text),
                                  .timing = {.queue_ms = request->queue_ms}};
    finish(worker, request, &ending, clock_ns());
}

static void finish_by_event(struct worker *worker, struct request *request, const struct engine_event *event)
{
    static const enum end_reason reasons[] = {[ENGINE_END_STOP] = END_STOP,
                                              [ENGINE_END_LENGTH] = END_LENGTH,
                                              [ENGINE_END_CANCELLED] = END_CANCELLED,
                                              [ENGINE_END_DEADLINE] = END_DEADLINE,
                                              [ENGINE_END_FAULT] = END_ERROR};
    struct ending ending = {
        .reason = reasons[event->end],
        .usage = {event->n_prompt, event->n_cached, event->n_output},
        .timing = {request->queue_ms, (double)event->prefill_ns / 1e6, (double)event->decode_ns / 1e6}};
    if (ending.reason == END_ERROR) {
        ending.error = PROTO_MODEL_ERROR;
        ending.text = clean_reason(worker, event->fault);
    }
    finish(worker, request, &ending, clock_ns());
}

/* Where fewer ids have a probability than were asked for, the rest has id −1, which the wire has not. */
static int gather_logprobs(struct request *request, const struct engine_event *event)
{
    size_t n = (size_t)event->n_ids * event->n_logprobs;
    int r = buffer_append(&request->logprobs, event->logprobs, n * sizeof *event->logprobs);
    if (r < 0)
        return r;
    struct token_logprob *added =
        (struct token_logprob *)(void *)(request->logprobs.data + request->logprobs.len) - n;
    for (size_t i = 0; i < n; i++)
        if (added[i].id < 0)
            added[i].id = 0;
    request->width = event->n_logprobs;
    return 0;
}

static int gather(struct request *request, const struct engine_event *event)
{
    int r = ids_append(&request->ids, event->ids, event->n_ids);
    if (r == 0)
        r = buffer_append(&request->text, event->text.data, event->text.len);
    return r == 0 && event->logprobs ? gather_logprobs(request, event) : r;
}

void publish_event(void *arg, const struct engine_event *event)
{
    struct worker *worker = arg;
    struct request *request = (struct request *)(uintptr_t)event->tag;
    if (!request->muted && gather(request, event) < 0)
        die("the tokens of a request could not be kept", -ENOMEM);
    if (event->end != ENGINE_RUNNING) {
        finish_by_event(worker, request, event);
        return;
    }
    if (!request->is_pending && !request->muted) {
        DL_APPEND2(worker->pending, request, prev_pending, next_pending);
        request->is_pending = true;
    }
}

void publish_due(struct worker *worker, uint64_t now, uint64_t step_ns)
{
    uint64_t frame_ns = worker->options.frame_us * 1000ull;
    struct request *request, *next;
    DL_FOREACH_SAFE2(worker->pending, request, next, next_pending)
    {
        if (step_ns >= frame_ns || now - request->flushed_ns >= frame_ns || request->ids.len >= MOST_IDS ||
            request->text.len >= MOST_TEXT)
            flush(worker, request, NULL, now);
    }
}
