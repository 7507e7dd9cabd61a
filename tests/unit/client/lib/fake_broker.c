/* SPDX-License-Identifier: MIT */
/* See fake_broker.h. Frame i of every request holds the two ids 2i and 2i+1 and the text "<i>". */

#include "tests/unit/client/lib/fake_broker.h"

#include "proto/message.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zmq.h>

#define MAX_REQUESTS 64

struct fake_request {
    struct id128 id;
    const int *step; /* where its script stands */
    bool waits;      /* for a replay */
    bool published_last;
};

struct fake_broker {
    struct fake_config config;
    char folder[RUNDIR_PATH_MAX + 1];
    char stream_endpoint[128];
    pthread_t thread;
    _Atomic bool stop;
    _Atomic int counts[MESSAGE_KIND_COUNT];
    _Atomic int taken; /* ids told in pings */
    void *context, *router, *stream;
    struct message_decoder *decoder;
    struct buffer out, joined; /* the parts of a generate */
    zmq_msg_t peer;
    struct id128 session;
    enum message_kind answered; /* what is being answered */
    bool knows_session, forgot;
    uint64_t boot;
    uint32_t move;
    char prompt[256];
    struct fake_request requests[MAX_REQUESTS];
    int n_requests;
};

static void reply(struct fake_broker *b, const struct message *message)
{
    b->out.len = 0;
    if (message_encode(message, &b->out) != 0)
        abort();
    zmq_send(b->router, zmq_msg_data(&b->peer), zmq_msg_size(&b->peer), ZMQ_SNDMORE);
    zmq_send(b->router, b->out.data, b->out.len, 0);
}

static void refuse(struct fake_broker *b, const struct id128 *id, uint64_t ref, enum proto_error error,
                   const char *text)
{
    struct message m = {.kind = MESSAGE_ERROR};
    m.error.has_id = id != NULL;
    if (id)
        m.error.id = *id;
    m.error.ref = ref;
    m.error.error = error;
    m.error.of = b->config.says_of ? b->answered : MESSAGE_NONE;
    m.error.text = bytes_of_string(text);
    m.error.retry_after_ms = error == PROTO_OVERLOADED ? 70 : 0;
    reply(b, &m);
}

static uint64_t text_offset(int frame)
{
    uint64_t off = 0;
    char text[16];
    for (int i = 0; i < frame; i++)
        off += (uint64_t)snprintf(text, sizeof text, "<%d>", i);
    return off;
}

/* Frame `i` of the output, encoded into b->out. */
static void make_frame(struct fake_broker *b, const struct id128 *id, int i, uint32_t move)
{
    char text[16];
    int32_t ids[2] = {2 * i, 2 * i + 1};
    struct message m = {.kind = MESSAGE_FRAME};
    m.frame.id = *id;
    m.frame.epoch = (struct epoch){b->boot, move};
    m.frame.seq = 2 * (uint64_t)i;
    m.frame.ids = (struct id_list){ids, 2};
    m.frame.off = text_offset(i);
    m.frame.text = (struct bytes){text, (size_t)snprintf(text, sizeof text, "<%d>", i)};
    m.frame.has_end = i == b->config.n_frames - 1;
    m.frame.end.reason = END_LENGTH;
    m.frame.end.usage = (struct usage){.prompt_tokens = 3, .output_tokens = 2 * (uint32_t)b->config.n_frames};
    if (b->config.embeds) {
        static const uint8_t numbers[] = {0x9a, 0x99, 0x19, 0x3f, 0xcd, 0xcc, 0x4c, 0xbf};
        m.frame.ids.n = m.frame.text.len = m.frame.end.usage.output_tokens = 0;
        if (!b->config.no_vector)
            m.frame.embedding = (struct bytes){numbers, sizeof numbers};
        m.frame.end.reason = END_STOP;
    }
    b->out.len = 0;
    if (message_encode(&m, &b->out) != 0)
        abort();
}

static void publish(struct fake_broker *b, const struct id128 *id)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    memcpy(topic, b->session.bytes, 16);
    memcpy(topic + 16, id->bytes, 16);
    zmq_send(b->stream, topic, sizeof topic, ZMQ_SNDMORE);
    zmq_send(b->stream, b->out.data, b->out.len, 0);
}

