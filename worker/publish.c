/* SPDX-License-Identifier: MIT */
/* Events into frames.
 *
 * Output is flushed after every step that took as long as a frame may wait, at the end of its request, and
 * otherwise once that time has passed since the last frame. So a real model sends one frame a step, and a
 * very fast one does not drown the broker in frames of one token. A frame costs broker and client more than
 * the ids in it, so frames wait longer and hold more where thousands of requests have something to flush, and
 * while the broker is behind, with thousands of frames to acknowledge.
 *
 * The last frame carries the end. `finished` tells the broker the same with the count of ids, on the socket
 * that loses nothing. */

#include "worker/publish.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "worker/prepare/prompt.h"

#include <utlist.h>

#define MOST_IDS  512   /* of one frame: with log probabilities it stays well below PROTO_MAX_FRAME_BYTES */
#define MOST_TEXT 65536 /* bytes of text of one frame */

#define BEHIND_FRAMES (WINDOW_MOST / 8) /* so many not acknowledged: frames wait for: */
#define BEHIND_NS     (10 * CLOCK_NS_PER_MS)

/* About what a frame costs all processes that it passes. Requests that have something to flush share the
 * time: with n of them a frame waits for n times this, so that a worker sends at most 125,000 frames a
 * second. The more requests there are, the less of what a frame needs is in the caches: with MANY it counts
 * twice. While the broker is behind, frames wait four times as long. */
#define FRAME_COST_NS 8000
#define MANY          4096
#define BEHIND_COSTS  4

#define READING_NS (100 * CLOCK_NS_PER_MS) /* between two words on how much of a prompt is read */
/* Log probabilities of one frame that tells their pieces, of up to 256 bytes each. */
#define MOST_PIECES 480

_Static_assert(sizeof(struct logprob) == sizeof(struct token_logprob), "log probabilities are copied whole");

_Static_assert(MOST_PIECES > PROTO_MAX_LOGPROBS &&
                   MOST_PIECES * (PROTO_MAX_PIECE_BYTES + 16) + MOST_TEXT < PROTO_MAX_FRAME_BYTES - 4096,
               "a frame holds the pieces of one id, and what it may hold");

void publisher_init(struct publisher *publisher, struct stream *stream, struct link *link,
                    const struct tokenizer *tokenizer, uint32_t frame_us)
{
    *publisher = (struct publisher){
        .stream = stream, .link = link, .tokenizer = tokenizer, .frame_ns = frame_us * 1000ull};
}

void publisher_deinit(struct publisher *publisher)
{
    buffer_deinit(&publisher->pieces);
}

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

static void set_pending(struct publisher *publisher, struct output *output, bool pending)
{
    if (output->is_pending == pending)
        return;
    output->is_pending = pending;
    if (pending) {
        DL_APPEND2(publisher->pending, output, prev_pending, next_pending);
        publisher->n_pending++;
    } else {
        DL_DELETE2(publisher->pending, output, prev_pending, next_pending);
        publisher->n_pending--;
    }
}

/* Whether the broker has so much to acknowledge that more frames would only wait. */
static bool is_behind(const struct publisher *publisher)
{
    return publisher->frame_ns > 0 && window_kept(&publisher->stream->window) >= BEHIND_FRAMES;
}

/* How long output may wait for more of its request. */
static uint64_t wait_ns(const struct publisher *publisher)
{
    uint64_t ns = publisher->frame_ns;
    if (ns == 0) /* a frame for every token was asked for */
        return 0;
    uint64_t n = publisher->n_pending, share_ns = n * FRAME_COST_NS + n * n * FRAME_COST_NS / MANY;
    if (is_behind(publisher)) {
        ns = ns < BEHIND_NS ? BEHIND_NS : ns;
        share_ns *= BEHIND_COSTS;
    }
    return share_ns < ns ? ns : share_ns;
}

