/* SPDX-License-Identifier: MIT */
/* Frames of one request: order, gaps, replay, delivery.
 *
 * A request knows how many ids (`next`) and how many bytes of text (`off`) were delivered. A frame that
 * begins at or before both is delivered from there on; one that begins beyond is a gap. Then the request is
 * `replaying`: live frames are held, the broker is asked for what is missing, page after page, and when it
 * says that it has no more the held frames are looked at as if they came now. Whatever is held twice or came
 * in a page too is a duplicate and delivers nothing. So order of arrival decides nothing, and the callback
 * sees each id and each byte once.
 *
 * Older epochs are dropped when live (a fenced worker may still publish) but are good inside a page: the
 * broker kept them. A request is freed when its end was delivered, and only here and in request_free: after
 * any call that may deliver, the caller looks at the returned bool before it touches the request again. */

#include "client/lib/client.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Replays that bring nothing after the broker told the end, before the client believes that nothing will
 * come. */
#define FRUITLESS_MAX 3

void request_set_end(struct request *request, const struct ending *ending)
{
    size_t len = ending->text.len < PROTO_MAX_TEXT_BYTES ? ending->text.len : PROTO_MAX_TEXT_BYTES;
    if (len > 0)
        memcpy(request->end_text, ending->text.data, len);
    request->end_text[len] = 0;
    request->end = (struct quern_end){
        .reason = (enum quern_reason)ending->reason,
        .error = ending->error == PROTO_OK ? "" : proto_error_name(ending->error),
        .text = request->end_text,
        .seed = request->seed,
        .prompt_tokens = ending->usage.prompt_tokens,
        .cached_tokens = ending->usage.cached_tokens,
        .output_tokens = ending->usage.output_tokens,
        .queue_ms = ending->timing.queue_ms,
        .prefill_ms = ending->timing.prefill_ms,
        .decode_ms = ending->timing.decode_ms,
    };
}

static void call(struct quern *client, struct request *request, struct quern_output *output)
{
    memcpy(output->id.bytes, request->id.bytes, 16);
    if (!output->text)
        output->text = "";
    client->delivered++;
    if (request->fn)
        request->fn(request->arg, output);
}

void stream_finish(struct quern *client, struct request *request)
{
    struct quern_output output = {.index = request->next, .end = &request->end};
    request->over = true;
    call(client, request, &output);
    request_free(client, request);
}

/* Delivers what is new of a frame that leaves no gap. True when the request is over, and freed. */
static bool deliver(struct quern *client, struct request *request, const struct frame *frame)
{
    uint64_t skip = request->next - frame->seq;
    size_t known_ids = skip < frame->ids.n ? (size_t)skip : frame->ids.n;
    skip = request->off - frame->off;
    size_t known_text = skip < frame->text.len ? (size_t)skip : frame->text.len;
    struct quern_output output = {.index = request->next,
                                  .ids = frame->ids.n ? frame->ids.items + known_ids : NULL,
                                  .n_ids = frame->ids.n - known_ids,
                                  .text = frame->text.data ? (const char *)frame->text.data + known_text : "",
                                  .text_len = frame->text.len - known_text};
    if (output.n_ids == 0 && output.text_len == 0 && !frame->has_end)
        return false;
    if (frame->logprobs.width > 0) {
        _Static_assert(sizeof(struct quern_logprob) == sizeof(struct token_logprob), "one layout, two names");
        output.n_logprobs = frame->logprobs.width;
        output.logprobs = (const struct quern_logprob *)frame->logprobs.items + known_ids * output.n_logprobs;
    }
    request->next += output.n_ids;
    request->off += output.text_len;
    request->fruitless = 0;
    if (frame->has_end) {
        request_set_end(request, &frame->end);
        output.end = &request->end;
        request->over = true;
    }
    call(client, request, &output);
    if (!request->over)
        return false;
    request_free(client, request);
    return true;
}

static void hold(struct request *request, const void *data, size_t len)
{
    if (request->held_frames >= HELD_MAX_FRAMES || request->held_bytes + len > HELD_MAX_BYTES)
        return; /* the gap it leaves is seen later, and asked for */
    struct held_frame *held = malloc(sizeof *held + len);
    if (!held)
        return;
    held->next = NULL;
    held->len = len;
    memcpy(held->data, data, len);
    if (!request->held)
        request->held_tail = &request->held;
    *request->held_tail = held;
    request->held_tail = &held->next;
    request->held_frames++;
    request->held_bytes += len;
}

