/* SPDX-License-Identifier: MIT */
/* Requests: sending them, and what the broker says of them.
 *
 *   NEW ──open──▶ SENT ──accepted, or a frame──▶ LIVE ──last frame──▶ gone
 *                  └──────────error─────────────────────────────────▶ gone
 *   LIVE ──session opened again──▶ ATTACHING ──attach_ok──▶ LIVE
 *                                      └──unknown, nothing received──▶ SENT
 *
 * The encoded generate is kept as long as the request lives, so that it can be sent again byte for byte: the
 * pool takes the same bytes under the same id for the same request. That is also why the seed is chosen here
 * and not left to the broker: sent again to another broker, it makes the same output. */

#include "client/lib/client.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct request *request_find(struct quern *client, const struct id128 *id)
{
    struct request *request;
    HASH_FIND(hh, client->requests, id, sizeof *id, request);
    return request && !request->over ? request : NULL;
}

void request_free(struct quern *client, struct request *request)
{
    HASH_DEL(client->requests, request);
    stream_drop_held(request);
    buffer_deinit(&request->wire);
    free(request);
}

static struct request *request_new(struct quern *client, struct id128 id, quern_output_fn *fn, void *arg)
{
    struct request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->id = id;
    request->fn = fn;
    request->arg = arg;
    request->sent_ns = request->heard_ns = clock_ns();
    HASH_ADD(hh, client->requests, id, sizeof request->id, request);
    return request;
}

void quern_request_init(struct quern_request *request)
{
    struct generation defaults;
    generation_defaults(&defaults);
    *request = (struct quern_request){
        .max_tokens = defaults.max_tokens,
        .temperature = defaults.temperature,
        .top_k = defaults.top_k,
        .top_p = defaults.top_p,
        .min_p = defaults.min_p,
        .repetition_penalty = defaults.repetition_penalty,
    };
}

static struct bytes optional_text(const char *text)
{
    return text ? bytes_of_string(text) : (struct bytes){"", 0};
}

/* Lists whose items have another type on the wire; freed by the caller. */
struct converted {
    struct chat_message *messages;
    struct bytes *stop;
};

static int convert_prompt(const struct quern_request *from, struct prompt *to, struct converted *converted,
                          struct error *err)
{
    int forms = (from->text != NULL) + (from->ids != NULL) + (from->messages != NULL);
    if (forms != 1)
        return error_set(err, -EINVAL, "a request has one prompt: text, ids or messages; this one has %d",
                         forms);
    to->special = from->special;
    if (from->text) {
        to->form = PROMPT_TEXT;
        to->text = (struct bytes){from->text, from->text_len ? from->text_len : strlen(from->text)};
    } else if (from->ids) {
        to->form = PROMPT_IDS;
        to->ids = (struct id_list){from->ids, from->n_ids};
    } else {
        converted->messages = calloc(from->n_messages + 1, sizeof *converted->messages);
        if (!converted->messages)
            return error_set(err, -ENOMEM, "out of memory");
        for (size_t i = 0; i < from->n_messages; i++)
            converted->messages[i] = (struct chat_message){optional_text(from->messages[i].role),
                                                           optional_text(from->messages[i].content)};
        to->form = PROMPT_CHAT;
        to->chat.items = converted->messages;
        to->chat.n = from->n_messages;
    }
    return 0;
}

static int convert(const struct quern_request *from, struct generation *to, struct converted *converted,
                   struct error *err)
{
    int r = convert_prompt(from, &to->prompt, converted, err);
    if (r < 0)
        return r;
    converted->stop = calloc(from->n_stop + 1, sizeof *converted->stop);
    if (!converted->stop)
        return error_set(err, -ENOMEM, "out of memory");
    for (size_t i = 0; i < from->n_stop; i++)
        converted->stop[i] = optional_text(from->stop[i]);
    to->stop = (struct text_list){converted->stop, from->n_stop};
    to->stop_ids = (struct id_list){from->stop_ids, from->n_stop_ids};
    to->model = optional_text(from->model);
    to->max_tokens = from->max_tokens;
    to->temperature = from->temperature;
    to->top_k = from->top_k;
    to->top_p = from->top_p;
    to->min_p = from->min_p;
    to->repetition_penalty = from->repetition_penalty;
    to->has_seed = true;
    to->seed = from->has_seed ? from->seed : random_u64();
    to->logprobs = from->logprobs;
    to->priority = from->priority;
    to->deadline_ms = from->deadline_ms;
    to->on_disconnect = from->keep_s > 0 ? DISCONNECT_KEEP : DISCONNECT_CANCEL;
    to->keep_s = from->keep_s;
    to->cache_salt = optional_text(from->cache_salt);
    return 0;
}