static void publish_stale(struct fake_broker *b, const struct id128 *id)
{
    int32_t wrong[2] = {666, 667};
    struct message m = {.kind = MESSAGE_FRAME};
    m.frame.id = *id;
    m.frame.epoch = (struct epoch){b->boot - 1, 9};
    m.frame.ids = (struct id_list){wrong, 2};
    m.frame.text = BYTES_LITERAL("wrong");
    m.frame.has_end = true;
    b->out.len = 0;
    if (message_encode(&m, &b->out) != 0)
        abort();
    publish(b, id);
}

static void tell_end(struct fake_broker *b, const struct id128 *id)
{
    struct message m = {.kind = MESSAGE_END};
    m.end.id = *id;
    m.end.epoch = (struct epoch){b->boot, b->move};
    m.end.count = b->config.embeds ? 0 : 2 * (uint64_t)b->config.n_frames;
    m.end.end.reason = b->config.embeds ? END_STOP : END_LENGTH;
    reply(b, &m);
}

static void play(struct fake_broker *b, struct fake_request *request)
{
    for (; *request->step != STEP_STOP; request->step++) {
        switch (*request->step) {
        case STEP_END:
            tell_end(b, &request->id);
            break;
        case STEP_STALE:
            publish_stale(b, &request->id);
            break;
        case STEP_MOVE:
            b->move++;
            break;
        case STEP_FORGET:
            b->knows_session = false;
            b->forgot = true;
            b->boot = b->config.next_boot ? b->config.next_boot : b->boot + 1;
            b->move = 0;
            request->step++;
            return;
        case STEP_AFTER_REPLAY:
            request->waits = true;
            request->step++;
            return;
        default:
            make_frame(b, &request->id, *request->step, b->move);
            publish(b, &request->id);
        }
    }
}

static struct fake_request *find(struct fake_broker *b, const struct id128 *id)
{
    for (int i = 0; i < b->n_requests; i++)
        if (memcmp(&b->requests[i].id, id, sizeof *id) == 0)
            return &b->requests[i];
    return NULL;
}

static void note_text(FILE *out, const char *label, struct bytes text)
{
    if (text.len > 0)
        fprintf(out, "%s%.*s", label, (int)text.len, (const char *)text.data);
}

static void note_message(FILE *out, const struct chat_message *m)
{
    note_text(out, " ", m->role);
    note_text(out, " ", m->name);
    note_text(out, " of ", m->tool_call_id);
    fprintf(out, ": %.*s", (int)m->content.len, (const char *)m->content.data);
    note_text(out, " calls ", m->tool_calls);
}

static void note_request(struct fake_broker *b, const struct generation *generation)
{
    const struct prompt *prompt = &generation->prompt;
    FILE *out = fmemopen(b->prompt, sizeof b->prompt, "w");
    if (prompt->form == PROMPT_TEXT)
        fprintf(out, "text %.*s", (int)prompt->text.len, (const char *)prompt->text.data);
    else
        fprintf(out, prompt->form == PROMPT_IDS ? "ids" : "chat");
    for (size_t i = 0; prompt->form == PROMPT_IDS && i < prompt->ids.n; i++)
        fprintf(out, " %d", prompt->ids.items[i]);
    for (size_t i = 0; prompt->form == PROMPT_CHAT && i < prompt->chat.n; i++)
        note_message(out, &prompt->chat.items[i]);
    if (generation->on_disconnect == DISCONNECT_KEEP)
        fprintf(out, ", keep %u", generation->keep_s);
    else
        fprintf(out, ", cancel");
    note_text(out, ", salt ", generation->cache_salt);
    if (!generation->cache_prompt)
        fprintf(out, ", not cached");
    note_text(out, ", for ", generation->tenant);
    note_text(out, ", tools ", generation->tools);
    if (generation->pieces)
        fprintf(out, ", pieces");
    for (size_t i = 0; i < generation->require.n; i++)
        note_text(out, ", needs ", generation->require.items[i]);
    fclose(out);
}

