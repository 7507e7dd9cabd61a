/* SPDX-License-Identifier: MIT */
/* Clients on the wire.
 *
 * A peer is nobody until its hello, which names its session; every message then renews the session's lease.
 * The kinds that a client may send stand in one table with their handlers. Whatever a handler refuses is
 * answered with an error that names the request, when it has one.
 *
 * Nothing here waits. What a client does not read stays in its outbox, and when that is full, or the client
 * is gone, the session is marked doomed and closed at the end of the turn: its requests are then cancelled or
 * kept, as each of them asked. */

#include "broker/frontend.h"

#include <string.h>

#include "broker/backend.h"
#include "broker/lifecycle.h"
#include "broker/scheduler.h"
#include "broker/status.h"
#include "broker/text.h"
#include "common/log.h"

/* What a request may `require` of this broker: version 1 has no features yet. */
static const struct text_list features = {NULL, 0};

/* ---- sending ---- */

static void send_bytes(struct broker *broker, struct session *session, const void *data, size_t len)
{
    if (session->doomed)
        return;
    int r = outbox_send(&session->outbox, broker->frontend, &session->peer, data, len);
    if (r != 0)
        session_doom(&broker->sessions, session);
    broker->outboxes_waiting |= session->outbox.n > 0;
}

static void send_message(struct broker *broker, struct session *session, const struct message *message)
{
    struct error err = {{0}};
    broker->scratch.len = 0;
    if (message_encode_or_say(message, &broker->scratch, &err) == 0)
        send_bytes(broker, session, broker->scratch.data, broker->scratch.len);
    else
        log_error("a %s cannot be encoded: %s", message_kind_name(message->kind), err.text);
}

void frontend_send_end(struct broker *broker, struct session *session, const struct request *request)
{
    if (request->end_message.len > 0)
        send_bytes(broker, session, request->end_message.data, request->end_message.len);
}

/* To someone who has no session: dropped if it cannot be sent at once. */
static void refuse_peer(struct broker *broker, const struct peer *peer, const struct message *message)
{
    broker->scratch.len = 0;
    if (message_encode(message, &broker->scratch) == 0)
        outbox_try(broker->frontend, peer, broker->scratch.data, broker->scratch.len);
}

static struct message make_error(const struct id128 *id, uint64_t ref, enum proto_error error,
                                 const char *text)
{
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.has_id = id != NULL;
    if (id)
        message.error.id = *id;
    message.error.ref = ref;
    message.error.error = error;
    message.error.text = bytes_of_string(text);
    return message;
}

static void refuse(struct broker *broker, struct session *session, const struct id128 *id,
                   enum proto_error error, const char *text)
{
    struct message message = make_error(id, 0, error, text);
    send_message(broker, session, &message);
}

static struct request *find_request(struct broker *broker, struct session *session, struct id128 id)
{
    struct request_key key = {session->id, id};
    struct request *request = ledger_find(&broker->ledger, &key);
    if (!request)
        refuse(broker, session, &id, PROTO_UNKNOWN_REQUEST, "there is no such request, or it ended long ago");
    return request;
}

/* ---- opening and leaving ---- */

/* What the workers registered, whether or not they are ready this moment: a model whose only worker is being
 * started again is still the pool's. */
static size_t list_models(const struct broker *broker, struct model_info models[WORKER_MAX])
{
    size_t n = 0;
    for (uint32_t i = 0; i < broker->n_workers; i++) {
        const struct worker *worker = &broker->workers[i];
        if (worker->model[0] == 0 || worker->state == WORKER_FAILED)
            continue;
        size_t m = 0;
        while (m < n && memcmp(models[m].digest.data, worker->digest, sizeof worker->digest) != 0)
            m++;
        if (m == n)
            models[n++] = (struct model_info){.name = bytes_of_string(worker->model),
                                              .digest = {worker->digest, sizeof worker->digest},
                                              .context = worker->context,
                                              .chat = worker->chat};
        models[m].workers += worker_is_serving(worker);
    }
    return n;
}