/* When it is to be flushed; 0: it is full, at once. */
static uint64_t due_ns(const struct output *output, uint64_t wait_ns)
{
    bool full = output->ids.len >= MOST_IDS || output->text.len >= MOST_TEXT;
    return full ? 0 : output->flushed_ns + wait_ns;
}

static void expect(struct publisher *publisher, const struct output *output, uint64_t wait_ns)
{
    uint64_t due = due_ns(output, wait_ns);
    if (due < publisher->due_ns)
        publisher->due_ns = due;
}

static void tell_pieces(struct publisher *publisher, struct frame *frame)
{
    size_t n = frame->ids.n * frame->logprobs.width;
    publisher->pieces.len = 0;
    int r = buffer_reserve(&publisher->pieces, n * sizeof(struct bytes));
    if (r < 0)
        die("the pieces of a frame could not be stored", r);
    struct bytes *pieces = (struct bytes *)(void *)publisher->pieces.data;
    for (size_t i = 0; i < n; i++)
        pieces[i] = prompt_piece(publisher->tokenizer, frame->logprobs.items[i].id);
    frame->pieces.items = pieces;
    frame->pieces.n = n;
}

/* How many of the ids that are left go into one frame. */
static size_t ids_of_frame(const struct output *output, size_t left)
{
    size_t most = output->pieces && output->width > 0 ? MOST_PIECES / output->width : left;
    return left < most ? left : most;
}

/* Publishes what is pending, and the ending if there is one. It takes more than one frame only when a single
 * token has a very long text, or when many ids tell their pieces. Text never goes before its ids: who gets
 * the first of these frames only, and goes on elsewhere, has the text of its ids at most. */
static void flush(struct publisher *publisher, struct output *output, const struct ending *ending,
                  uint64_t now)
{
    struct message message = {.kind = MESSAGE_FRAME};
    struct frame *frame = &message.frame;
    memcpy(&frame->id, output->topic + sizeof(struct id128), sizeof frame->id);
    frame->epoch = output->epoch;
    const struct token_logprob *logprobs = (const struct token_logprob *)(const void *)output->logprobs.data;
    size_t taken = 0, taken_ids = 0;
    bool over;
    do {
        frame->seq = output->seq;
        frame->off = output->off;
        frame->ids.items = output->ids.data + taken_ids;
        frame->ids.n = ids_of_frame(output, output->ids.len - taken_ids);
        frame->logprobs.width = frame->ids.n > 0 ? output->width : 0;
        frame->logprobs.items = logprobs + taken_ids * output->width;
        frame->pieces.n = 0;
        if (output->pieces && frame->logprobs.width > 0)
            tell_pieces(publisher, frame);
        taken_ids += frame->ids.n;
        frame->text.data = output->text.data + taken;
        if (taken_ids == output->ids.len)
            frame->text.len = cut_text(frame->text.data, output->text.len - taken, MOST_TEXT);
        taken += frame->text.len;
        over = taken == output->text.len && taken_ids == output->ids.len;
        frame->prompt_digest =
            (struct bytes){output->prompt_digest, output->tells_prompt ? PROMPT_DIGEST_BYTES : 0};
        output->tells_prompt = false;
        frame->has_end = ending && over;
        if (frame->has_end) {
            frame->end = *ending;
            frame->embedding = (struct bytes){output->embedding.data, output->embedding.len};
        }
        output->seq += frame->ids.n;
        output->off += frame->text.len;
        int r = stream_publish(publisher->stream, output->topic, &message);
        if (r < 0)
            die("a frame could not be stored", r);
    } while (!over);
    output->ids.len = output->text.len = output->logprobs.len = 0;
    output->flushed_ns = now;
    set_pending(publisher, output, false);
}

/* ---- ends ---- */

void publish_end(struct publisher *publisher, struct output *output, const struct ending *ending)
{
    flush(publisher, output, ending, clock_ns());
    struct message message = {.kind = MESSAGE_FINISHED};
    memcpy(&message.finished.session, output->topic, sizeof message.finished.session);
    memcpy(&message.finished.id, output->topic + sizeof(struct id128), sizeof message.finished.id);
    message.finished.epoch = output->epoch;
    message.finished.count = output->seq;
    message.finished.wseq = publisher->stream->window.last;
    message.finished.end = *ending;
    link_must_send(publisher->link, &message);
}

