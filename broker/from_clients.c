/* SPDX-License-Identifier: MIT */
/* What clients ask.
 *
 * A peer is nobody until its hello, which names its session; every message then renews the session's lease.
 * The kinds that a client may send stand in one table with their handlers. Whatever a handler refuses is
 * answered with an error that names the request, when it has one. */

#include "broker/from_clients.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <string.h>

#include "broker/wire/intake.h"
#include "broker/core/assembly.h"
#include "broker/core/instruments.h"
#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_admit.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/publish.h"
#include "broker/core/replay.h"
#include "broker/core/status.h"
#include "broker/core/tokenize.h"

/* What a request may `require` of this broker, and a client say of itself: that it tells, in its pings, which
 * answers it has taken. */
#define TELLS_TAKEN "taken"
static const struct bytes names_of_features[] = {{TELLS_TAKEN, sizeof TELLS_TAKEN - 1},
                                                 {PROTO_FEATURE_EMBED, sizeof PROTO_FEATURE_EMBED - 1},
                                                 {PROTO_FEATURE_RANK, sizeof PROTO_FEATURE_RANK - 1},
                                                 {PROTO_FEATURE_CONTINUE, sizeof PROTO_FEATURE_CONTINUE - 1},
                                                 {PROTO_FEATURE_INFILL, sizeof PROTO_FEATURE_INFILL - 1},
                                                 {PROTO_FEATURE_SAMPLERS, sizeof PROTO_FEATURE_SAMPLERS - 1},
                                                 {PROTO_FEATURE_ENDLESS, sizeof PROTO_FEATURE_ENDLESS - 1},
                                                 {PROTO_FEATURE_LEAST, sizeof PROTO_FEATURE_LEAST - 1},
                                                 {PROTO_FEATURE_THINKING, sizeof PROTO_FEATURE_THINKING - 1},
                                                 {PROTO_FEATURE_RESUME, sizeof PROTO_FEATURE_RESUME - 1},
                                                 {PROTO_FEATURE_TENANTS, sizeof PROTO_FEATURE_TENANTS - 1}};
static const struct text_list features = {names_of_features,
                                          sizeof names_of_features / sizeof *names_of_features};

static bool has_name(const struct text_list *names, struct bytes name)
{
    for (size_t i = 0; i < names->n; i++)
        if (bytes_equal(names->items[i], name))
            return true;
    return false;
}

/* Where a message comes from. */
struct origin {
    struct peer peer;
    uint32_t key;    /* of the client's certificate; 0: it needs none */
    zmq_msg_t *part; /* which libzmq says more of */
};

/* ---- answers ---- */

static void answer(struct broker *broker, struct session *session, const struct message *message)
{
    client_link_send(&broker->client_link, session, message);
}

/* `of`: the kind of message that is refused; MESSAGE_NONE: it has none. */
static struct message make_error(enum message_kind of, const struct id128 *id, enum proto_error error,
                                 const char *text)
{
    struct message message = {.kind = MESSAGE_ERROR};
    message.error.of = of;
    message.error.has_id = id != NULL;
    if (id)
        message.error.id = *id;
    message.error.error = error;
    message.error.text = bytes_of_string(text);
    return message;
}

static void refuse(struct broker *broker, struct session *session, enum message_kind of,
                   const struct id128 *id, enum proto_error error, const char *text)
{
    struct message message = make_error(of, id, error, text);
    answer(broker, session, &message);
}