static void on_generate(struct fake_broker *b, const struct message *message)
{
    struct message m = {.kind = MESSAGE_ACCEPTED};
    if (b->config.accepts_late && atomic_load(&b->counts[MESSAGE_CANCEL]) == 0)
        return;
    if (b->config.refusal) {
        refuse(b, &message->generate.id, 0, PROTO_OVERLOADED, b->config.refusal);
        return;
    }
    struct fake_request *request = find(b, &message->generate.id);
    note_request(b, &message->generate.generation);
    m.accepted.id = message->generate.id;
    m.accepted.epoch = (struct epoch){b->boot, b->move};
    m.accepted.seed = message->generate.generation.sampling.seed;
    m.accepted.again = request != NULL;
    reply(b, &m);
    if (request || b->n_requests == MAX_REQUESTS)
        return;
    request = &b->requests[b->n_requests++];
    const int *script = b->forgot && b->config.next_script ? b->config.next_script : b->config.script;
    *request = (struct fake_request){.id = message->generate.id, .step = script};
    play(b, request);
}

/* The first part of a request starts over, as does the first part of the same one again. */
static void on_part(struct fake_broker *b, const struct message *message)
{
    const uint32_t total = message->generate_part.total, at = message->generate_part.at;
    struct message whole;
    if (at == 0)
        b->joined.len = 0;
    if (at != b->joined.len) {
        refuse(b, &message->generate_part.id, 0, PROTO_BAD_REQUEST, "the part does not follow");
        return;
    }
    if (buffer_append(&b->joined, message->generate_part.data.data, message->generate_part.data.len) != 0)
        abort();
    if (b->joined.len < total)
        return;
    if (message_decode(b->decoder, b->joined.data, b->joined.len, &whole, NULL) == 0 &&
        whole.kind == MESSAGE_GENERATE)
        on_generate(b, &whole);
}

static void on_replay(struct fake_broker *b, const struct message *message)
{
    struct fake_request *request = find(b, &message->replay.id);
    if (!request) {
        refuse(b, &message->replay.id, 0, PROTO_UNKNOWN_REQUEST, "unknown");
        return;
    }
    if (request->waits) {
        request->waits = false;
        play(b, request);
        usleep(20000); /* the live frames are there before the answer is */
    }
    int first = (int)message->replay.next / 2, n = b->config.page_frames;
    if (first + n > b->config.n_frames)
        n = b->config.n_frames - first;
    struct bytes frames[256];
    struct message m = {.kind = MESSAGE_REPLAY_OK};
    for (int i = 0; i < n; i++) {
        make_frame(b, &request->id, first + i, 0);
        void *copy = malloc(b->out.len);
        memcpy(copy, b->out.data, b->out.len);
        frames[i] = (struct bytes){copy, b->out.len};
    }
    m.replay_ok.id = request->id;
    m.replay_ok.epoch = (struct epoch){b->boot, b->move};
    m.replay_ok.from = message->replay.next;
    m.replay_ok.next = 2 * (uint64_t)(first + n);
    m.replay_ok.done = first + n == b->config.n_frames;
    m.replay_ok.frames.items = frames;
    m.replay_ok.frames.n = b->config.no_frames ? 0 : (size_t)n;
    reply(b, &m);
    for (int i = 0; i < n; i++)
        free((void *)frames[i].data);
}

static void on_attach(struct fake_broker *b, const struct message *message)
{
    struct fake_request *request = find(b, &message->attach.id);
    struct message m = {.kind = MESSAGE_ATTACH_OK};
    if (b->forgot && b->config.forgets_requests)
        b->n_requests = 0, request = NULL;
    if (!request) {
        refuse(b, &message->attach.id, 0, PROTO_UNKNOWN_REQUEST, "unknown");
        return;
    }
    m.attach_ok.id = request->id;
    m.attach_ok.epoch = (struct epoch){b->boot, b->move};
    m.attach_ok.next = 2 * (uint64_t)b->config.n_frames;
    reply(b, &m);
    play(b, request);
}

