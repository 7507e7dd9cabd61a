/* SPDX-License-Identifier: MIT */
/* What libquern makes of each word of the broker, in each state; test_incoming_frames.c: of what a request
 * makes. */

#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "client/lib/requests/delivery.h"
#include "client/lib/incoming.h"
#include "client/lib/question.h"
#include "client/lib/requests/request.h"
#include "client/lib/session.h"

/* ---- the session ---- */

/* A hello_ok with these streams. */
static struct message hello_ok(const struct bytes *streams, size_t n)
{
    struct message ok = {.kind = MESSAGE_HELLO_OK};
    ok.hello_ok.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    ok.hello_ok.stream = (struct text_list){streams, n};
    return ok;
}

START_TEST(of_the_streams_the_first_is_taken_that_is_reached_as_the_broker_is)
{
    const struct bytes streams[] = {BYTES_LITERAL("tcp://127.0.0.1:1"), BYTES_LITERAL("inproc://"),
                                    BYTES_LITERAL("inproc://a"), BYTES_LITERAL("inproc://b")};
    struct message ok = hello_ok(streams, 4);
    incoming_message(client, &ok);
    ck_assert_int_eq(client->state, SESSION_JOIN);
    ck_assert_str_eq(client->stream_endpoint, "inproc://a");
    /* The broker comes back with another: the first is left. */
    session_start(client);
    ok = hello_ok(streams + 3, 1);
    incoming_message(client, &ok);
    ck_assert_str_eq(client->stream_endpoint, "inproc://b");
    ck_assert_int_lt(zmq_disconnect(client->stream, "inproc://a"), 0);
    /* And with the same: that stays. */
    session_start(client);
    incoming_message(client, &ok);
    ck_assert_int_eq(client->state, SESSION_JOIN);
    ck_assert_int_eq(zmq_disconnect(client->stream, "inproc://b"), 0);
    ck_assert_int_lt(zmq_disconnect(client->stream, "inproc://b"), 0);
}
END_TEST

START_TEST(a_stream_that_is_none_or_cannot_be_connected_to_ends_the_session_by_name)
{
    const struct bytes none = BYTES_LITERAL("inproc://");
    struct message ok = hello_ok(&none, 1);
    incoming_message(client, &ok);
    ck_assert_int_eq(client->state, SESSION_BROKEN);
    ck_assert_int_eq(client->broken, -EPROTO);
    ck_assert_str_eq(client->broken_err.text,
                     "the pool at inproc://broker did not name a stream endpoint for this transport");
    bare_tear_down();
    bare_set_up();
    char endpoint[PROTO_MAX_NAME_BYTES + 1] = "ipc:///"; /* longer than a socket's path may be */
    memset(endpoint + 7, 'a', sizeof endpoint - 8);
    const struct bytes longest = {endpoint, sizeof endpoint - 1};
    strcpy(client->endpoint, "ipc:///broker");
    ok = hello_ok(&longest, 1);
    incoming_message(client, &ok);
    ck_assert_int_eq(client->state, SESSION_BROKEN);
    ck_assert_int_eq(client->broken, -ENAMETOOLONG);
    ck_assert_ptr_eq(strstr(client->broken_err.text, "the pool's stream ipc:///aaa"),
                     client->broken_err.text);
    ck_assert_str_eq(client->stream_endpoint, "");
}
END_TEST

START_TEST(a_pool_is_of_our_version_when_the_ranges_meet)
{
    static const struct {
        uint32_t min, max;
        enum session_state state;
    } rows[] = {{1, 1, SESSION_JOIN},
                {0, 9, SESSION_JOIN},
                {0, 0, SESSION_BROKEN},
                {PROTO_VERSION_MAX + 1, 9, SESSION_BROKEN}};
    const struct bytes stream = BYTES_LITERAL("inproc://a");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct message ok = hello_ok(&stream, 1);
        ok.hello_ok.proto = (struct version_range){rows[i].min, rows[i].max};
        session_start(client);
        incoming_message(client, &ok);
        ck_assert_int_eq(client->state, rows[i].state);
    }
}
END_TEST

