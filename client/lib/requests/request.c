/* SPDX-License-Identifier: MIT */
/* Requests: sending them, and what the broker says of them.
 *
 *   NEW ──open──▶ SENT ──accepted, or a frame──▶ LIVE ──last frame──▶ gone
 *                  └──────────error─────────────────────────────────▶ gone
 *   LIVE ──session opened again──▶ ATTACHING ──attach_ok──▶ LIVE
 *                                      └──unknown, nothing received──▶ SENT
 *
 * sending.c decides when a request in NEW is sent. The encoded generate is kept until the output begins, so
 * that it can be sent again byte for byte: the pool takes the same bytes under the same id for the same
 * request. After that it is never sent again. */

#include "client/lib/requests/request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/lib/requests/delivery.h"
#include "client/lib/core/outgoing.h"
#include "client/lib/requests/request_encode.h"
#include "client/lib/requests/sending.h"
#include "client/lib/requests/stream.h"
#include "common/amount.h"

#define SILENCE_NS (1 * CLOCK_NS_PER_S)    /* without a frame: ask */
#define END_NS     (100 * CLOCK_NS_PER_MS) /* from the DEALER's end to the last frame */

int quern_encode(struct quern *client, const struct quern_request *request,
                 struct quern_encoded **ret_encoded, struct quern_error *ret_err)
{
    struct error err = {0};
    struct quern_encoded *encoded = NULL;
    int r = request_encode(&client->limits, request, &encoded, &err);
    if (r == 0)
        r = outgoing_check_generate(client, encoded->bytes.len, &err);
    if (r < 0) {
        quern_encoded_free(encoded);
        return state_say(ret_err, r, &err);
    }
    *ret_encoded = encoded;
    return 0;
}

int quern_encode_resumed(struct quern *client, const struct quern_encoded *from,
                         const struct quern_resume *resume, struct quern_encoded **ret_encoded,
                         struct quern_error *ret_err)
{
    struct error err = {0};
    struct quern_encoded *encoded = NULL;
    int r = request_encode_resumed(&client->limits, from, resume, &encoded, &err);
    if (r == 0)
        r = outgoing_check_generate(client, encoded->bytes.len, &err);
    if (r < 0) {
        quern_encoded_free(encoded);
        return state_say(ret_err, r, &err);
    }
    *ret_encoded = encoded;
    return 0;
}

int quern_generate_encoded(struct quern *client, struct quern_encoded *encoded, const uint64_t *seed,
                           quern_output_fn *fn, void *arg, struct quern_id *ret_id,
                           struct quern_error *ret_err)
{
    struct error err = {0};
    if (client->state == SESSION_BROKEN)
        return state_say(ret_err, client->broken, &client->broken_err);
    int r = sending_check(client, encoded, &err);
    if (r == 0 && encoded->resumes && encoded->used)
        r = error_set(&err, -EINVAL, "output: a request that resumes an output can be sent only once");
    if (r < 0)
        return state_say(ret_err, r, &err);
    struct request *request = state_add_request(client, state_random_id(), fn, arg);
    if (!request)
        return state_say(ret_err, -ENOMEM, NULL);
    client->now = clock_ns();
    encoded->refs++;
    request->encoded = encoded;
    request->embeds = encoded->embeds;
    request->part = encoded->part || encoded->used;
    request->tells_admitted = encoded->tells_admitted;
    request->next = request->first = encoded->n_output;
    request->off = request->first_off = encoded->off;
    request->seed = seed ? *seed : encoded->has_seed ? encoded->seed : state_random_u64();
    r = state_request_waits(client, request);
    if (r == 0)
        r = sending_begin(client, request, &err);
    if (r < 0) {
        state_remove_request(client, request);
        return state_say(ret_err, r, &err);
    }
    encoded->used = true;
    if (ret_id)
        memcpy(ret_id->bytes, request->id.bytes, 16);
    return 0;
}

int quern_generate(struct quern *client, const struct quern_request *from, quern_output_fn *fn, void *arg,
                   struct quern_id *ret_id, struct quern_error *ret_err)
{
    struct quern_encoded *encoded;
    if (client->state == SESSION_BROKEN)
        return state_say(ret_err, client->broken, &client->broken_err);
    int r = quern_encode(client, from, &encoded, ret_err);
    if (r < 0)
        return r;
    r = quern_generate_encoded(client, encoded, NULL, fn, arg, ret_id, ret_err);
    quern_encoded_free(encoded);
    return r;
}

/* Says cancel, to a pool that knows the request; again by the timer until it is acknowledged. */
static void press_cancel(struct quern *client, struct request *request)
{
    bool out = client->parting != request; /* else it follows the last part, or sending.c ends it */
    bool known = (request->state == REQUEST_SENT && out) || request->state == REQUEST_LIVE;
    bool waits = request->cancels > 0 && client->now - request->cancel_ns < SILENCE_NS;
    if (!request->cancel_wanted || !known || waits || client->state != SESSION_OPEN)
        return;
    request->cancel_ns = client->now;
    request->cancels += outgoing_cancel(client, request, NULL) == 0;
}