static struct request *find_request(struct broker *broker, struct session *session, enum message_kind asked,
                                    struct id128 id)
{
    struct request_key key = {session->id, id};
    struct request *request = ledger_find(&broker->ledger, &key);
    if (!request)
        refuse(broker, session, asked, &id, PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
    return request;
}

/* ---- opening and leaving ---- */

/* Whether it came by a socket of this machine's files: libzmq then says of its peer whose process it is, else
 * its address, as a number. */
static bool is_near(const struct origin *from)
{
    char address[INET6_ADDRSTRLEN + IF_NAMESIZE] = "";
    struct in6_addr number;
    const char *said = zmq_msg_gets(from->part, "Peer-Address");
    if (said && strlen(said) < sizeof address)
        strcpy(address, said);
    address[strcspn(address, "%")] = 0; /* the interface of a local one */
    return inet_pton(AF_INET, address, &number) != 1 && inet_pton(AF_INET6, address, &number) != 1;
}

/* Of its streams a client on the network is told those that it could reach: where others lie is no business
 * of its. */
static void send_hello_ok(struct broker *broker, struct session *session)
{
    struct bytes stream[2];
    size_t n_streams = 0;
    for (size_t i = 0; i < broker->endpoints.n_streams; i++)
        if (session->near || strncmp(broker->endpoints.streams[i], "ipc://", 6) != 0)
            stream[n_streams++] = bytes_of_string(broker->endpoints.streams[i]);
    struct model_info models[WORKER_MAX];
    struct message ok = {.kind = MESSAGE_HELLO_OK};
    ok.hello_ok.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    ok.hello_ok.features = features;
    ok.hello_ok.boot = broker->supervisor.boot;
    ok.hello_ok.stream = (struct text_list){stream, n_streams};
    ok.hello_ok.limits = proto_limits(broker_largest_context(broker));
    ok.hello_ok.limits.max_tokens = broker->options.max_tokens;
    ok.hello_ok.lease_ms = SESSION_LEASE_MS;
    ok.hello_ok.models.items = models;
    ok.hello_ok.models.n = status_models(broker, models);
    answer(broker, session, &ok);
}

static void hello(struct broker *broker, const struct origin *from, const struct message *message)
{
    const struct peer *peer = &from->peer;
    const uint32_t key = from->key;
    struct message no;
    if (message->hello.proto.min > PROTO_VERSION_MAX || message->hello.proto.max < PROTO_VERSION_MIN) {
        no = make_error(MESSAGE_HELLO, NULL, PROTO_UNSUPPORTED, "hello: no protocol version in common");
        client_link_send_stranger(&broker->client_link, peer, &no);
        return;
    }
    struct error err;
    struct client_key *client = client_keys_of(&broker->client_keys, key);
    struct session *known = session_find(&broker->sessions, &message->hello.session);
    bool counted = known && known->key == key;
    if (!counted && allowance_check_session(&broker->allowance, client, &err) != PROTO_OK) {
        no = make_error(MESSAGE_HELLO, NULL, PROTO_OVERLOADED, err.text);
        no.error.retry_after_ms = 1000;
        client_link_send_stranger(&broker->client_link, peer, &no);
        return;
    }
    struct session *session = session_open(&broker->sessions, message->hello.session, peer, broker->now);
    if (!session) {
        session_say_why_none(&broker->sessions, &message->hello.session, &err);
        no = make_error(MESSAGE_HELLO, NULL, PROTO_OVERLOADED, err.text);
        no.error.retry_after_ms = 1000;
        client_link_send_stranger(&broker->client_link, peer, &no);
        return;
    }
    if (!counted)
        lifecycle_enter_key(broker, session, key);
    session->near = is_near(from);
    session->tells = has_name(&message->hello.features, bytes_of_string(TELLS_TAKEN));
    lifecycle_adopt(broker, session);
    send_hello_ok(broker, session);
}

static void join(struct broker *broker, struct session *session, const struct message *message,
                 struct bytes raw)
{
    struct error err;
    if (!stream_may_be_heard(&broker->stream, session, &err)) {
        struct message no = make_error(MESSAGE_JOIN, NULL, PROTO_OVERLOADED, err.text);
        no.error.retry_after_ms = 1000;
        answer(broker, session, &no);
        return;
    }
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
    answer(broker, session, &(struct message){.kind = MESSAGE_BYE_OK});
    ledger_taken_by(&broker->ledger, &broker->journal, &session->id);
    session_doom(&broker->sessions, session);
}

/* ---- requests ---- */

/* Whether all that the request requires is here. */
static enum proto_error check_required(const struct generation *generation, struct error *err)
{
    for (size_t i = 0; i < generation->require.n; i++)
        if (!has_name(&features, generation->require.items[i]))
            return error_set(err, PROTO_UNSUPPORTED, "generate: require: \"%.*s\" is not supported",
                             (int)generation->require.items[i].len,
                             (const char *)generation->require.items[i].data);
    return PROTO_OK;
}

static void refuse_generate(struct broker *broker, struct session *session, const struct id128 *id,
                            const struct verdict *verdict)
{
    broker->counters.rejected++;
    struct message no = make_error(MESSAGE_GENERATE, id, verdict->error, verdict->reason.text);
    no.error.retry_after_ms = verdict->retry_ms;
    no.error.quotas = verdict->quotas;
    answer(broker, session, &no);
}

static void accept_generate(struct broker *broker, struct session *session, const struct id128 *id,
                            const struct verdict *verdict)
{
    const struct request *request = verdict->request;
    struct message accepted = {.kind = MESSAGE_ACCEPTED};
    accepted.accepted.id = *id;
    accepted.accepted.epoch = request->epoch;
    accepted.accepted.seed = request->seed;
    accepted.accepted.again = verdict->again;
    accepted.accepted.quotas = verdict->quotas;
    answer(broker, session, &accepted);
    client_link_send_end(&broker->client_link, session, request);
}

static void admit(struct broker *broker, const struct arrival *arrival)
{
    struct verdict verdict = {0};
    verdict.error = check_required(arrival->generation, &verdict.reason);
    if (verdict.error == PROTO_OK)
        lifecycle_admit(broker, arrival, &verdict);
    if (verdict.error == PROTO_OK)
        accept_generate(broker, arrival->session, &arrival->id, &verdict);
    else
        refuse_generate(broker, arrival->session, &arrival->id, &verdict);
}

static void generate(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw)
{
    const struct arrival arrival = {session, message->generate.id, &message->generate.generation, raw, NULL};
    admit(broker, &arrival);
}

/* All parts have come: what they are together is a message like any other. */
static void generate_whole(struct broker *broker, struct session *session, struct id128 id,
                           struct bytes bytes)
{
    struct message message;
    struct verdict no = {.error = PROTO_BAD_REQUEST};
    int r = message_decode(broker->decoder, bytes.data, bytes.len, &message, &no.reason);
    if (r < 0)
        no.error = error_set(&no.reason, PROTO_INTERNAL, "not enough memory in the broker to read it");
    else if (r == 0 &&
             (message.kind != MESSAGE_GENERATE || memcmp(&message.generate.id, &id, sizeof id) != 0))
        r = error_set(&no.reason, PROTO_BAD_REQUEST,
                      "generate_part: the parts are not a generate of this id");
    struct arrival arrival = {.session = session, .id = id, .body = bytes};
    if (r == 0) {
        arrival.generation = &message.generate.generation;
        const struct tenancy tenancy = broker_tenancy(broker, session, arrival.generation->tenant);
        if (!assembly_is_of(session, &tenancy))
            r = error_set(&no.reason, PROTO_BAD_REQUEST, "generate_part: tenant: not that of the generate");
    }
    arrival.room = assembly_release(broker, session);
    if (r == 0)
        admit(broker, &arrival);
    else
        refuse_generate(broker, session, &id, &no);
    assembly_drop(broker, session);
}

static void generate_part(struct broker *broker, struct session *session, const struct message *message,
                          struct bytes raw)
{
    const struct id128 id = message->generate_part.id;
    struct assembly_verdict taken;
    struct verdict verdict = {0};
    assembly_take(broker, session, message, &taken);
    switch (taken.what) {
    case ASSEMBLY_MORE:
        return;
    case ASSEMBLY_WHOLE:
        generate_whole(broker, session, id, taken.bytes);
        return;
    case ASSEMBLY_AGAIN:
        verdict.request = taken.request;
        verdict.again = true;
        if (taken.request->rate)
            verdict.quotas = rate_quotas(taken.request->rate, broker->now);
        accept_generate(broker, session, &id, &verdict);
        return;
    case ASSEMBLY_REFUSES:
        verdict = (struct verdict){.error = taken.error, .retry_ms = taken.retry_ms, .reason = taken.reason};
        refuse_generate(broker, session, &id, &verdict);
        return;
    }
}

static void cancel(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    assembly_cancel(broker, session, &message->cancel.id);
    struct request *request = find_request(broker, session, MESSAGE_CANCEL, message->cancel.id);
    if (!request)
        return;
    if (memcmp(&request->current.session, &session->id, sizeof session->id) != 0) {
        refuse(broker, session, MESSAGE_CANCEL, &message->cancel.id, PROTO_UNKNOWN_REQUEST,
               "another session has taken over this request");
        return;
    }
    struct message ok = {.kind = MESSAGE_CANCEL_OK};
    ok.cancel_ok.id = message->cancel.id;
    answer(broker, session, &ok);
    if (request->state == REQUEST_ENDED)
        client_link_send_end(&broker->client_link, session, request);
    else
        lifecycle_cancel(broker, request);
}

static void replay(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    replay_ask(broker, session, message->replay.id, message->replay.next);
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
        refuse(broker, session, MESSAGE_ATTACH, &key.id, PROTO_UNKNOWN_REQUEST,
               "unknown request, or it ended long ago");
        return;
    }
    if (lifecycle_attach(broker, request, session) < 0) {
        refuse(broker, session, MESSAGE_ATTACH, &key.id, PROTO_CONFLICT,
               "attach: this session has another request with that id");
        return;
    }
    struct message ok = {.kind = MESSAGE_ATTACH_OK};
    ok.attach_ok.id = key.id;
    ok.attach_ok.epoch = request->epoch;
    ok.attach_ok.next = request->log.count;
    ok.attach_ok.from = request->log.given;
    ok.attach_ok.off = request->log.given_text;
    answer(broker, session, &ok);
    client_link_send_end(&broker->client_link, session, request);
}