START_TEST(models_and_limits_are_those_of_the_last_hello)
{
    static const uint8_t digest[16] = {1, 2, 3};
    const struct model_info models[] = {
        {.name = BYTES_LITERAL("a"), .digest = {digest, 16}, .context = 512, .workers = 3, .embedding = 64},
        {.name = BYTES_LITERAL("b"), .digest = {digest, 16}, .chat = true}};
    const struct bytes stream = BYTES_LITERAL("inproc://a");
    const struct quern_model *has;
    struct message ok = hello_ok(&stream, 1);
    size_t n;
    ok.hello_ok.limits.stops = 3;
    ok.hello_ok.models.items = models;
    ok.hello_ok.models.n = 2;
    incoming_message(client, &ok);
    ck_assert_uint_eq(client->limits.stops, 3);
    has = quern_models(client, &n);
    ck_assert_uint_eq(n, 2);
    ck_assert_str_eq(has[0].name, "a");
    ck_assert_mem_eq(has[0].digest, digest, sizeof digest);
    ck_assert_uint_eq(has[0].context, 512);
    ck_assert_uint_eq(has[0].workers, 3);
    ck_assert_uint_eq(has[0].embedding, 64);
    ck_assert(!has[0].chat);
    ck_assert_str_eq(has[1].name, "b");
    ck_assert(has[1].chat);
    /* One that comes unasked changes nothing. */
    ok.hello_ok.models.n = 1;
    incoming_message(client, &ok);
    quern_models(client, &n);
    ck_assert_uint_eq(n, 2);
    session_start(client);
    incoming_message(client, &ok);
    quern_models(client, &n);
    ck_assert_uint_eq(n, 1);
}
END_TEST

START_TEST(a_welcome_opens_the_session_that_asked_for_it)
{
    struct told told = {0};
    struct request *request = bare_request(REQUEST_NEW, &told);
    client->nonce = 7;
    session_welcome(client, 7); /* while hello is not answered */
    ck_assert_int_eq(client->state, SESSION_HELLO);
    client->state = SESSION_JOIN;
    session_welcome(client, 8);
    ck_assert_int_eq(client->state, SESSION_JOIN);
    session_welcome(client, 7);
    ck_assert_int_eq(client->state, SESSION_OPEN);
    ck_assert(bare_next_is_generate());
    ck_assert_int_eq(request->state, REQUEST_SENT);
}
END_TEST

/* What the broker already has is attached to, and cancels are counted anew. */
START_TEST(a_session_opened_again_goes_on_with_its_requests)
{
    struct told told = {0};
    struct request *request = bare_request(REQUEST_LIVE, &told);
    request->cancels = 2;
    request->next = 5;
    bare_open();
    ck_assert_says_none(); /* the first time: it can only have come since */
    ck_assert_int_eq(request->state, REQUEST_LIVE);
    session_lost(client);
    ck_assert_says(MESSAGE_HELLO);
    request->replaying = true;
    bare_open();
    struct message attach = bare_next();
    ck_assert_int_eq(attach.kind, MESSAGE_ATTACH);
    ck_assert_uint_eq(attach.attach.next, 5);
    ck_assert_mem_eq(&attach.attach.id, &request->id, sizeof request->id);
    ck_assert_mem_eq(&attach.attach.session, &(struct id128){{0}}, sizeof(struct id128));
    ck_assert_int_eq(request->state, REQUEST_ATTACHING);
    ck_assert(!request->replaying);
    ck_assert_uint_eq(request->cancels, 0);
}
END_TEST

START_TEST(a_session_is_lost_once)
{
    static const struct message required = {.kind = MESSAGE_ERROR, .error = {.error = PROTO_HELLO_REQUIRED}};
    bare_open();
    incoming_message(client, &required);
    ck_assert_says(MESSAGE_HELLO);
    ck_assert_int_eq(client->state, SESSION_HELLO);
    incoming_message(client, &required); /* the answer to something older */
    ck_assert_says_none();
    client->state = SESSION_JOIN;
    incoming_message(client, &required);
    ck_assert_says(MESSAGE_HELLO);
}
END_TEST

