/* SPDX-License-Identifier: MIT */
/* What clients say, and what they are answered: each kind, in each situation. Pages of replays too. */

#include "broker/from_clients.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/run.h"

#include <string.h>
#include <zmq.h>

#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "broker/core/replay.h"
#include "common/clock.h"

#define ck_assert_text(bytes, text)                                                                          \
    ck_assert_msg(bytes_equal(bytes, bytes_of_string(text)), "%.*s", (int)(bytes).len,                       \
                  (const char *)(bytes).data)

/* An error, without an id if `name` is 0. */
static void expect_error(int client, enum message_kind of, uint8_t name, enum proto_error error,
                         const char *text)
{
    struct message no = client_hears(client);
    ck_assert_str_eq(message_kind_name(no.kind), "error");
    ck_assert_str_eq(message_kind_name(no.error.of), message_kind_name(of));
    ck_assert_int_eq(no.error.has_id, name != 0);
    if (name)
        ck_assert_uint_eq(no.error.id.bytes[0], name);
    ck_assert_str_eq(proto_error_name(no.error.error), proto_error_name(error));
    ck_assert_text(no.error.text, text);
    ck_assert_int_eq(client_hears(client).kind, MESSAGE_NONE);
}

static void expect_unknown(int client, enum message_kind of, uint8_t name)
{
    expect_error(client, of, name, PROTO_UNKNOWN_REQUEST, "unknown request, or it ended long ago");
}

static void expect_nothing(int client)
{
    ck_assert_int_eq(client_hears(client).kind, MESSAGE_NONE);
}

/* A request of client 0 that runs. */
static struct request *run(uint8_t name)
{
    struct request *request = inside_admit(0, name, NULL);
    lifecycle_dispatch(broker);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    return request;
}

/* ---- hello ---- */

static struct message hello_of(uint8_t session)
{
    struct message hello = {.kind = MESSAGE_HELLO};
    hello.hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    hello.hello.session = (struct id128){{session}};
    return hello;
}

START_TEST(hello_is_answered_with_what_the_pool_is)
{
    struct message hello = hello_of('a');
    client_says(0, &hello);
    struct message ok = client_hears(0);
    ck_assert_int_eq(ok.kind, MESSAGE_HELLO_OK);
    ck_assert_uint_eq(ok.hello_ok.proto.min, PROTO_VERSION_MIN);
    ck_assert_uint_eq(ok.hello_ok.proto.max, PROTO_VERSION_MAX);
    ck_assert_uint_eq(ok.hello_ok.boot, INSIDE_BOOT);
    ck_assert_uint_eq(ok.hello_ok.lease_ms, SESSION_LEASE_MS);
    ck_assert_uint_eq(ok.hello_ok.limits.request_bytes, PROTO_MAX_REQUEST_BYTES);
    ck_assert_uint_eq(ok.hello_ok.stream.n, 1);
    ck_assert_text(ok.hello_ok.stream.items[0], "inproc://stream");
    ck_assert_uint_eq(ok.hello_ok.models.n, 1);
    ck_assert_text(ok.hello_ok.models.items[0].name, "m");
    ck_assert_uint_eq(ok.hello_ok.models.items[0].workers, 2);
    ck_assert_uint_eq(ok.hello_ok.features.n, 11);
    ck_assert_text(ok.hello_ok.features.items[0], "taken");
    ck_assert_text(ok.hello_ok.features.items[1], "embed");
    ck_assert_text(ok.hello_ok.features.items[2], "document");
    ck_assert_text(ok.hello_ok.features.items[8], "thinking_budget");
    ck_assert_text(ok.hello_ok.features.items[9], "resume");
    ck_assert_text(ok.hello_ok.features.items[10], "tenants");
    ck_assert(!sessions[0]->tells);
}
END_TEST

START_TEST(who_says_that_he_tells_what_he_has_taken_is_believed)
{
    static const struct bytes other = {"other", 5}, both[] = {{"other", 5}, {"taken", 5}};
    struct message hello = hello_of('a');
    hello.hello.features = (struct text_list){both, 2};
    client_says(0, &hello);
    ck_assert(sessions[0]->tells);
    hello.hello.features = (struct text_list){&other, 1};
    client_says(0, &hello);
    ck_assert(!sessions[0]->tells);
}
END_TEST