static void on_hello(struct fake_broker *b, const struct message *message)
{
    struct bytes stream = bytes_of_string(b->config.stream ? b->config.stream : b->stream_endpoint);
    uint8_t digest[16] = {7};
    struct model_info model = {
        .name = BYTES_LITERAL("fake"), .digest = {digest, 16}, .context = 512, .chat = true};
    struct message m = {.kind = MESSAGE_HELLO_OK};
    if ((b->forgot || b->config.refuses_first) && b->config.hellos_refused-- > 0) {
        refuse(b, NULL, 0, PROTO_OVERLOADED, "too many sessions");
        return;
    }
    b->session = message->hello.session;
    b->knows_session = true;
    m.hello_ok.proto = (struct version_range){1, 1};
    if (b->config.version)
        m.hello_ok.proto = (struct version_range){b->config.version, b->config.version};
    m.hello_ok.boot = b->boot;
    m.hello_ok.stream = (struct text_list){&stream, 1};
    m.hello_ok.limits = (struct limits){.request_bytes = 4096,
                                        .generate_bytes = b->config.takes_parts ? 1 << 16 : 0,
                                        .prompt_ids = 8,
                                        .stops = 2,
                                        .stop_bytes = 4,
                                        .stop_ids = 3,
                                        .logprobs = 1,
                                        .logit_bias = 1,
                                        .grammar_bytes = 8};
    m.hello_ok.lease_ms = 5000;
    m.hello_ok.models.items = &model;
    m.hello_ok.models.n = 1;
    reply(b, &m);
}

static void on_join(struct fake_broker *b, uint64_t nonce)
{
    struct message m = {.kind = MESSAGE_WELCOME};
    if (b->config.welcomes_lost-- > 0)
        return;
    if ((b->forgot || b->config.refuses_first) && b->config.joins_refused-- > 0) {
        refuse(b, NULL, 0, PROTO_OVERLOADED, "too many subscriptions");
        return;
    }
    m.welcome.nonce = nonce;
    b->out.len = 0;
    if (message_encode(&m, &b->out) != 0)
        abort();
    zmq_send(b->stream, b->session.bytes, 16, ZMQ_SNDMORE);
    zmq_send(b->stream, b->out.data, b->out.len, 0);
}

static void on_status(struct fake_broker *b, uint64_t ref)
{
    static const struct bytes aliases[] = {BYTES_LITERAL("one"), BYTES_LITERAL("t\nwo")};
    struct worker_status worker = {.name = BYTES_LITERAL("worker-0"), .state = WORKER_FAILED};
    worker.aliases = (struct text_list){aliases, 2};
    struct message m = {.kind = MESSAGE_STATUS_OK};
    worker.reason = BYTES_LITERAL("no such file");
    m.status_ok.ref = ref;
    m.status_ok.boot = b->boot;
    m.status_ok.version = BYTES_LITERAL("1.2.3");
    m.status_ok.workers.items = &worker;
    m.status_ok.workers.n = 1;
    reply(b, &m);
}

static void on_message(struct fake_broker *b, const struct message *message)
{
    struct message m = {.kind = MESSAGE_NONE};
    static const int32_t ids[] = {4, 5, 6};
    atomic_fetch_add(&b->counts[message->kind], 1);
    b->answered = message->kind;
    if (message->kind == MESSAGE_HELLO) {
        on_hello(b, message);
        return;
    }
    if (!b->knows_session) {
        refuse(b, NULL, 0, PROTO_HELLO_REQUIRED, "hello first");
        return;
    }
    if (message->kind == MESSAGE_JOIN) {
        on_join(b, message->join.nonce);
        return;
    }
    if (b->config.silent)
        return;
    switch (message->kind) {
    case MESSAGE_GENERATE:
        on_generate(b, message);
        break;
    case MESSAGE_GENERATE_PART:
        on_part(b, message);
        break;
    case MESSAGE_REPLAY:
        if (!b->config.no_replays)
            on_replay(b, message);
        break;
    case MESSAGE_ATTACH:
        on_attach(b, message);
        break;
    case MESSAGE_CANCEL:
        if (b->config.cancels_unknown)
            refuse(b, &message->cancel.id, 0, PROTO_UNKNOWN_REQUEST, "unknown");
        if (b->config.cancels_unknown || b->config.cancels_lost-- > 0)
            break;
        m.kind = MESSAGE_CANCEL_OK;
        m.cancel_ok.id = message->cancel.id;
        reply(b, &m);
        break;
    case MESSAGE_STATUS:
        on_status(b, message->status.ref);
        break;
    case MESSAGE_TOKENIZE:
        if (b->config.knows_no_ids) {
            refuse(b, NULL, message->tokenize.ref, PROTO_NO_WORKER, "none is ready");
            break;
        }
        m.kind = MESSAGE_TOKENIZE_OK;
        m.tokenize_ok.ref = message->tokenize.ref;
        m.tokenize_ok.ids = (struct id_list){ids, 3};
        reply(b, &m);
        break;
    case MESSAGE_PING:
        atomic_fetch_add(&b->taken, (int)message->ping.taken.n);
        m.kind = MESSAGE_PONG;
        reply(b, &m);
        break;
    default:
        break;
    }
}