START_TEST(a_hello_that_is_refused_ends_the_session_unless_it_is_asked_again)
{
    static const struct {
        enum session_state state;
        bool opened_before;
        enum message_kind of;
        enum proto_error error;
        int broken;
    } rows[] = {
        {SESSION_HELLO, false, MESSAGE_HELLO, PROTO_UNSUPPORTED, -EPROTO},
        {SESSION_HELLO, false, MESSAGE_NONE, PROTO_UNSUPPORTED, -EPROTO}, /* an older broker's */
        {SESSION_HELLO, false, MESSAGE_PING, PROTO_UNSUPPORTED, 0},
        {SESSION_JOIN, false, MESSAGE_HELLO, PROTO_UNSUPPORTED, 0},
        {SESSION_OPEN, true, MESSAGE_NONE, PROTO_BAD_REQUEST, 0},
        {SESSION_HELLO, false, MESSAGE_HELLO, PROTO_OVERLOADED, -EAGAIN},
        {SESSION_HELLO, false, MESSAGE_HELLO, PROTO_DRAINING, -EAGAIN},
        {SESSION_HELLO, true, MESSAGE_HELLO, PROTO_OVERLOADED, 0},
        {SESSION_HELLO, true, MESSAGE_HELLO, PROTO_DRAINING, 0},
        {SESSION_HELLO, true, MESSAGE_HELLO, PROTO_UNSUPPORTED, -EPROTO},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct message no = {.kind = MESSAGE_ERROR};
        no.error.of = rows[i].of;
        no.error.error = rows[i].error;
        no.error.text = BYTES_LITERAL("be\x1bgone");
        client->state = rows[i].state;
        client->opened_before = rows[i].opened_before;
        client->broken = 0;
        incoming_message(client, &no);
        ck_assert_msg(client->broken == rows[i].broken, "row %zu: %d", i, client->broken);
        ck_assert_int_eq(client->state, rows[i].broken ? SESSION_BROKEN : rows[i].state);
    }
    ck_assert_str_eq(client->broken_err.text, "the pool refuses: unsupported: be?gone");
    client->opened_before = false;
}
END_TEST

/* ---- what is refused of a request ---- */

enum outcome { STAYS, FAILS, LOST, ENDS, SENT_AGAIN };

struct refusal {
    enum request_state state;
    enum message_kind of;
    enum proto_error error;
    enum outcome outcome;
    unsigned is; /* flags */
    uint64_t next, off;
};
enum { ATTACHED = 1, REPLAYING = 2, END_TOLD = 4, NO_WIRE = 8 };

static void check_sent_again(struct request *request)
{
    ck_assert(bare_next_is_generate());
    ck_assert_int_eq(request->state, REQUEST_SENT);
    ck_assert_uint_eq(request->epoch.boot, 0);
    ck_assert(!request->replaying);
    ck_assert_uint_eq(request->fruitless, 0);
    ck_assert_ptr_null(request->held);
    state_remove_request(client, request);
}

static void check_told(const struct refusal *row, const struct told *told)
{
    ck_assert_int_eq(told->ends, 1);
    if (row->outcome == ENDS) {
        ck_assert_int_eq(told->end.reason, QUERN_LENGTH);
        return;
    }
    ck_assert_int_eq(told->end.reason, QUERN_ERROR);
    ck_assert_uint_eq(told->end.seed, 42);
    ck_assert_uint_eq(told->end.output_tokens, row->next);
    ck_assert_str_eq(told->error, row->outcome == LOST ? "worker_lost" : proto_error_name(row->error));
    ck_assert_uint_eq(told->end.retry_after_ms, row->outcome == LOST ? 0 : 70);
    char lost[100];
    snprintf(lost, sizeof lost, "the broker no longer knows this request; %d tokens had arrived",
             (int)row->next);
    ck_assert_str_eq(told->error_text, row->outcome == LOST ? lost : "no?");
}