START_TEST(versions_have_to_meet)
{
    static const struct version_range none[] = {{PROTO_VERSION_MAX + 1, 9}, {0, PROTO_VERSION_MIN - 1}};
    for (int i = 0; i < 2; i++) {
        struct message hello = hello_of('a');
        hello.hello.proto = none[i];
        client_says(0, &hello);
        expect_error(0, MESSAGE_HELLO, 0, PROTO_UNSUPPORTED, "hello: no protocol version in common");
    }
    struct message hello = hello_of('a');
    hello.hello.proto = (struct version_range){0, 9};
    client_says(0, &hello);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_HELLO_OK);
}
END_TEST

START_TEST(who_has_no_session_is_told_to_say_hello)
{
    session_close(&broker->sessions, sessions[0]);
    sessions[0] = NULL;
    client_says(0, &(struct message){.kind = MESSAGE_PING});
    expect_error(0, MESSAGE_PING, 0, PROTO_HELLO_REQUIRED, "expected hello first");
    client_opens(0);
    session_doom(&broker->sessions, sessions[0]); /* nor one whose session ends with this turn */
    client_says(0, &(struct message){.kind = MESSAGE_STATUS});
    expect_error(0, MESSAGE_STATUS, 0, PROTO_HELLO_REQUIRED, "expected hello first");
}
END_TEST

/* ---- what any client may say ---- */

START_TEST(join_is_answered_on_the_stream)
{
    client_says(0, &(struct message){.kind = MESSAGE_JOIN, .join = {77}});
    struct message welcome = client_listens(0);
    ck_assert_int_eq(welcome.kind, MESSAGE_WELCOME);
    ck_assert_uint_eq(welcome.welcome.nonce, 77);
    ck_assert_int_eq(client_listens(1).kind, MESSAGE_NONE);
    expect_nothing(0);
}
END_TEST

START_TEST(a_ping_takes_note_of_what_was_taken)
{
    struct request *first = run('f'), *second = run('s');
    inside_produce(first, 1, END_STOP);
    inside_produce(second, 1, END_STOP);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    const struct bytes taken[] = {{"no id", 5}, {&first->home.id, 16}, {&second->home.id, 16}};
    struct message ping = {.kind = MESSAGE_PING, .ping = {.ref = 9}};
    ping.ping.taken.items = taken;
    ping.ping.taken.n = 3;
    client_says(1, &ping); /* whose they are not */
    ck_assert_uint_eq(client_hears(1).pong.ref, 9);
    ck_assert(first->log.unread && second->log.unread);
    client_says(0, &ping);
    struct message pong = client_hears(0);
    ck_assert_int_eq(pong.kind, MESSAGE_PONG);
    ck_assert_uint_eq(pong.pong.ref, 9);
    ck_assert(!first->log.unread && !second->log.unread);
}
END_TEST

START_TEST(a_pong_tells_the_load_the_slots_and_how_much_caches_keep)
{
    struct message ping = {.kind = MESSAGE_PING, .ping = {.ref = 9, .load = true}};
    uint64_t kept = 0;
    broker->workers[0].cached.believed = 1; /* and was not there */
    for (int w = 0; w < INSIDE_WORKERS; w++)
        kept += hit_estimate_expects(&broker->workers[w].cached, 1000);
    ck_assert_uint_eq(kept, 1999);
    client_says(0, &ping);
    const struct message pong = client_hears(0);
    ck_assert_uint_eq(pong.pong.kept, 999);
    ck_assert_uint_eq(pong.pong.slots, 4 * INSIDE_WORKERS);
    ck_assert_uint_eq(pong.pong.load, 0);
    ck_assert_uint_eq(pong.pong.own, 0);
    ck_assert(!pong.pong.draining);
}
END_TEST