void stream_drop_held(struct request *request)
{
    for (struct held_frame *held = request->held, *next; held; held = next) {
        next = held->next;
        free(held);
    }
    request->held = NULL;
    request->held_frames = request->held_bytes = 0;
}

void stream_ask(struct quern *client, struct request *request)
{
    struct message message = {.kind = MESSAGE_REPLAY};
    message.replay.id = request->id;
    message.replay.epoch = request->epoch;
    message.replay.next = request->next;
    request->replaying = true;
    request->replay_ns = client->now;
    /* A full socket is no harm: the timer asks again. */
    session_send(client, &message, NULL);
}

/* A frame as it came from the stream. True when the request is over, and freed. */
static bool apply_live(struct quern *client, struct request *request, const struct frame *frame,
                       const void *data, size_t len)
{
    int order = epoch_compare(frame->epoch, request->epoch);
    if (order < 0)
        return false;
    if (order > 0)
        request->epoch = frame->epoch;
    if (request->replaying || request->state == REQUEST_ATTACHING) {
        hold(request, data, len);
        return false;
    }
    if (frame->seq > request->next || frame->off > request->off) {
        hold(request, data, len);
        stream_ask(client, request);
        return false;
    }
    return deliver(client, request, frame);
}

void stream_frame(struct quern *client, const struct frame *frame, const void *data, size_t len)
{
    struct request *request = request_find(client, &frame->id);
    if (!request)
        return;
    request->heard_ns = client->now;
    if (request->state == REQUEST_SENT)
        request->state = REQUEST_LIVE; /* `accepted` is on its way, on another socket */
    apply_live(client, request, frame, data, len);
}

/* The held frames as if they came now; a gap among them holds the rest again. True when the request is over.
 */
static bool apply_held(struct quern *client, struct request *request)
{
    struct held_frame *held = request->held;
    request->held = NULL;
    request->held_frames = request->held_bytes = 0;
    bool over = false;
    while (held) {
        struct held_frame *next = held->next;
        struct message message;
        if (!over && message_decode(client->frame_decoder, held->data, held->len, &message, NULL) == 0)
            over = apply_live(client, request, &message.frame, held->data, held->len);
        free(held);
        held = next;
    }
    return over;
}

/* One frame of a page. 1: the request is over, and freed; 0: go on; -1: it does not fit. */
static int apply_replayed(struct quern *client, struct request *request, struct bytes bytes)
{
    struct message message;
    if (message_decode(client->frame_decoder, bytes.data, bytes.len, &message, NULL) != 0 ||
        message.kind != MESSAGE_FRAME || memcmp(message.frame.id.bytes, request->id.bytes, 16) != 0) {
        request_end_locally(client, request, "internal",
                            "the broker replayed something that is no frame of this request");
        return 1;
    }
    if (message.frame.seq > request->next || message.frame.off > request->off)
        return -1;
    return deliver(client, request, &message.frame);
}

static void end_as_lost(struct quern *client, struct request *request)
{
    char text[128];
    snprintf(text, sizeof text, "the pool no longer has the output from token %" PRIu64 " on", request->next);
    request_end_locally(client, request, "worker_lost", text);
}

/* The broker has no more for now, and the end did not come with it, though it was told. */
static void settle(struct quern *client, struct request *request)
{
    if (!request->end_told || ++request->fruitless < FRUITLESS_MAX)
        return;
    if (request->next == request->end_count)
        stream_finish(client, request);
    else
        end_as_lost(client, request);
}

void stream_page(struct quern *client, const struct message *message)
{
    struct request *request = request_find(client, &message->replay_ok.id);
    if (!request || !request->replaying)
        return;
    request->heard_ns = client->now;
    for (size_t i = 0; i < message->replay_ok.frames.n; i++) {
        int r = apply_replayed(client, request, message->replay_ok.frames.items[i]);
        if (r > 0)
            return;
        if (r < 0) {
            end_as_lost(client, request);
            return;
        }
    }
    if (epoch_compare(message->replay_ok.epoch, request->epoch) > 0)
        request->epoch = message->replay_ok.epoch;
    if (!message->replay_ok.done) {
        /* A page without frames is no progress: the timer asks again, not we at once. */
        if (message->replay_ok.frames.n > 0)
            stream_ask(client, request);
        return;
    }
    request->replaying = false;
    if (!apply_held(client, request) && !request->replaying)
        settle(client, request);
}