int quern_cancel(struct quern *client, struct quern_id id, struct quern_error *ret_err)
{
    struct id128 wanted;
    struct error err = {0};
    memcpy(wanted.bytes, id.bytes, 16);
    struct request *request = state_find_request(client, &wanted);
    if (!request) {
        error_set(&err, 0, "unknown request, or it has ended");
        return state_say(ret_err, -ENOENT, &err);
    }
    request->cancel_wanted = true;
    client->now = clock_ns();
    press_cancel(client, request);
    return 0;
}

/* Sends the same bytes under the same id to a pool that has not answered. If the socket is full, the timer
 * tries again. A request that is too large for the pool now ends, and is freed. */
static void send_again(struct quern *client, struct request *request)
{
    struct error err = {0};
    request->sent_ns = request->heard_ns = client->now;
    if (sending_send(client, request, &err) == -EMSGSIZE)
        delivery_fail(client, request, proto_error_name(PROTO_TOO_LONG), bytes_of_string(err.text), 0);
}

static int send_attach(struct quern *client, struct request *request, struct error *err)
{
    request->state = REQUEST_ATTACHING;
    request->replaying = false;
    request->sent_ns = request->heard_ns = client->now;
    return outgoing_attach(client, request, err);
}

int quern_attach(struct quern *client, struct quern_id session, struct quern_id id, quern_output_fn *fn,
                 void *arg, struct quern_error *ret_err)
{
    struct id128 wanted;
    struct error err = {0};
    memcpy(wanted.bytes, id.bytes, 16);
    if (client->state == SESSION_BROKEN)
        return state_say(ret_err, client->broken, &client->broken_err);
    if (state_find_request(client, &wanted)) {
        error_set(&err, 0, "this client already has this request");
        return state_say(ret_err, -EEXIST, &err);
    }
    struct request *request = state_add_request(client, wanted, fn, arg);
    if (!request)
        return state_say(ret_err, -ENOMEM, NULL);
    memcpy(request->session.bytes, session.bytes, 16);
    request->attached = true;
    request->state = REQUEST_ATTACHING;
    client->now = clock_ns();
    int r = client->state == SESSION_OPEN ? send_attach(client, request, &err) : 0;
    if (r < 0) {
        state_remove_request(client, request);
        return state_say(ret_err, r, &err);
    }
    return 0;
}

size_t quern_active(const struct quern *client)
{
    return HASH_COUNT(client->requests);
}

const char *quern_reason_name(enum quern_reason reason)
{
    return end_reason_name((enum end_reason)reason);
}

/* ---- what the broker says ---- */

void requests_fail_all(struct quern *client, const char *error, const char *text)
{
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    {
        delivery_fail(client, request, error, bytes_of_string(text), 0);
    }
}

void requests_opened(struct quern *client, bool again)
{
    struct request *request, *next;
    client->page_ns = 0; /* of another way to it, perhaps */
    HASH_ITER(hh, client->requests, request, next)
    {
        request->cancels = 0; /* their answers went with the session */
        if (request->state == REQUEST_NEW || request->state == REQUEST_SENT)
            state_request_waits(client, request);
        else if (again || request->state == REQUEST_ATTACHING)
            send_attach(client, request, NULL);
    }
    sending_go_on(client);
}

static void request_timer(struct quern *client, struct request *request)
{
    uint64_t now = client->now;
    press_cancel(client, request);
    switch (request->state) {
    case REQUEST_NEW:
        sending_end_unwanted(client, request);
        break;
    case REQUEST_SENT:
        /* Not to a broker that is silent altogether, nor while the last one has not left yet: large prompts
         * would pile up on the way to it. */
        if (client->parting != request && now - request->sent_ns >= SILENCE_NS &&
            client->heard_ns > request->sent_ns && sending_is_through(client, request))
            send_again(client, request);
        break;
    case REQUEST_ATTACHING:
        if (now - request->sent_ns >= SILENCE_NS)
            send_attach(client, request, NULL);
        break;
    case REQUEST_LIVE:
        if (request->replaying) {
            if (now - request->replay_ns >= request->page_wait_ns)
                stream_ask_again(client, request);
        } else if (now - request->heard_ns >= (request->end_told ? END_NS : SILENCE_NS)) {
            stream_ask(client, request);
        }
        break;
    }
}

void requests_timers(struct quern *client)
{
    struct request *request, *next;
    if (client->state != SESSION_OPEN)
        return;
    HASH_ITER(hh, client->requests, request, next)
    {
        request_timer(client, request);
    }
    sending_go_on(client);
}