static void refuse(const struct refusal *row)
{
    struct told told = {0};
    struct request *request = bare_request(row->state, &told);
    struct message no = {.kind = MESSAGE_ERROR};
    request->attached = row->is & ATTACHED;
    request->replaying = row->is & REPLAYING;
    request->end_told = row->is & END_TOLD;
    request->end.reason = QUERN_LENGTH;
    request->end.error = request->end.text = "";
    request->end_count = 4;
    request->next = row->next;
    request->off = row->off;
    request->seed = 42;
    request->epoch.boot = 9;
    request->fruitless = 1;
    if (row->is & NO_WIRE)
        request->encoded = quern_encoded_free(request->encoded);
    state_hold_frame(request, "x", 1);
    no.error.has_id = true;
    no.error.id = request->id;
    no.error.error = row->error;
    no.error.of = row->of;
    no.error.text = BYTES_LITERAL("no\n");
    no.error.retry_after_ms = 70;
    incoming_message(client, &no);
    if (row->outcome == SENT_AGAIN) {
        check_sent_again(request);
    } else if (row->outcome == STAYS) {
        ck_assert_int_eq(told.calls, 0);
        ck_assert_int_eq(request->state, row->state);
        ck_assert_ptr_nonnull(request->held);
        state_remove_request(client, request);
    } else {
        check_told(row, &told);
    }
    ck_assert_uint_eq(quern_active(client), 0);
    ck_assert_says_none();
}

START_TEST(a_refusal_concerns_what_was_asked_in_this_state)
{
    static const struct refusal rows[] = {
        {REQUEST_SENT, MESSAGE_GENERATE, PROTO_OVERLOADED, FAILS, 0, 0, 0},
        {REQUEST_SENT, MESSAGE_NONE, PROTO_OVERLOADED, FAILS, 0, 0, 0},
        {REQUEST_SENT, MESSAGE_GENERATE, PROTO_UNKNOWN_REQUEST, FAILS, 0, 0, 0},
        {REQUEST_SENT, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, STAYS, 0, 0, 0}, /* of an earlier session */
        {REQUEST_SENT, MESSAGE_CANCEL, PROTO_UNKNOWN_REQUEST, STAYS, 0, 0, 0},
        {REQUEST_LIVE, MESSAGE_NONE, PROTO_OVERLOADED, STAYS, 0, 0, 0},
        {REQUEST_LIVE, MESSAGE_GENERATE, PROTO_UNKNOWN_REQUEST, STAYS, 0, 0, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, SENT_AGAIN, REPLAYING, 0, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_INTERNAL, STAYS, REPLAYING, 0, 0},
        {REQUEST_LIVE, MESSAGE_CANCEL, PROTO_UNKNOWN_REQUEST, STAYS, REPLAYING, 0, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, LOST, REPLAYING, 2, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, LOST, REPLAYING, 0, 2},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, LOST, REPLAYING, 4, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, LOST, REPLAYING | NO_WIRE, 0, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, LOST, REPLAYING | END_TOLD, 0, 0},
        {REQUEST_LIVE, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, ENDS, REPLAYING | END_TOLD, 4, 0},
        {REQUEST_ATTACHING, MESSAGE_ATTACH, PROTO_UNKNOWN_REQUEST, SENT_AGAIN, 0, 0, 0},
        {REQUEST_ATTACHING, MESSAGE_ATTACH, PROTO_UNKNOWN_REQUEST, FAILS, ATTACHED | NO_WIRE, 0, 0},
        {REQUEST_ATTACHING, MESSAGE_ATTACH, PROTO_CONFLICT, FAILS, 0, 3, 0},
        {REQUEST_ATTACHING, MESSAGE_REPLAY, PROTO_UNKNOWN_REQUEST, STAYS, 0, 0, 0},
    };
    bare_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        refuse(&rows[i]);
}
END_TEST