/* Encodes the generate into request->wire. */
static int encode_request(struct request *request, const struct quern_request *from, struct error *err)
{
    struct message message = {.kind = MESSAGE_GENERATE};
    struct converted converted = {0};
    message.generate.id = request->id;
    int r = convert(from, &message.generate.generation, &converted, err);
    if (r == 0)
        r = message_encode_or_say(&message, &request->wire, err);
    request->seed = message.generate.generation.seed;
    free(converted.messages);
    free(converted.stop);
    return r;
}

static int send_generate(struct quern *client, struct request *request, struct error *err)
{
    int r = session_send_bytes(client, &request->wire, err);
    request->sent_ns = request->heard_ns = client->now;
    if (r == 0)
        request->state = REQUEST_SENT;
    return r;
}

int quern_generate(struct quern *client, const struct quern_request *from, quern_output_fn *fn, void *arg,
                   struct quern_id *ret_id, struct quern_error *ret_err)
{
    struct error err = {0};
    if (client->state == SESSION_BROKEN)
        return client_say(ret_err, client->broken, &client->broken_err);
    struct request *request = request_new(client, random_id(), fn, arg);
    if (!request)
        return client_say(ret_err, -ENOMEM, NULL);
    client->now = clock_ns();
    int r = encode_request(request, from, &err);
    if (r == 0)
        r = session_check_size(client, request->wire.len, &err);
    /* Otherwise it is sent when the session is open again. */
    if (r == 0 && client->state == SESSION_OPEN)
        r = send_generate(client, request, &err);
    if (r < 0) {
        request_free(client, request);
        return client_say(ret_err, r, &err);
    }
    if (ret_id)
        memcpy(ret_id->bytes, request->id.bytes, 16);
    return 0;
}

static int send_cancel(struct quern *client, struct request *request, struct error *err)
{
    struct message message = {.kind = MESSAGE_CANCEL};
    message.cancel.id = request->id;
    int r = session_send(client, &message, err);
    request->cancels += r == 0;
    return r;
}

/* Once the pool knows the request again. */
static void repeat_cancel(struct quern *client, struct request *request)
{
    if (request->cancel_lost && send_cancel(client, request, NULL) == 0)
        request->cancel_lost = false;
}

int quern_cancel(struct quern *client, struct quern_id id, struct quern_error *ret_err)
{
    struct id128 wanted;
    struct error err = {0};
    memcpy(wanted.bytes, id.bytes, 16);
    struct request *request = request_find(client, &wanted);
    if (!request) {
        error_set(&err, 0, "there is no such request, or it has ended");
        return client_say(ret_err, -ENOENT, &err);
    }
    if (client->state != SESSION_OPEN) {
        request->cancel_lost = true;
        return 0;
    }
    int r = send_cancel(client, request, &err);
    return r < 0 ? client_say(ret_err, r, &err) : 0;
}

static int send_attach(struct quern *client, struct request *request, struct error *err)
{
    struct message message = {.kind = MESSAGE_ATTACH};
    message.attach.session = request->session; /* zero: our own */
    message.attach.id = request->id;
    message.attach.next = request->next;
    request->state = REQUEST_ATTACHING;
    request->replaying = false;
    request->sent_ns = request->heard_ns = client->now;
    return session_send(client, &message, err);
}