START_TEST(gateways_hear_what_their_tenants_have_through_others)
{
    const struct tenant_use uses[] = {{.id = {{1}}, .requests = 2, .tpm = 0.5}, {.id = {{2}}, .tokens = 7}};
    struct message told = {.kind = MESSAGE_TENANTS, .tenants = {.ref = 4, .tenants = {uses, 2}}};
    struct message asks = {.kind = MESSAGE_TENANTS, .tenants = {.ref = 5}};
    sessions[0]->near = sessions[1]->near = true;
    client_says(0, &told);
    ck_assert_uint_eq(client_hears(0).tenants_ok.tenants.n, 0);
    client_says(1, &asks);
    struct message ok = client_hears(1);
    ck_assert_int_eq(ok.kind, MESSAGE_TENANTS_OK);
    ck_assert_uint_eq(ok.tenants_ok.ref, 5);
    ck_assert_uint_eq(ok.tenants_ok.tenants.n, 2);
    ck_assert_uint_eq(ok.tenants_ok.tenants.items[0].requests, 2);
    ck_assert_double_eq(ok.tenants_ok.tenants.items[0].tpm, 0.5);
    ck_assert_uint_eq(ok.tenants_ok.tenants.items[1].tokens, 7);
    session_doom(&broker->sessions, sessions[0]);
    lifecycle_close_sessions(broker);
    sessions[0] = NULL;
    client_says(1, &asks);
    ck_assert_uint_eq(client_hears(1).tenants_ok.tenants.n, 0);
    sessions[1]->near = false; /* it could be anybody */
    client_says(1, &told);
    expect_error(1, MESSAGE_TENANTS, 0, PROTO_BAD_REQUEST,
                 "tenants: needs a client in the run directory, or with a key");
}
END_TEST

START_TEST(who_says_bye_has_taken_all)
{
    struct request *request = run('r');
    inside_produce(request, 1, END_STOP);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    client_says(0, &(struct message){.kind = MESSAGE_BYE});
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_BYE_OK);
    ck_assert(!request->log.unread);
    ck_assert(sessions[0]->doomed);
}
END_TEST

START_TEST(the_status_bears_the_ref_of_who_asked)
{
    client_says(0, &(struct message){.kind = MESSAGE_STATUS, .status = {.ref = 12}});
    struct message ok = client_hears(0);
    ck_assert_int_eq(ok.kind, MESSAGE_STATUS_OK);
    ck_assert_uint_eq(ok.status_ok.ref, 12);
    ck_assert_uint_eq(ok.status_ok.sessions, 2);
}
END_TEST

START_TEST(a_text_goes_to_a_worker)
{
    struct message question = {.kind = MESSAGE_TOKENIZE, .tokenize = {.ref = 3}};
    question.tokenize.has_text = true;
    question.tokenize.text = BYTES_LITERAL("hi");
    client_says(0, &question);
    expect_nothing(0);
    ck_assert_uint_eq(broker->tokenize.n, 1);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_TOKENIZE);
    question.kind = MESSAGE_DETOKENIZE;
    question.detokenize.ids = (struct id_list){NULL, 0};
    client_says(0, &question);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_DETOKENIZE);
}
END_TEST

START_TEST(what_is_not_for_a_client_to_send_is_refused)
{
    static const enum message_kind kinds[] = {MESSAGE_PONG, MESSAGE_BYE_OK, MESSAGE_WELCOME, MESSAGE_ACK};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        client_says(0, &(struct message){.kind = kinds[i]});
        expect_error(0, kinds[i], 0, PROTO_BAD_REQUEST, "a client may not send this kind of message");
    }
}
END_TEST

/* ---- requests ---- */

static void require_telepathy(struct generation *generation)
{
    static const struct bytes features[] = {{"embed", 5}, {"telepathy", 9}};
    generation->require = (struct text_list){features, 2};
}

static void require_embed(struct generation *generation)
{
    static const struct bytes feature = {"embed", 5};
    generation->require = (struct text_list){&feature, 1};
}

START_TEST(a_request_may_require_what_there_is)
{
    struct message no = client_generates(0, 'r', require_telepathy);
    ck_assert_int_eq(no.error.error, PROTO_UNSUPPORTED);
    ck_assert_text(no.error.text, "generate: require: \"telepathy\" is not supported");
    ck_assert_uint_eq(broker->counters.rejected, 1);
    inside_admit(0, 's', require_embed);
}
END_TEST