static void send_hello_ok(struct broker *broker, struct session *session)
{
    struct bytes stream[2];
    for (size_t i = 0; i < broker->n_stream_endpoints; i++)
        stream[i] = bytes_of_string(broker->stream_endpoints[i]);
    struct model_info models[WORKER_MAX];
    struct message ok = {.kind = MESSAGE_HELLO_OK};
    ok.hello_ok.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    ok.hello_ok.features = features;
    ok.hello_ok.boot = broker->boot;
    ok.hello_ok.stream = (struct text_list){stream, broker->n_stream_endpoints};
    ok.hello_ok.limits = (struct limits){.request_bytes = PROTO_MAX_REQUEST_BYTES,
                                         .prompt_ids = PROTO_MAX_PROMPT_IDS,
                                         .stops = PROTO_MAX_STOPS,
                                         .stop_bytes = PROTO_MAX_STOP_BYTES,
                                         .stop_ids = PROTO_MAX_STOP_IDS,
                                         .logprobs = PROTO_MAX_LOGPROBS};
    ok.hello_ok.lease_ms = SESSION_LEASE_MS;
    ok.hello_ok.models.items = models;
    ok.hello_ok.models.n = list_models(broker, models);
    send_message(broker, session, &ok);
}

static void hello(struct broker *broker, const struct peer *peer, const struct message *message)
{
    struct message no;
    if (message->hello.proto.min > PROTO_VERSION_MAX || message->hello.proto.max < PROTO_VERSION_MIN) {
        no = make_error(NULL, 0, PROTO_UNSUPPORTED, "hello: no protocol version in common");
        refuse_peer(broker, peer, &no);
        return;
    }
    struct session *session = session_open(&broker->sessions, message->hello.session, peer, broker->now);
    if (!session) {
        no = make_error(NULL, 0, PROTO_OVERLOADED, "too many sessions");
        no.error.retry_after_ms = 1000;
        refuse_peer(broker, peer, &no);
        return;
    }
    lifecycle_adopt(broker, session);
    send_hello_ok(broker, session);
}

static void join(struct broker *broker, struct session *session, const struct message *message,
                 struct bytes raw)
{
    struct message welcome = {.kind = MESSAGE_WELCOME};
    welcome.welcome.nonce = message->join.nonce;
    broker->scratch.len = 0;
    if (message_encode(&welcome, &broker->scratch) == 0)
        stream_publish(&broker->stream, &session->id, sizeof session->id, broker->scratch.data,
                       broker->scratch.len);
}

static void bye(struct broker *broker, struct session *session, const struct message *message,
                struct bytes raw)
{
    send_message(broker, session, &(struct message){.kind = MESSAGE_BYE_OK});
    session_doom(&broker->sessions, session);
}

/* ---- requests ---- */

static bool has_feature(struct bytes name)
{
    for (size_t i = 0; i < features.n; i++)
        if (bytes_equal(features.items[i], name))
            return true;
    return false;
}

/* What no worker needs to be asked for. */
static enum proto_error check_generation(const struct generation *generation, struct error *err)
{
    for (size_t i = 0; i < generation->require.n; i++)
        if (!has_feature(generation->require.items[i]))
            return error_set(err, PROTO_UNSUPPORTED, "generate: require: there is no \"%.*s\" here",
                             (int)generation->require.items[i].len,
                             (const char *)generation->require.items[i].data);
    const struct prompt *prompt = &generation->prompt;
    if ((prompt->form == PROMPT_TEXT && prompt->text.len == 0) ||
        (prompt->form == PROMPT_IDS && prompt->ids.n == 0) ||
        (prompt->form == PROMPT_CHAT && prompt->chat.n == 0))
        return error_set(err, PROTO_BAD_REQUEST, "generate: prompt: is empty");
    return PROTO_OK;
}

static void generate(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw)
{
    const struct id128 *id = &message->generate.id;
    struct request *request;
    struct error err = {{0}};
    uint32_t retry_ms = 0;
    bool again;
    enum proto_error error = check_generation(&message->generate.generation, &err);
    if (error == PROTO_OK)
        error = lifecycle_admit(broker, session, *id, &message->generate.generation, raw, &request, &again,
                                &retry_ms, &err);
    if (error != PROTO_OK) {
        broker->counters.rejected++;
        struct message no = make_error(id, 0, error, text_clean(err.text));
        no.error.retry_after_ms = retry_ms;
        send_message(broker, session, &no);
        return;
    }
    struct message accepted = {.kind = MESSAGE_ACCEPTED};
    accepted.accepted.id = *id;
    accepted.accepted.epoch = request->epoch;
    accepted.accepted.seed = request->seed;
    accepted.accepted.again = again;
    send_message(broker, session, &accepted);
    if (request->state == REQUEST_ENDED)
        frontend_send_end(broker, session, request);
}