static void *run(void *arg)
{
    struct fake_broker *b = arg;
    zmq_pollitem_t items[] = {{.socket = b->router, .events = ZMQ_POLLIN},
                              {.socket = b->stream, .events = ZMQ_POLLIN}};
    while (!atomic_load(&b->stop)) {
        zmq_poll(items, 2, 10);
        zmq_msg_t part;
        zmq_msg_init(&part);
        while (zmq_msg_recv(&part, b->stream, ZMQ_DONTWAIT) >= 0)
            ; /* subscriptions: an XPUB needs them read */
        while (zmq_msg_recv(&b->peer, b->router, ZMQ_DONTWAIT) >= 0) {
            struct message message;
            zmq_msg_recv(&part, b->router, 0);
            if (message_decode(b->decoder, zmq_msg_data(&part), zmq_msg_size(&part), &message, NULL) == 0)
                on_message(b, &message);
        }
        zmq_msg_close(&part);
    }
    return NULL;
}

struct fake_broker *fake_broker_new(const struct fake_config *config, char ret_folder[RUNDIR_PATH_MAX + 1])
{
    struct fake_broker *b = calloc(1, sizeof *b);
    char endpoint[128];
    if (!b || rundir_temporary(b->folder, NULL) != 0 || message_decoder_new(&b->decoder) != 0)
        abort();
    b->config = *config;
    b->boot = 5;
    b->context = zmq_ctx_new();
    b->router = zmq_socket(b->context, ZMQ_ROUTER);
    b->stream = zmq_socket(b->context, ZMQ_XPUB);
    int zero = 0;
    zmq_setsockopt(b->router, ZMQ_LINGER, &zero, sizeof zero);
    zmq_setsockopt(b->stream, ZMQ_LINGER, &zero, sizeof zero);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/frontend", b->folder);
    snprintf(b->stream_endpoint, sizeof b->stream_endpoint, "ipc://%s/stream", b->folder);
    if (config->tcp) {
        int is_v6 = config->tcp[0] == '[';
        snprintf(endpoint, sizeof endpoint, "tcp://%s:*", config->tcp);
        strcpy(b->stream_endpoint, endpoint);
        zmq_setsockopt(b->router, ZMQ_IPV6, &is_v6, sizeof is_v6);
        zmq_setsockopt(b->stream, ZMQ_IPV6, &is_v6, sizeof is_v6);
    }
    zmq_msg_init(&b->peer);
    if (zmq_bind(b->router, endpoint) != 0 || zmq_bind(b->stream, b->stream_endpoint) != 0)
        abort();
    strcpy(ret_folder, b->folder);
    if (config->tcp) { /* the system chose the ports */
        size_t size = RUNDIR_PATH_MAX + 1, stream_size = sizeof b->stream_endpoint;
        zmq_getsockopt(b->router, ZMQ_LAST_ENDPOINT, ret_folder, &size);
        zmq_getsockopt(b->stream, ZMQ_LAST_ENDPOINT, b->stream_endpoint, &stream_size);
    }
    if (pthread_create(&b->thread, NULL, run, b) != 0)
        abort();
    return b;
}

void fake_broker_free(struct fake_broker *b)
{
    atomic_store(&b->stop, true);
    pthread_join(b->thread, NULL);
    zmq_msg_close(&b->peer);
    zmq_close(b->router);
    zmq_close(b->stream);
    zmq_ctx_term(b->context);
    message_decoder_free(b->decoder);
    buffer_deinit(&b->out);
    buffer_deinit(&b->joined);
    rundir_remove(b->folder);
    free(b);
}

const char *fake_broker_folder(const struct fake_broker *broker)
{
    return broker->folder;
}

int fake_broker_taken(const struct fake_broker *broker)
{
    return atomic_load(&broker->taken);
}

int fake_broker_count(const struct fake_broker *broker, const char *kind)
{
    for (int k = 0; k < MESSAGE_KIND_COUNT; k++)
        if (strcmp(message_kind_name((enum message_kind)k), kind) == 0)
            return atomic_load(&broker->counts[k]);
    return -1;
}

const char *fake_broker_prompt(const struct fake_broker *broker)
{
    return broker->prompt;
}