/* What cannot be read is refused by the kind and the id, as far as those could be. */
START_TEST(what_is_malformed_is_refused_by_name)
{
    static const char empty[] = "\x84\xa1k\xa8generate\xa2id\xc4\x10r\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
                                "\xa6prompt\xa0\xaamax_tokens\x01";
    client_says_bytes(0, empty, sizeof empty - 1);
    expect_error(0, MESSAGE_GENERATE, 'r', PROTO_BAD_REQUEST, "generate: prompt: is empty");
    client_says_bytes(0, "\xc1", 1);
    expect_error(0, MESSAGE_NONE, 0, PROTO_BAD_REQUEST, "not a msgpack map");
    session_close(&broker->sessions, sessions[0]);
    sessions[0] = NULL;
    client_says_bytes(0, "\xc1", 1); /* strangers too */
    expect_error(0, MESSAGE_NONE, 0, PROTO_BAD_REQUEST, "not a msgpack map");
}
END_TEST

START_TEST(a_cancel_is_the_owners)
{
    struct message cancel = {.kind = MESSAGE_CANCEL};
    struct request *request = run('r');
    cancel.cancel.id = inside_id('x');
    client_says(0, &cancel);
    expect_unknown(0, MESSAGE_CANCEL, 'x');
    cancel.cancel.id = inside_id('r');
    client_says(1, &cancel);
    expect_unknown(1, MESSAGE_CANCEL, 'r');
    ck_assert_int_eq(lifecycle_attach(broker, request, sessions[1]), 0);
    client_says(0, &cancel);
    expect_error(0, MESSAGE_CANCEL, 'r', PROTO_UNKNOWN_REQUEST,
                 "another session has taken over this request");
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    client_says(1, &cancel);
    struct message ok = client_hears(1);
    ck_assert_int_eq(ok.kind, MESSAGE_CANCEL_OK);
    ck_assert_uint_eq(ok.cancel_ok.id.bytes[0], 'r');
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    expect_nothing(1);
    inside_produce(request, 0, END_CANCELLED);
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_END);
    client_says(1, &cancel); /* too late: it hears the end again */
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_CANCEL_OK);
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_END);
}
END_TEST

START_TEST(who_attaches_without_a_session_means_his_own)
{
    struct message attach = {.kind = MESSAGE_ATTACH};
    struct request *request = run('r');
    attach.attach.id = inside_id('r');
    client_says(0, &attach);
    struct message ok = client_hears(0);
    ck_assert_int_eq(ok.kind, MESSAGE_ATTACH_OK);
    ck_assert_ptr_eq(request->session, sessions[0]);
    client_says(1, &attach);
    expect_unknown(1, MESSAGE_ATTACH, 'r');
}
END_TEST

/* ---- replays ---- */

static void ask_again(int client, uint8_t name, uint64_t next)
{
    struct message replay = {.kind = MESSAGE_REPLAY};
    replay.replay.id = inside_id(name);
    replay.replay.next = next;
    client_says(client, &replay);
}

static void expect_page(uint64_t from, uint64_t next, size_t n, bool done)
{
    struct message page = client_hears(0);
    ck_assert_int_eq(page.kind, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.from, from);
    ck_assert_uint_eq(page.replay_ok.next, next);
    ck_assert_uint_eq(page.replay_ok.frames.n, n);
    ck_assert_int_eq(page.replay_ok.done, done);
    ck_assert_uint_eq(page.replay_ok.epoch.boot, INSIDE_BOOT);
}

START_TEST(a_page_begins_where_it_was_asked_for)
{
    struct request *request = run('r');
    for (int i = 0; i < 5; i++)
        inside_produce(request, 2, END_REASON_COUNT);
    ask_again(0, 'r', 0);
    expect_page(0, 10, 5, true);
    ask_again(0, 'r', 4);
    expect_page(4, 10, 3, true);
    ask_again(0, 'r', 10);
    expect_page(10, 10, 0, true);
    ask_again(0, 'x', 0);
    expect_unknown(0, MESSAGE_REPLAY, 'x');
    ask_again(1, 'r', 0);
    expect_unknown(1, MESSAGE_REPLAY, 'r');
    ck_assert(!broker->client_link.retry);
}
END_TEST

START_TEST(what_is_asked_for_again_is_kept_for_as_long_again)
{
    struct request *request = run('r');
    inside_produce(request, 1, END_STOP);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    inside_pass(59 * CLOCK_NS_PER_S);
    ask_again(0, 'r', 0);
    expect_page(0, 1, 1, true);
    inside_pass(59 * CLOCK_NS_PER_S);
    lifecycle_forget(broker);
    ck_assert_ptr_eq(inside_find(0, 'r'), request);
    inside_pass(60 * CLOCK_NS_PER_S);
    lifecycle_forget(broker);
    ck_assert_ptr_null(inside_find(0, 'r'));
}
END_TEST