START_TEST(an_error_about_a_cancel_settles_it_where_the_request_is_known)
{
    static const struct {
        enum request_state state;
        enum message_kind of;
        uint32_t cancels, left;
        bool wanted;
    } rows[] = {
        {REQUEST_LIVE, MESSAGE_CANCEL, 2, 1, false}, {REQUEST_LIVE, MESSAGE_CANCEL, 0, 0, false},
        {REQUEST_LIVE, MESSAGE_NONE, 1, 0, false}, /* an older broker's */
        {REQUEST_LIVE, MESSAGE_NONE, 0, 0, true},  /* of something else */
        {REQUEST_SENT, MESSAGE_CANCEL, 1, 0, true},  {REQUEST_ATTACHING, MESSAGE_CANCEL, 1, 0, true},
    };
    bare_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct told told = {0};
        struct request *request = bare_request(rows[i].state, &told);
        struct message no = {.kind = MESSAGE_ERROR};
        request->cancels = rows[i].cancels;
        request->cancel_wanted = true;
        no.error.has_id = true;
        no.error.id = request->id;
        no.error.of = rows[i].of;
        no.error.error = PROTO_UNKNOWN_REQUEST;
        incoming_message(client, &no);
        ck_assert_int_eq(told.calls, 0);
        ck_assert_uint_eq(request->cancels, rows[i].left);
        ck_assert_int_eq(request->cancel_wanted, rows[i].wanted);
        state_remove_request(client, request);
    }
}
END_TEST

START_TEST(a_cancel_is_acknowledged_once_it_was_said)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    struct message ok = {.kind = MESSAGE_CANCEL_OK, .cancel_ok = {request->id}};
    request->cancel_wanted = true;
    incoming_message(client, &ok); /* of before the session was opened again */
    ck_assert(request->cancel_wanted);
    request->cancels = 2;
    incoming_message(client, &ok);
    ck_assert(!request->cancel_wanted);
    ck_assert_uint_eq(request->cancels, 1);
}
END_TEST

/* ---- what is granted ---- */

START_TEST(an_accepted_request_lives_with_the_newest_epoch_and_the_seed_it_got)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_SENT, &told);
    struct message ok = {.kind = MESSAGE_ACCEPTED};
    ok.accepted.id = request->id;
    ok.accepted.seed = 77;
    ok.accepted.epoch = (struct epoch){5, 1};
    request->cancel_wanted = true;
    client->now += CLOCK_NS_PER_S;
    incoming_message(client, &ok);
    ck_assert_int_eq(request->state, REQUEST_LIVE);
    ck_assert_uint_eq(request->seed, 77);
    ck_assert_uint_eq(request->epoch.boot, 5);
    ck_assert_uint_eq(request->heard_ns, client->now);
    ck_assert_says(MESSAGE_CANCEL); /* which nobody would have known before */
    ok.accepted.epoch = (struct epoch){4, 9};
    incoming_message(client, &ok);
    ck_assert_uint_eq(request->epoch.boot, 5);
    request->state = REQUEST_ATTACHING;
    incoming_message(client, &ok);
    ck_assert_int_eq(request->state, REQUEST_ATTACHING);
}
END_TEST

START_TEST(who_asks_for_it_is_told_that_a_request_was_accepted_once)
{
    struct told told = {0}, other = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_SENT, &told);
    request->tells_admitted = true;
    struct message ok = {.kind = MESSAGE_ACCEPTED};
    ok.accepted.id = request->id;
    ok.accepted.seed = 77;
    ok.accepted.quotas.requests = (struct quota){60, 59, 1000};
    incoming_message(client, &ok);
    incoming_message(client, &ok);
    ck_assert(told.admissions == 1 && told.calls == 1);
    ck_assert_uint_eq(told.admitted.seed, 77);
    ck_assert_uint_eq(told.admitted.requests.remaining, 59);
    ck_assert_uint_eq(told.admitted.tokens.limit, 0);
    ok.accepted.id = bare_request(REQUEST_SENT, &other)->id;
    incoming_message(client, &ok);
    ck_assert_int_eq(other.calls, 0);
}
END_TEST