static void cancel(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    struct request *request = find_request(broker, session, message->cancel.id);
    if (!request)
        return;
    struct message ok = {.kind = MESSAGE_CANCEL_OK};
    ok.cancel_ok.id = message->cancel.id;
    send_message(broker, session, &ok);
    if (request->state == REQUEST_ENDED)
        frontend_send_end(broker, session, request);
    else
        lifecycle_cancel(broker, request);
}

static void replay(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    struct request *request = find_request(broker, session, message->replay.id);
    /* Pages are the largest messages: none for a client that does not read; it will ask again. */
    if (!request || session->outbox.n > 0)
        return;
    struct journal_page *page = &broker->page;
    if (journal_read(&request->log, message->replay.next, PROTO_MAX_FRAME_BYTES, page) < 0) {
        refuse(broker, session, &message->replay.id, PROTO_INTERNAL, "out of memory");
        return;
    }
    struct message ok = {.kind = MESSAGE_REPLAY_OK};
    ok.replay_ok.id = message->replay.id;
    ok.replay_ok.epoch = request->epoch;
    ok.replay_ok.from = page->from;
    ok.replay_ok.next = page->next;
    ok.replay_ok.done = page->done;
    ok.replay_ok.frames.items = page->items;
    ok.replay_ok.frames.n = page->n;
    send_message(broker, session, &ok);
}

static void attach(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    static const struct id128 own;
    struct request_key key = {message->attach.session, message->attach.id};
    if (memcmp(&key.session, &own, sizeof own) == 0)
        key.session = session->id;
    struct request *request = ledger_find(&broker->ledger, &key);
    if (!request) {
        refuse(broker, session, &key.id, PROTO_UNKNOWN_REQUEST,
               "there is no such request, or it ended long ago");
        return;
    }
    if (lifecycle_attach(broker, request, session) < 0) {
        refuse(broker, session, &key.id, PROTO_CONFLICT,
               "attach: this session has another request of that id");
        return;
    }
    struct message ok = {.kind = MESSAGE_ATTACH_OK};
    ok.attach_ok.id = key.id;
    ok.attach_ok.epoch = request->epoch;
    ok.attach_ok.next = request->log.count;
    send_message(broker, session, &ok);
    if (request->state == REQUEST_ENDED)
        frontend_send_end(broker, session, request);
}

/* ---- questions ---- */

static void status(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    struct worker_status workers[WORKER_MAX];
    struct message ok;
    status_fill(broker, message->status.ref, workers, &ok);
    send_message(broker, session, &ok);
}

static void ping(struct broker *broker, struct session *session, const struct message *message,
                 struct bytes raw)
{
    struct message pong = {.kind = MESSAGE_PONG};
    pong.pong.ref = message->ping.ref;
    send_message(broker, session, &pong);
}

static void tokenize(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw)
{
    struct worker *worker;
    struct message question = *message;
    struct message no = make_error(NULL, message->tokenize.ref, PROTO_OK, "");
    int r = scheduler_pick_any(broker->workers, broker->n_workers, message->tokenize.model, &worker);
    if (r != 0) {
        no.error.error = PROTO_NO_WORKER;
        no.error.text = BYTES_LITERAL("no worker is ready");
    } else if (!tokenize_add(&broker->tokenize, session->id, message->tokenize.ref, worker->index,
                             broker->now, &question.tokenize.ref)) {
        no.error.error = PROTO_OVERLOADED;
        no.error.text = BYTES_LITERAL("too many tokenize questions wait");
        no.error.retry_after_ms = 100;
    } else if (!backend_send(broker, worker, &question)) {
        struct tokenize_entry entry;
        tokenize_take(&broker->tokenize, question.tokenize.ref, worker->index, &entry);
        no.error.error = PROTO_WORKER_LOST;
        no.error.text = BYTES_LITERAL("the worker cannot be reached");
    }
    if (no.error.error != PROTO_OK)
        send_message(broker, session, &no);
}

void frontend_tokenized(struct broker *broker, struct worker *worker, const struct message *message)
{
    struct tokenize_entry entry;
    if (!tokenize_take(&broker->tokenize, message->tokenize_ok.ref, worker->index, &entry))
        return;
    struct session *session = session_find(&broker->sessions, &entry.session);
    struct message answer = *message;
    answer.tokenize_ok.ref = entry.client_ref;
    if (session)
        send_message(broker, session, &answer);
}