/* So many bytes of pages in one turn are enough; the rest is owed, each request once. */
START_TEST(pages_beyond_those_of_a_turn_are_owed)
{
    enum { TURN = 4 << 20 };
    struct request *request = run('r');
    run('s');
    inside_produce(request, 2, END_REASON_COUNT);
    broker->paged_bytes = TURN;
    ask_again(0, 'r', 0);
    ask_again(0, 's', 0);
    ask_again(0, 'r', 1); /* what it lacks now */
    expect_nothing(0);
    ck_assert(broker->client_link.retry);
    ck_assert_uint_eq(sessions[0]->n_owed, 2);
    broker->paged_bytes = TURN - 1;
    ask_again(0, 's', 0); /* not before what was asked for earlier */
    expect_nothing(0);
    ck_assert(!replay_send_owed(broker)); /* the next turn */
    expect_page(0, 2, 1, true);
    expect_page(0, 0, 0, true);
    expect_nothing(0);
    ck_assert_ptr_null(broker->sessions.pending);
    broker->paged_bytes = TURN - 1;
    ask_again(0, 'r', 0);
    expect_page(0, 2, 1, true);
}
END_TEST

START_TEST(a_session_that_ends_is_sent_no_page)
{
    struct request *request = run('r');
    inside_produce(request, 2, END_REASON_COUNT);
    broker->paged_bytes = SIZE_MAX;
    ask_again(0, 'r', 0);
    session_doom(&broker->sessions, sessions[0]);
    ck_assert(!replay_send_owed(broker));
    expect_nothing(0);
}
END_TEST

/* The less is left of all that may be under way, the smaller a page: down to a frame. */
START_TEST(pages_get_smaller_as_less_is_left)
{
    struct request *request = run('r');
    for (int i = 0; i < 5; i++)
        inside_produce(request, 2, END_REASON_COUNT);
    const size_t before = atomic_load(&broker->client_link.credit.bytes);
    atomic_store(&broker->client_link.credit.bytes, (size_t)128 << 20);
    ask_again(0, 'r', 0);
    expect_page(0, 2, 1, false);
    atomic_store(&broker->client_link.credit.bytes, (size_t)1 << 40);
    ask_again(0, 'r', 2);
    expect_page(2, 4, 1, false);
    atomic_store(&broker->client_link.credit.bytes, before);
    ask_again(0, 'r', 4);
    expect_page(4, 10, 3, true);
}
END_TEST

/* ---- limits of a tenant, and lists of requests ---- */

static void with_limits(struct generation *generation)
{
    generation->tenant = BYTES_LITERAL("ada");
    generation->rates.rpm = 2;
    generation->request_id = BYTES_LITERAL("r-1");
}

static struct message status_with(uint32_t requests, const char *request_id)
{
    struct message status = {.kind = MESSAGE_STATUS};
    status.status.ref = 7;
    status.status.requests = requests;
    status.status.request_id = bytes_of_string(request_id);
    return status;
}

START_TEST(limits_need_a_client_whom_somebody_answers_for)
{
    sessions[0]->near = false;
    struct message no = client_generates(0, 1, with_limits);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_int_eq(no.error.error, PROTO_BAD_REQUEST);
    ck_assert_text(no.error.text, "rpm, tpm, rpd and tpd need a client in the run directory, or with a key");
}
END_TEST