/* ---- questions ---- */

static void status(struct broker *broker, struct session *session, const struct message *message,
                   struct bytes raw)
{
    struct worker_status workers[WORKER_MAX];
    struct message ok;
    struct status_requests requests = {0};
    status_fill(broker, message->status.ref, workers, &ok);
    if (status_requests(broker, session, message->status.requests, message->status.request_id, &requests) <
        0) {
        struct message no = make_error(MESSAGE_STATUS, NULL, PROTO_INTERNAL, "out of memory");
        no.error.ref = message->status.ref;
        answer(broker, session, &no);
        return;
    }
    ok.status_ok.requests.items = requests.items;
    ok.status_ok.requests.n = requests.n;
    answer(broker, session, &ok);
    status_requests_free(&requests);
}

static void ping(struct broker *broker, struct session *session, const struct message *message,
                 struct bytes raw)
{
    struct message pong = {.kind = MESSAGE_PONG};
    pong.pong.ref = message->ping.ref;
    for (size_t i = 0; i < message->ping.taken.n; i++) {
        struct id128 id;
        if (message->ping.taken.items[i].len != sizeof id)
            continue;
        memcpy(&id, message->ping.taken.items[i].data, sizeof id);
        lifecycle_taken(broker, session, id);
    }
    if (message->ping.load)
        publish_load(broker, session, &pong);
    answer(broker, session, &pong);
}