START_TEST(a_refusal_tells_what_is_left)
{
    struct told told = {0};
    bare_open();
    struct message no = {.kind = MESSAGE_ERROR};
    no.error.has_id = true;
    no.error.id = bare_request(REQUEST_SENT, &told)->id;
    no.error.error = PROTO_OVERLOADED;
    no.error.text = BYTES_LITERAL("no");
    no.error.retry_after_ms = 900;
    no.error.quotas.tokens = (struct quota){1000, 0, 60000};
    incoming_message(client, &no);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_uint_eq(told.end.retry_after_ms, 900);
    ck_assert_uint_eq(told.end.tokens.limit, 1000);
    ck_assert_uint_eq(told.end.tokens.reset_ms, 60000);
    ck_assert_uint_eq(told.end.requests.limit, 0);
}
END_TEST

START_TEST(how_much_is_read_is_told_of_the_newest_attempt_until_there_is_output)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_SENT, &told);
    struct message done = {.kind = MESSAGE_PROGRESS};
    done.progress.id = request->id;
    done.progress.epoch = (struct epoch){5, 1};
    done.progress.total = 100;
    done.progress.cached = 32;
    done.progress.read = 64;
    client->now += CLOCK_NS_PER_S;
    request_progress(client, &done);
    ck_assert_int_eq(told.readings, 1);
    ck_assert(told.progress.total == 100 && told.progress.cached == 32 && told.progress.read == 64);
    ck_assert_int_eq(request->state, REQUEST_LIVE);
    ck_assert_uint_eq(request->heard_ns, client->now);
    done.progress.epoch = (struct epoch){5, 0}; /* of a worker that lost it */
    request_progress(client, &done);
    ck_assert_int_eq(told.readings, 1);
    done.progress.epoch = (struct epoch){5, 2};
    request_progress(client, &done);
    ck_assert_int_eq(told.readings, 2);
    request->next = 1;
    request_progress(client, &done);
    ck_assert_int_eq(told.readings, 2);
    done.progress.id = (struct id128){{0}}; /* of nobody here */
    request_progress(client, &done);
}
END_TEST

START_TEST(an_attached_request_is_ours_and_asks_for_what_it_missed)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_ATTACHING, &told);
    struct message ok = {.kind = MESSAGE_ATTACH_OK};
    ok.attach_ok.id = request->id;
    ok.attach_ok.epoch = (struct epoch){5, 1};
    request->attached = true;
    request->session = (struct id128){{1}};
    request->cancel_wanted = true;
    client->now += CLOCK_NS_PER_S;
    incoming_message(client, &ok);
    ck_assert_int_eq(request->state, REQUEST_LIVE);
    ck_assert(!request->attached);
    ck_assert_mem_eq(&request->session, &(struct id128){{0}}, sizeof(struct id128));
    ck_assert_uint_eq(request->epoch.boot, 5);
    ck_assert_uint_eq(request->heard_ns, client->now);
    ck_assert_says(MESSAGE_CANCEL);
    ck_assert_says(MESSAGE_REPLAY);
    ok.attach_ok.epoch.boot = 6;
    incoming_message(client, &ok); /* the answer to the same, asked twice */
    ck_assert_says_none();
    ck_assert_uint_eq(request->epoch.boot, 5);
}
END_TEST

/* ---- sockets ---- */

static void send_parts(void *socket, const struct bytes *parts, int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(zmq_send(socket, parts[i].data, parts[i].len, i + 1 < n ? ZMQ_SNDMORE : 0),
                         (int)parts[i].len);
}

struct answered {
    int n, code;
    bool has_own; /* what was asked for came with it */
    enum message_kind asked;
};

static void take_answer(void *arg, const struct quern_answer *answer)
{
    struct answered *answered = arg;
    answered->n++;
    answered->code = answer->code;
    answered->has_own = answered->asked == MESSAGE_STATUS     ? answer->status != NULL
                        : answered->asked == MESSAGE_PREFIXES ? answer->prefixes != NULL
                        : answered->asked == MESSAGE_TRACE    ? answer->trace != NULL
                        : answered->asked == MESSAGE_PROFILE  ? answer->profile != NULL
                        : answered->asked == MESSAGE_TRIM     ? answer->trim != NULL
                                                          : answer->ids != NULL || answer->content != NULL;
}