/* The pool has it. */
static void become_live(struct quern *client, struct request *request)
{
    state_request_settled(client, request);
    request->state = REQUEST_LIVE;
}

void request_accepted(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->accepted.id);
    if (!request)
        return;
    if (request->state == REQUEST_SENT)
        become_live(client, request);
    request->seed = message->accepted.seed;
    if (epoch_compare(message->accepted.epoch, request->epoch) > 0)
        request->epoch = message->accepted.epoch;
    request->heard_ns = client->now;
    press_cancel(client, request);
    delivery_admitted(client, request, &message->accepted.quotas);
}

void request_attached(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->attach_ok.id);
    if (!request || request->state != REQUEST_ATTACHING)
        return;
    request->state = REQUEST_LIVE;
    request->attached = false;
    request->session = (struct id128){{0}};        /* ours now */
    if (request->next < message->attach_ok.from) { /* another client has what is before */
        request->next = request->first = message->attach_ok.from;
        request->off = request->first_off = message->attach_ok.off;
    }
    if (epoch_compare(message->attach_ok.epoch, request->epoch) > 0)
        request->epoch = message->attach_ok.epoch;
    request->heard_ns = client->now;
    press_cancel(client, request);
    stream_ask(client, request);
}

void request_cancelled(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->cancel_ok.id);
    if (request && request->cancels > 0) {
        request->cancels--;
        request->cancel_wanted = false;
    }
}

void request_frame(struct quern *client, const struct frame *frame, const void *data, size_t len)
{
    struct request *request = state_find_request(client, &frame->id);
    if (!request)
        return;
    request->heard_ns = client->now;
    if (request->state == REQUEST_SENT)
        become_live(client, request); /* `accepted` is on its way, on another socket */
    stream_frame(client, request, frame, data, len);
}

void request_progress(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->progress.id);
    if (!request)
        return;
    request->heard_ns = client->now;
    if (request->state == REQUEST_SENT)
        become_live(client, request);
    delivery_progress(client, request, message);
}

void request_page(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->replay_ok.id);
    if (!request)
        return;
    request->heard_ns = client->now;
    stream_page(client, request, message);
}

void request_end_told(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->end.id);
    if (!request)
        return;
    if (request->state == REQUEST_SENT)
        become_live(client, request);
    delivery_set_end(request, &message->end.end);
    request->end_told = true;
    request->end_count = message->end.count;
    request->heard_ns = client->now;
}

/* Sends it to a broker that never heard of it: nothing that came of an earlier one counts, its epoch least of
 * all. Boots are counted in the run directory, and a machine that starts with an empty one counts from one.
 */
static void begin_anew(struct quern *client, struct request *request)
{
    request->epoch = (struct epoch){0};
    request->replaying = false;
    request->fruitless = 0;
    state_drop_held(request);
    if (state_request_waits(client, request) < 0)
        delivery_fail(client, request, "internal", BYTES_LITERAL("out of memory while sending it again"), 0);
    sending_go_on(client);
}

/* The broker does not know the request, though it had accepted it once. */
static void request_forgotten(struct quern *client, struct request *request)
{
    if (request->end_told && request->next == request->end_count) {
        delivery_close(client, request);
    } else if (request->encoded && !state_request_has_begun(request) && !request->end_told) {
        begin_anew(client, request);
    } else {
        char text[128];
        snprintf(text, sizeof text, "the broker no longer knows this request; %s had arrived",
                 amount_of(request->next, "token").text);
        delivery_fail(client, request, "worker_lost", bytes_of_string(text), 0);
    }
}

/* Whether an error is about a cancel. An older broker does not say. */
static bool answers_cancel(const struct request *request, enum message_kind of, bool unknown)
{
    return of == MESSAGE_CANCEL ||
           (of == MESSAGE_NONE && request->state == REQUEST_LIVE && unknown && request->cancels > 0);
}

void request_refused(struct quern *client, const struct message *message)
{
    struct request *request = state_find_request(client, &message->error.id);
    enum proto_error error = message->error.error;
    bool unknown = error == PROTO_UNKNOWN_REQUEST;
    if (!request)
        return;
    if (answers_cancel(request, message->error.of, unknown)) {
        request->cancels -= request->cancels > 0; /* ended while the cancel was under way; its end is too */
        request->cancel_wanted = request->cancel_wanted && request->state != REQUEST_LIVE;
        return;
    }
    if (request->state == REQUEST_LIVE && !(unknown && request->replaying))
        return;
    if (request->state != REQUEST_LIVE && message->error.of == MESSAGE_REPLAY)
        return; /* of before the session was opened again */
    if (unknown && !request->attached && request->state != REQUEST_SENT)
        request_forgotten(client, request);
    else
        delivery_refuse(client, request, message);
}