START_TEST(limits_are_told_when_a_request_is_accepted_and_when_it_is_not)
{
    sessions[0]->near = sessions[1]->near = true;
    struct message ok = client_generates(0, 1, with_limits);
    ck_assert_int_eq(ok.kind, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(ok.accepted.quotas.requests.limit, 2);
    ck_assert_uint_eq(ok.accepted.quotas.requests.remaining, 1);
    ok = client_generates(0, 1, with_limits); /* the same one */
    ck_assert(ok.accepted.again);
    ck_assert_uint_eq(ok.accepted.quotas.requests.remaining, 1);
    ck_assert_int_eq(client_generates(1, 2, with_limits).kind, MESSAGE_ACCEPTED); /* another session's */
    struct message no = client_generates(0, 3, with_limits);
    ck_assert_int_eq(no.error.error, PROTO_OVERLOADED);
    ck_assert_uint_eq(no.error.quotas.requests.limit, 2);
    ck_assert_uint_eq(no.error.quotas.requests.remaining, 0);
    ck_assert_uint_ge(no.error.retry_after_ms, 29000);
    inside_pass(31 * CLOCK_NS_PER_S);
    client_opens(0);
    sessions[0]->near = true;
    ck_assert_int_eq(client_generates(0, 3, with_limits).kind, MESSAGE_ACCEPTED);
}
END_TEST

START_TEST(requests_are_listed_to_those_whom_they_concern)
{
    sessions[0]->near = sessions[1]->near = true;
    inside_admit(0, 1, with_limits);
    lifecycle_dispatch(broker);
    inside_admit(0, 2, NULL);
    struct message status = status_with(10, "");
    client_says(1, &status);
    struct message ok = client_hears(1);
    ck_assert_int_eq(ok.kind, MESSAGE_STATUS_OK);
    ck_assert_uint_eq(ok.status_ok.requests.n, 2);
    const struct request_status *first = &ok.status_ok.requests.items[0];
    ck_assert_text(first->request_id, "r-1");
    ck_assert_text(first->state, "running");
    ck_assert_uint_eq(first->id.len, 32);
    ck_assert_text(ok.status_ok.requests.items[1].state, "queued");
    status = status_with(1, "");
    client_says(1, &status);
    ck_assert_uint_eq(client_hears(1).status_ok.requests.n, 1);
    status = status_with(10, "r-2");
    client_says(1, &status);
    ck_assert_uint_eq(client_hears(1).status_ok.requests.n, 0);
    status = status_with(0, "");
    client_says(1, &status);
    ck_assert_uint_eq(client_hears(1).status_ok.requests.n, 0);
    sessions[0]->near = sessions[1]->near = false;
    status = status_with(10, "");
    client_says(1, &status);
    ck_assert_uint_eq(client_hears(1).status_ok.requests.n, 0);
    client_says(0, &status);
    ck_assert_uint_eq(client_hears(0).status_ok.requests.n, 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, inside_set_up, inside_tear_down);
    tcase_add_test(tests, limits_need_a_client_whom_somebody_answers_for);
    tcase_add_test(tests, limits_are_told_when_a_request_is_accepted_and_when_it_is_not);
    tcase_add_test(tests, requests_are_listed_to_those_whom_they_concern);
    tcase_add_test(tests, hello_is_answered_with_what_the_pool_is);
    tcase_add_test(tests, who_says_that_he_tells_what_he_has_taken_is_believed);
    tcase_add_test(tests, versions_have_to_meet);
    tcase_add_test(tests, who_has_no_session_is_told_to_say_hello);
    tcase_add_test(tests, join_is_answered_on_the_stream);
    tcase_add_test(tests, a_ping_takes_note_of_what_was_taken);
    tcase_add_test(tests, a_pong_tells_the_load_the_slots_and_how_much_caches_keep);
    tcase_add_test(tests, gateways_hear_what_their_tenants_have_through_others);
    tcase_add_test(tests, who_says_bye_has_taken_all);
    tcase_add_test(tests, the_status_bears_the_ref_of_who_asked);
    tcase_add_test(tests, a_text_goes_to_a_worker);
    tcase_add_test(tests, what_is_not_for_a_client_to_send_is_refused);
    tcase_add_test(tests, a_request_may_require_what_there_is);
    tcase_add_test(tests, what_is_malformed_is_refused_by_name);
    tcase_add_test(tests, a_cancel_is_the_owners);
    tcase_add_test(tests, who_attaches_without_a_session_means_his_own);
    tcase_add_test(tests, a_page_begins_where_it_was_asked_for);
    tcase_add_test(tests, what_is_asked_for_again_is_kept_for_as_long_again);
    tcase_add_test(tests, pages_beyond_those_of_a_turn_are_owed);
    tcase_add_test(tests, a_session_that_ends_is_sent_no_page);
    tcase_add_test(tests, pages_get_smaller_as_less_is_left);
}

int main(void)
{
    return run_tests("broker/from_clients", add);
}