/* A question of that kind, with what it must have. */
static struct message question_of(enum message_kind kind)
{
    static const int32_t ids[] = {1};
    struct message m = {.kind = kind};
    if (kind == MESSAGE_TRACE) {
        m.trace.worker = BYTES_LITERAL("w");
    } else if (kind == MESSAGE_PROFILE) {
        m.profile.worker = BYTES_LITERAL("w");
        m.profile.run = m.profile.steps = 1;
    } else if (kind == MESSAGE_TRIM) {
        m.trim.worker = BYTES_LITERAL("w");
        m.trim.run = 1;
    } else if (kind == MESSAGE_TOKENIZE) {
        m.tokenize.has_text = true;
        m.tokenize.text = BYTES_LITERAL("a");
    } else if (kind == MESSAGE_DETOKENIZE) {
        m.detokenize.ids = (struct id_list){ids, 1};
    } else if (kind == MESSAGE_PREFIXES) {
        m.prefixes.secret = BYTES_LITERAL("s");
    }
    return m;
}

/* An answer of that kind to the question with that reference, with little in it. */
static struct message answer_of(enum message_kind kind, uint64_t ref)
{
    static const int32_t ids[] = {1};
    struct message m = {.kind = kind};
    switch (kind) {
    case MESSAGE_STATUS_OK:
        m.status_ok.ref = ref;
        break;
    case MESSAGE_PREFIXES_OK:
        m.prefixes_ok.ref = ref;
        break;
    case MESSAGE_TRACE_OK:
        m.trace_ok.ref = ref;
        break;
    case MESSAGE_PROFILE_OK:
        m.profile_ok.ref = ref;
        break;
    case MESSAGE_TRIM_OK:
        m.trim_ok.ref = ref;
        break;
    case MESSAGE_TOKENIZE_OK:
        m.tokenize_ok.ref = ref;
        m.tokenize_ok.ids = (struct id_list){ids, 1};
        break;
    default:
        m.detokenize_ok.ref = ref;
        break;
    }
    return m;
}

START_TEST(a_question_hears_no_answer_to_another)
{
    static const enum message_kind asked[] = {MESSAGE_STATUS,    MESSAGE_PREFIXES, MESSAGE_TRACE,
                                              MESSAGE_PROFILE,   MESSAGE_TRIM,     MESSAGE_TOKENIZE,
                                              MESSAGE_DETOKENIZE};
    static const enum message_kind answers[] = {
        MESSAGE_STATUS_OK, MESSAGE_PREFIXES_OK, MESSAGE_TRACE_OK,     MESSAGE_PROFILE_OK,
        MESSAGE_TRIM_OK,   MESSAGE_TOKENIZE_OK, MESSAGE_DETOKENIZE_OK};
    enum { N = sizeof asked / sizeof *asked };
    bare_open();
    for (size_t i = 0; i < N; i++) {
        struct message question = question_of(asked[i]);
        struct answered answered = {.asked = asked[i]};
        struct error err = {0};
        ck_assert_int_eq(question_ask(client, &question, 10000, take_answer, &answered, &err), 0);
        for (size_t j = 0; j < N; j++) {
            const struct message m = answer_of(answers[j], client->last_ref);
            if (j != i)
                incoming_message(client, &m);
        }
        ck_assert_int_eq(answered.n, 0);
        const struct message own = answer_of(answers[i], client->last_ref);
        incoming_message(client, &own);
        ck_assert_int_eq(answered.n, 1);
        ck_assert_int_eq(answered.code, 0);
        ck_assert(answered.has_own);
    }
}
END_TEST