static void prefixes(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw)
{
    publish_prefixes(broker, session, message);
}

static void tenants(struct broker *broker, struct session *session, const struct message *message,
                    struct bytes raw)
{
    publish_tenants(broker, session, message);
}

static void tokenize(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw)
{
    tokenize_ask(broker, session, message, raw);
}

static void instruments(struct broker *broker, struct session *session, const struct message *message,
                        struct bytes raw)
{
    instruments_ask(broker, session, message);
}

/* ---- receiving ---- */

typedef void handler(struct broker *broker, struct session *session, const struct message *message,
                     struct bytes raw);

static handler *const handlers[MESSAGE_KIND_COUNT] = {
    [MESSAGE_JOIN] = join,
    [MESSAGE_GENERATE] = generate,
    [MESSAGE_CANCEL] = cancel,
    [MESSAGE_REPLAY] = replay,
    [MESSAGE_ATTACH] = attach,
    [MESSAGE_STATUS] = status,
    [MESSAGE_PING] = ping,
    [MESSAGE_TOKENIZE] = tokenize,
    [MESSAGE_DETOKENIZE] = tokenize,
    [MESSAGE_PREFIXES] = prefixes,
    [MESSAGE_TENANTS] = tenants,
    [MESSAGE_TRACE] = instruments,
    [MESSAGE_PROFILE] = instruments,
    [MESSAGE_TRIM] = instruments,
    [MESSAGE_BYE] = bye,
    [MESSAGE_GENERATE_PART] = generate_part,
};

