/* SPDX-License-Identifier: MIT */
/* Frames of one request: order, gaps, replay.
 *
 * A frame that begins at or before what was delivered is delivered from there on; one that begins beyond is a
 * gap. Then the request is `replaying`: live frames are held, the broker is asked for what is missing, page
 * after page, and when it says that it has no more the held frames are looked at as if they came now.
 * Whatever is held twice or came in a page too is a duplicate and delivers nothing. So order of arrival
 * decides nothing.
 *
 * A page that is asked for twice comes twice, and on a slow link the second one keeps the next from coming.
 * So a page is waited for in proportion to the time that others took, and longer after each asking; and one
 * that brings nothing new is no reason to ask, for the asking that followed its like is under way.
 *
 * Older epochs are dropped when live (a fenced worker may still publish) but are good inside a page: the
 * broker kept them. */

#include "client/lib/requests/stream.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "client/lib/requests/delivery.h"
#include "client/lib/core/outgoing.h"

/* Replays that bring nothing after the broker told the end, before the client believes that nothing will
 * come. */
#define FRUITLESS_MAX 3

/* Without a page: ask again. At first after PAGE_NS, and where pages take long, after so many times as long
 * as they do: as many may stand before this one. */
#define PAGE_NS     (1 * CLOCK_NS_PER_S)
#define PAGE_TIMES  4
#define PAGE_MAX_NS (30 * CLOCK_NS_PER_S)

static void ask(struct quern *client, struct request *request, uint64_t wait_ns)
{
    request->replaying = true;
    request->replay_ns = client->now;
    request->page_wait_ns = wait_ns < PAGE_MAX_NS ? wait_ns : PAGE_MAX_NS;
    /* A full socket is no harm: the timer asks again. */
    if (outgoing_replay(client, request) < 0)
        request->page_wait_ns = PAGE_NS;
}

void stream_ask(struct quern *client, struct request *request)
{
    uint64_t wait_ns = PAGE_TIMES * client->page_ns;
    request->asked_ns = client->now;
    ask(client, request, wait_ns > PAGE_NS ? wait_ns : PAGE_NS);
}

void stream_ask_again(struct quern *client, struct request *request)
{
    ask(client, request, 2 * request->page_wait_ns);
}

/* A page came. The last one of a replay is mostly small, and says little of how long others take. */
static void note_page(struct quern *client, const struct request *request, bool done)
{
    uint64_t took = client->now - request->asked_ns;
    if (!done || took > client->page_ns)
        client->page_ns = took;
}

static bool leaves_gap(const struct request *request, const struct frame *frame)
{
    return frame->seq > request->next || frame->off > request->off;
}

/* True when the request is over, and freed. */
static bool apply_live(struct quern *client, struct request *request, const struct frame *frame,
                       const void *data, size_t len)
{
    int order = epoch_compare(frame->epoch, request->epoch);
    if (order < 0)
        return false;
    if (order > 0)
        request->epoch = frame->epoch;
    if (request->replaying || request->state == REQUEST_ATTACHING) {
        state_hold_frame(request, data, len);
        return false;
    }
    if (leaves_gap(request, frame)) {
        state_hold_frame(request, data, len);
        stream_ask(client, request);
        return false;
    }
    return delivery_frame(client, request, frame);
}

void stream_frame(struct quern *client, struct request *request, const struct frame *frame, const void *data,
                  size_t len)
{
    apply_live(client, request, frame, data, len);
}

/* The held frames as if they came now; a gap among them holds the rest again. True when the request is over,
 * and freed. */
static bool apply_held(struct quern *client, struct request *request)
{
    bool over = false;
    for (struct held_frame *held = state_take_held(request), *next; held; held = next) {
        struct message message;
        next = held->next;
        if (!over && message_decode(client->frame_decoder, held->data, held->len, &message, NULL) == 0)
            over = apply_live(client, request, &message.frame, held->data, held->len);
        free(held);
    }
    return over;
}

static void end_as_lost(struct quern *client, struct request *request)
{
    char text[128];
    snprintf(text, sizeof text, "the pool no longer has the output from token %" PRIu64 " on", request->next);
    delivery_fail(client, request, "worker_lost", bytes_of_string(text), 0);
}

/* One frame of a page. False when no further one of it is to be looked at: the request is over, and freed; or
 * out of memory, and the timer asks for the page again. */
static bool apply_replayed(struct quern *client, struct request *request, struct bytes bytes)
{
    struct message message;
    int r = message_decode(client->frame_decoder, bytes.data, bytes.len, &message, NULL);
    if (r == -ENOMEM)
        return false;
    if (r != 0 || message.kind != MESSAGE_FRAME ||
        memcmp(message.frame.id.bytes, request->id.bytes, 16) != 0) {
        delivery_fail(client, request, "internal",
                      BYTES_LITERAL("the broker replayed a frame of another request"), 0);
        return false;
    }
    if (leaves_gap(request, &message.frame)) {
        end_as_lost(client, request);
        return false;
    }
    return !delivery_frame(client, request, &message.frame);
}

/* The broker has no more for now, and the end did not come with it, though it was told. */
static void settle(struct quern *client, struct request *request)
{
    if (!request->end_told || ++request->fruitless < FRUITLESS_MAX)
        return;
    if (request->next == request->end_count)
        delivery_close(client, request);
    else
        end_as_lost(client, request);
}

void stream_page(struct quern *client, struct request *request, const struct message *message)
{
    if (!request->replaying)
        return;
    uint64_t next = request->next, off = request->off;
    for (size_t i = 0; i < message->replay_ok.frames.n; i++)
        if (!apply_replayed(client, request, message->replay_ok.frames.items[i]))
            return;
    if (epoch_compare(message->replay_ok.epoch, request->epoch) > 0)
        request->epoch = message->replay_ok.epoch;
    bool done = message->replay_ok.done;
    /* No progress, and no end: the timer asks again, not we at once. */
    if (!done && request->next == next && request->off == off)
        return;
    note_page(client, request, done);
    if (!done) {
        stream_ask(client, request);
        return;
    }
    request->replaying = false;
    if (!apply_held(client, request) && !request->replaying)
        settle(client, request);
}