void publish_drop(struct publisher *publisher, struct output *output)
{
    set_pending(publisher, output, false);
    ids_deinit(&output->ids);
    buffer_deinit(&output->text);
    buffer_deinit(&output->logprobs);
    buffer_deinit(&output->embedding);
}

/* ---- events ---- */

/* Where fewer ids have a probability than were asked for, the rest has id −1, which the wire has not. */
static int gather_logprobs(struct output *output, const struct engine_event *event)
{
    size_t n = (size_t)event->n_ids * event->n_logprobs;
    int r = buffer_append(&output->logprobs, event->logprobs, n * sizeof *event->logprobs);
    if (r < 0)
        return r;
    struct token_logprob *added =
        (struct token_logprob *)(void *)(output->logprobs.data + output->logprobs.len) - n;
    for (size_t i = 0; i < n; i++)
        if (added[i].id < 0)
            added[i].id = 0;
    output->width = event->n_logprobs;
    return 0;
}

/* As it goes over the wire. */
static int gather_embedding(struct output *output, const struct engine_event *event)
{
    int r = buffer_reserve(&output->embedding, event->n_embedding * sizeof(float));
    for (uint32_t i = 0; r == 0 && i < event->n_embedding; i++) {
        uint32_t bits;
        memcpy(&bits, &event->embedding[i], sizeof bits);
        bits = htole32(bits);
        r = buffer_append(&output->embedding, &bits, sizeof bits);
    }
    return r;
}

static int gather(struct output *output, const struct engine_event *event)
{
    int r = event->n_ids == 1 ? ids_push(&output->ids, event->ids[0])
                              : ids_append(&output->ids, event->ids, event->n_ids);
    if (r == 0)
        r = buffer_append(&output->text, event->text.data, event->text.len);
    if (r == 0 && event->embedding)
        r = gather_embedding(output, event);
    return r == 0 && event->logprobs ? gather_logprobs(output, event) : r;
}

void publish_event(struct publisher *publisher, struct output *output, const struct engine_event *event)
{
    if (gather(output, event) < 0)
        die("the tokens of a request could not be stored", -ENOMEM);
    set_pending(publisher, output, true);
    expect(publisher, output, wait_ns(publisher));
}

void publish_reading(struct publisher *publisher, struct output *output, const struct engine_reading *reading)
{
    const uint64_t now = clock_ns();
    if (reading->n_read < reading->n_prompt && output->reading_ns && now - output->reading_ns < READING_NS)
        return;
    output->reading_ns = now;
    struct message message = {.kind = MESSAGE_PROGRESS};
    memcpy(&message.progress.id, output->topic + sizeof(struct id128), sizeof message.progress.id);
    message.progress.epoch = output->epoch;
    message.progress.total = reading->n_prompt;
    message.progress.cached = reading->n_cached;
    message.progress.read = reading->n_read;
    stream_tell(publisher->stream, output->topic, &message);
}

void publish_now(struct publisher *publisher, struct output *output)
{
    if (output->is_pending)
        flush(publisher, output, NULL, clock_ns());
}

void publish_due(struct publisher *publisher, uint64_t now, uint64_t step_ns)
{
    struct output *output, *next;
    const uint64_t wait = wait_ns(publisher); /* of all that are pending now, though some are flushed below */
    bool all = step_ns == UINT64_MAX || (step_ns >= wait && !is_behind(publisher));
    if (!all && now < publisher->due_ns)
        return;
    publisher->due_ns = UINT64_MAX;
    DL_FOREACH_SAFE2(publisher->pending, output, next, next_pending)
    {
        if (all || now >= due_ns(output, wait))
            flush(publisher, output, NULL, now);
        else
            expect(publisher, output, wait);
    }
}