static void take(struct broker *broker, const struct origin *from, struct bytes raw)
{
    const struct peer *peer = &from->peer;
    struct message message, no;
    struct error err = {{0}};
    struct session *session = session_of_peer(&broker->sessions, peer);
    if (session && session->doomed)
        session = NULL;
    if (session) {
        session_renew(session, broker->now);
        intake_used(zmq_msg_get(from->part, ZMQ_SRCFD), broker->now);
    }
    int r = message_decode(broker->decoder, raw.data, raw.len, &message, &err);
    if (r != 0) {
        struct id128 id;
        bool has_id = message_decoder_failed_id(broker->decoder, &id);
        no = make_error(message_decoder_failed_kind(broker->decoder), has_id ? &id : NULL,
                        r < 0 ? PROTO_INTERNAL : PROTO_BAD_REQUEST,
                        r < 0 ? "not enough memory in the broker to read it" : err.text);
        if (session)
            answer(broker, session, &no);
        else
            client_link_send_stranger(&broker->client_link, peer, &no);
    } else if (message.kind == MESSAGE_HELLO) {
        hello(broker, from, &message);
    } else if (!session) {
        no = make_error(message.kind, NULL, PROTO_HELLO_REQUIRED, "expected hello first");
        client_link_send_stranger(&broker->client_link, peer, &no);
    } else if (!handlers[message.kind]) {
        no = make_error(message.kind, NULL, PROTO_BAD_REQUEST, "a client may not send this kind of message");
        answer(broker, session, &no);
    } else {
        handlers[message.kind](broker, session, &message, raw);
    }
}

/* The key that it comes with; 0: it needs none. False: with one that was taken away. */
static bool is_let_in(const struct broker *broker, zmq_msg_t *part, uint32_t *ret_key)
{
    *ret_key = broker->zap.socket ? zap_key_of(part) : 0;
    if (*ret_key == 0)
        return true;
    int fd = zmq_msg_get(part, ZMQ_SRCFD);
    if (!client_keys_of(&broker->client_keys, *ret_key)) {
        intake_unwanted(fd, *ret_key);
        return false;
    }
    intake_owned(fd, *ret_key);
    return true;
}

bool from_clients_drain(struct broker *broker)
{
    zmq_msg_t part;
    zmq_msg_init(&part);
    size_t bytes = 0;
    bool more = true;
    for (int i = 0; i < BROKER_BATCH && bytes < BROKER_BATCH_BYTES; i++) {
        struct origin from = {.part = &part};
        more = router_receive(broker->client_link.router, &from.peer, &part);
        if (!more) {
            socket_news_over(&broker->client_link.news);
            break;
        }
        bytes += zmq_msg_size(&part);
        if (is_let_in(broker, &part, &from.key))
            take(broker, &from, (struct bytes){zmq_msg_data(&part), zmq_msg_size(&part)});
    }
    zmq_msg_close(&part);
    if (!more && !broker->client_link.news.look)
        intake_emptied();
    return more;
}

bool from_clients_drain_stream(struct broker *broker)
{
    bool left;
    struct id128 id;
    int i;
    for (i = 0; i < BROKER_BATCH && stream_take(&broker->stream, &left, &id); i++)
        if (left)
            lifecycle_left(broker, &id);
    return i == BROKER_BATCH;
}