START_TEST(a_message_of_several_parts_is_passed_over)
{
    struct message required = {.kind = MESSAGE_ERROR, .error = {.error = PROTO_HELLO_REQUIRED}};
    const struct bytes message = bare_encode(&required), parts[] = {message, message, message};
    bare_open();
    send_parts(broker, parts, 3);
    bare_take();
    ck_assert_int_eq(client->state, SESSION_OPEN);
    send_parts(broker, parts, 2);
    send_parts(broker, (const struct bytes[]){BYTES_LITERAL("no message")}, 1);
    client->now += 5;
    bare_take();
    ck_assert_int_eq(client->state, SESSION_OPEN);
    ck_assert_uint_eq(client->heard_ns, client->now); /* there is somebody */
    send_parts(broker, parts, 1);
    bare_take();
    ck_assert_int_eq(client->state, SESSION_HELLO);
}
END_TEST

START_TEST(on_the_stream_a_message_is_a_topic_and_one_part)
{
    void *publisher = zmq_socket(client->context, ZMQ_PUB);
    struct message welcome = {.kind = MESSAGE_WELCOME, .welcome = {7}};
    ck_assert_int_eq(zmq_bind(publisher, "inproc://stream"), 0);
    ck_assert_int_eq(zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session),
                     0);
    ck_assert_int_eq(zmq_connect(client->stream, "inproc://stream"), 0);
    const struct bytes message = bare_encode(&welcome), topic = {&client->session, 16};
    const struct bytes parts[] = {topic, message, message};
    client->nonce = 7;
    client->state = SESSION_JOIN;
    client->now += 5;
    send_parts(publisher, parts, 3);
    send_parts(publisher, parts, 1);
    send_parts(publisher, (const struct bytes[]){topic, BYTES_LITERAL("no message")}, 2);
    send_parts(publisher, (const struct bytes[]){topic, {"", 0}, topic, message}, 4); /* an empty one too */
    bare_take();
    ck_assert_int_eq(client->state, SESSION_JOIN);
    ck_assert_uint_lt(client->heard_ns, client->now);
    send_parts(publisher, parts, 2);
    bare_take();
    ck_assert_int_eq(client->state, SESSION_OPEN);
    ck_assert_uint_eq(client->heard_ns, client->now);
    zmq_close(publisher);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, bare_set_up, bare_tear_down);
    tcase_add_test(tests, of_the_streams_the_first_is_taken_that_is_reached_as_the_broker_is);
    tcase_add_test(tests, a_stream_that_is_none_or_cannot_be_connected_to_ends_the_session_by_name);
    tcase_add_test(tests, a_pool_is_of_our_version_when_the_ranges_meet);
    tcase_add_test(tests, models_and_limits_are_those_of_the_last_hello);
    tcase_add_test(tests, a_welcome_opens_the_session_that_asked_for_it);
    tcase_add_test(tests, a_session_opened_again_goes_on_with_its_requests);
    tcase_add_test(tests, a_session_is_lost_once);
    tcase_add_test(tests, a_hello_that_is_refused_ends_the_session_unless_it_is_asked_again);
    tcase_add_test(tests, a_refusal_concerns_what_was_asked_in_this_state);
    tcase_add_test(tests, an_error_about_a_cancel_settles_it_where_the_request_is_known);
    tcase_add_test(tests, a_cancel_is_acknowledged_once_it_was_said);
    tcase_add_test(tests, an_accepted_request_lives_with_the_newest_epoch_and_the_seed_it_got);
    tcase_add_test(tests, who_asks_for_it_is_told_that_a_request_was_accepted_once);
    tcase_add_test(tests, a_refusal_tells_what_is_left);
    tcase_add_test(tests, how_much_is_read_is_told_of_the_newest_attempt_until_there_is_output);
    tcase_add_test(tests, an_attached_request_is_ours_and_asks_for_what_it_missed);
    tcase_add_test(tests, a_question_hears_no_answer_to_another);
    tcase_add_test(tests, a_message_of_several_parts_is_passed_over);
    tcase_add_test(tests, on_the_stream_a_message_is_a_topic_and_one_part);
}

int main(void)
{
    return run_tests("client incoming", add);
}