int quern_attach(struct quern *client, struct quern_id session, struct quern_id id, quern_output_fn *fn,
                 void *arg, struct quern_error *ret_err)
{
    struct id128 wanted;
    struct error err = {0};
    memcpy(wanted.bytes, id.bytes, 16);
    if (client->state == SESSION_BROKEN)
        return client_say(ret_err, client->broken, &client->broken_err);
    if (request_find(client, &wanted)) {
        error_set(&err, 0, "this request is here already");
        return client_say(ret_err, -EEXIST, &err);
    }
    struct request *request = request_new(client, wanted, fn, arg);
    if (!request)
        return client_say(ret_err, -ENOMEM, NULL);
    memcpy(request->session.bytes, session.bytes, 16);
    request->attached = true;
    request->state = REQUEST_ATTACHING;
    client->now = clock_ns();
    int r = client->state == SESSION_OPEN ? send_attach(client, request, &err) : 0;
    if (r < 0) {
        request_free(client, request);
        return client_say(ret_err, r, &err);
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

void request_end_locally(struct quern *client, struct request *request, const char *error, const char *text)
{
    snprintf(request->end_text, sizeof request->end_text, "%s", text);
    request->end = (struct quern_end){.reason = QUERN_ERROR,
                                      .error = error,
                                      .text = request->end_text,
                                      .seed = request->seed,
                                      .output_tokens = (uint32_t)request->next};
    stream_finish(client, request);
}

void requests_end_all(struct quern *client, const char *error, const char *text)
{
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    {
        request_end_locally(client, request, error, text);
    }
}

void requests_opened(struct quern *client, bool again)
{
    struct request *request, *next;
    HASH_ITER(hh, client->requests, request, next)
    {
        request->cancel_lost |= request->cancels > 0;
        request->cancels = 0;
        /* A full socket is no harm: the timer sends again. */
        if (request->state == REQUEST_NEW || request->state == REQUEST_SENT)
            send_generate(client, request, NULL);
        else if (again || request->state == REQUEST_ATTACHING)
            send_attach(client, request, NULL);
    }
}

static void request_timer(struct quern *client, struct request *request)
{
    uint64_t now = client->now;
    switch (request->state) {
    case REQUEST_NEW:
        if (now - request->sent_ns >= SILENCE_NS)
            send_generate(client, request, NULL);
        break;
    case REQUEST_SENT:
        /* Not to a broker that is silent altogether: large prompts would pile up on the way to it. */
        if (now - request->sent_ns >= SILENCE_NS && client->heard_ns > request->sent_ns)
            send_generate(client, request, NULL);
        break;
    case REQUEST_ATTACHING:
        if (now - request->sent_ns >= SILENCE_NS)
            send_attach(client, request, NULL);
        break;
    case REQUEST_LIVE:
        if (request->replaying ? now - request->replay_ns >= PAGE_NS
                               : now - request->heard_ns >= (request->end_told ? END_NS : SILENCE_NS))
            stream_ask(client, request);
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
}

void request_accepted(struct quern *client, const struct message *message)
{
    struct request *request = request_find(client, &message->accepted.id);
    if (!request)
        return;
    if (request->state == REQUEST_SENT)
        request->state = REQUEST_LIVE;
    request->seed = message->accepted.seed;
    if (epoch_compare(message->accepted.epoch, request->epoch) > 0)
        request->epoch = message->accepted.epoch;
    request->heard_ns = client->now;
    repeat_cancel(client, request);
}

void request_attached(struct quern *client, const struct message *message)
{
    struct request *request = request_find(client, &message->attach_ok.id);
    if (!request || request->state != REQUEST_ATTACHING)
        return;
    request->state = REQUEST_LIVE;
    request->attached = false;
    request->session = (struct id128){{0}}; /* ours now */
    if (epoch_compare(message->attach_ok.epoch, request->epoch) > 0)
        request->epoch = message->attach_ok.epoch;
    request->heard_ns = client->now;
    repeat_cancel(client, request);
    stream_ask(client, request);
}

void request_end_told(struct quern *client, const struct message *message)
{
    struct request *request = request_find(client, &message->end.id);
    if (!request)
        return;
    if (request->state == REQUEST_SENT)
        request->state = REQUEST_LIVE;
    request_set_end(request, &message->end.end);
    request->end_told = true;
    request->end_count = message->end.count;
    request->heard_ns = client->now;
}

/* The broker does not know the request, though it had accepted it once. */
static void request_forgotten(struct quern *client, struct request *request)
{
    if (request->end_told && request->next == request->end_count) {
        stream_finish(client, request);
    } else if (request->wire.len > 0 && request->next == 0 && request->off == 0 && !request->end_told) {
        send_generate(client, request, NULL);
    } else {
        char text[128];
        snprintf(text, sizeof text, "the broker no longer knows this request; %" PRIu64 " tokens had come",
                 request->next);
        request_end_locally(client, request, "worker_lost", text);
    }
}

void request_refused(struct quern *client, struct request *request, const struct message *message)
{
    enum proto_error error = message->error.error;
    bool unknown = error == PROTO_UNKNOWN_REQUEST;
    if (request->state == REQUEST_LIVE && unknown && request->cancels > 0) {
        request->cancels--; /* ended while the cancel was under way; its end is too */
        return;
    }
    if (request->state == REQUEST_LIVE && !(unknown && request->replaying))
        return;
    if (unknown && !request->attached && request->state != REQUEST_SENT) {
        request_forgotten(client, request);
        return;
    }
    snprintf(request->end_text, sizeof request->end_text, "%.*s", (int)message->error.text.len,
             (const char *)message->error.text.data);
    request->end = (struct quern_end){.reason = QUERN_ERROR,
                                      .error = proto_error_name(error),
                                      .text = request->end_text,
                                      .retry_after_ms = message->error.retry_after_ms,
                                      .seed = request->seed};
    stream_finish(client, request);
}