void frontend_tokenize_failed(struct broker *broker, const struct tokenize_entry *entry,
                              enum proto_error error, const char *text)
{
    struct session *session = session_find(&broker->sessions, &entry->session);
    struct message no = make_error(NULL, entry->client_ref, error, text);
    if (session)
        send_message(broker, session, &no);
}

/* ---- the loop's side ---- */

typedef void handler(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw);

static handler *const handlers[MESSAGE_KIND_COUNT] = {
    [MESSAGE_JOIN] = join,     [MESSAGE_GENERATE] = generate, [MESSAGE_CANCEL] = cancel,
    [MESSAGE_REPLAY] = replay, [MESSAGE_ATTACH] = attach,     [MESSAGE_STATUS] = status,
    [MESSAGE_PING] = ping,     [MESSAGE_TOKENIZE] = tokenize, [MESSAGE_BYE] = bye,
};

static void take(struct broker *broker, const struct peer *peer, struct bytes raw)
{
    struct message message, no;
    struct error err = {{0}};
    struct session *session = session_of_peer(&broker->sessions, peer);
    if (session && session->doomed)
        session = NULL;
    if (session)
        session_renew(session, broker->now);
    int r = message_decode(broker->decoder, raw.data, raw.len, &message, &err);
    if (r != 0) {
        struct id128 id;
        bool has_id = message_decoder_failed_id(broker->decoder, &id);
        no = make_error(has_id ? &id : NULL, 0, r < 0 ? PROTO_INTERNAL : PROTO_BAD_REQUEST,
                        text_clean(err.text));
        if (session)
            send_message(broker, session, &no);
        else
            refuse_peer(broker, peer, &no);
    } else if (message.kind == MESSAGE_HELLO) {
        hello(broker, peer, &message);
    } else if (!session) {
        no = make_error(NULL, 0, PROTO_HELLO_REQUIRED, "say hello first");
        refuse_peer(broker, peer, &no);
    } else if (!handlers[message.kind]) {
        no = make_error(NULL, 0, PROTO_BAD_REQUEST, "this kind is not for a client to send");
        send_message(broker, session, &no);
    } else {
        handlers[message.kind](broker, session, &message, raw);
    }
}

bool frontend_drain(struct broker *broker)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    size_t bytes = 0;
    bool more = true;
    for (int i = 0; i < BROKER_BATCH && bytes < BROKER_BATCH_BYTES; i++) {
        struct peer peer;
        more = router_receive(broker->frontend, &peer, &part);
        if (!more)
            break;
        bytes += zmq_msg_size(&part);
        take(broker, &peer, (struct bytes){zmq_msg_data(&part), zmq_msg_size(&part)});
    }
    zmq_msg_close(&part);
    return more;
}

bool frontend_drain_stream(struct broker *broker)
{
    bool left;
    struct id128 id;
    int i;
    for (i = 0; i < BROKER_BATCH && stream_take(&broker->stream, &left, &id); i++) {
        struct session *session = left ? session_find(&broker->sessions, &id) : NULL;
        if (session)
            session_doom(&broker->sessions, session);
    }
    return i == BROKER_BATCH;
}

void frontend_flush(struct broker *broker)
{
    for (struct session *session = broker->sessions.by_id; session; session = session->by_id.next) {
        if (session->outbox.n == 0 || session->doomed)
            continue;
        if (outbox_flush(&session->outbox, broker->frontend, &session->peer) != 0)
            session_doom(&broker->sessions, session);
        broker->outboxes_waiting |= session->outbox.n > 0;
    }
}

void frontend_forgive(struct broker *broker)
{
    for (struct session *session = broker->sessions.by_id; session; session = session->by_id.next)
        session_renew(session, broker->now);
}

void frontend_tick(struct broker *broker)
{
    struct session *session, *next;
    broker->sessions.any_doomed = false;
    HASH_ITER(by_id, broker->sessions.by_id, session, next)
    {
        if (!session->doomed && session->lease_until > broker->now)
            continue;
        lifecycle_abandon(broker, session);
        session_close(&broker->sessions, session);
    }
    stream_make_room(&broker->stream, &broker->sessions);
}
