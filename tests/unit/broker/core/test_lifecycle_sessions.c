/* SPDX-License-Identifier: MIT */
/* Sessions that come and go, and what becomes of their requests. */

#include "broker/core/lifecycle.h"
#include "broker/core/lifecycle_sessions.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/run.h"

#include <string.h>

#include "common/clock.h"

#define S     CLOCK_NS_PER_S
#define LEASE (SESSION_LEASE_MS * CLOCK_NS_PER_MS)
#define GRACE (SESSION_GRACE_MS * CLOCK_NS_PER_MS)

static void keep_for_seven_seconds(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 7;
}

/* A request of client 0 that runs. */
static struct request *run(uint8_t name, void (*change)(struct generation *))
{
    struct request *request = inside_admit(0, name, change);
    lifecycle_dispatch(broker);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    return request;
}

/* Client 0 is silent for so long; the other is not. */
static void be_silent(uint64_t ns)
{
    broker->now += ns;
    session_renew(sessions[1], broker->now);
    lifecycle_close_sessions(broker);
}

static void lose_session(void)
{
    be_silent(sessions[0]->lease_until - broker->now);
    sessions[0] = NULL;
    ck_assert_uint_eq(broker->sessions.n, 1);
}

/* The stream no longer has a listener of client 0. */
static void be_deaf(void)
{
    client_listens_no_more(0);
    ck_assert(!stream_has_listener(&broker->stream, &(struct id128){{'a'}}));
}

START_TEST(a_silent_session_is_closed_when_its_lease_is_over)
{
    be_silent(LEASE - 1);
    ck_assert_uint_eq(broker->sessions.n, 2);
    be_silent(1);
    ck_assert_uint_eq(broker->sessions.n, 1);
    sessions[0] = NULL;
    ck_assert_ptr_null(session_find(&broker->sessions, &(struct id128){{'a'}}));
}
END_TEST

START_TEST(any_word_renews_the_lease)
{
    be_silent(LEASE - 1);
    client_says(0, &(struct message){.kind = MESSAGE_PING});
    be_silent(LEASE - 1);
    ck_assert_uint_eq(broker->sessions.n, 2);
}
END_TEST

START_TEST(what_asked_to_be_kept_is_kept_for_so_long)
{
    struct request *request = run('k', keep_for_seven_seconds);
    lose_session();
    ck_assert_ptr_null(request->session);
    ck_assert_uint_eq(request->abandoned_until, broker->now + 7 * S);
    be_silent(7 * S - 1);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    be_silent(1);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    ck_assert_uint_eq(request->abandoned_until, UINT64_MAX); /* once */
}
END_TEST

START_TEST(who_is_silent_but_still_listens_has_a_grace)
{
    struct request *request = run('r', NULL);
    lose_session();
    be_silent(GRACE - 1);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    be_silent(1);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
}
END_TEST

START_TEST(who_is_silent_and_does_not_listen_has_none)
{
    struct request *request = run('r', NULL);
    be_deaf();
    lose_session();
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
}
END_TEST

START_TEST(who_says_bye_has_left_though_he_listens)
{
    struct request *request = run('r', NULL), *kept = run('k', keep_for_seven_seconds);
    client_says(0, &(struct message){.kind = MESSAGE_BYE});
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_BYE_OK);
    ck_assert(sessions[0]->doomed);
    ck_assert_int_eq(request->state, REQUEST_RUNNING); /* until the turn is over */
    be_silent(0);
    sessions[0] = NULL;
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    ck_assert_int_eq(kept->state, REQUEST_RUNNING);
    ck_assert_uint_eq(broker->sessions.n, 1);
}
END_TEST

START_TEST(who_cannot_be_sent_to_but_listens_has_a_grace)
{
    struct request *request = run('r', NULL);
    sessions[0]->unreachable = true;
    session_doom(&broker->sessions, sessions[0]);
    be_silent(0);
    sessions[0] = NULL;
    ck_assert_uint_eq(request->abandoned_until, broker->now + GRACE);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
}
END_TEST

START_TEST(who_comes_back_has_again_what_is_his_and_nothing_else)
{
    struct request *request = run('r', NULL);
    lose_session();
    client_opens(0);
    ck_assert_ptr_eq(request->session, sessions[0]);
    ck_assert_uint_eq(request->abandoned_until, 0);
    inside_pass(GRACE);
    lifecycle_close_sessions(broker);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
}
END_TEST

/* Lists of what was abandoned are shared by sessions. */
START_TEST(of_a_list_that_is_shared_nobody_takes_what_is_anothers)
{
    struct request foreign = {.current.session = {{'z'}}, .abandoned_until = 1};
    foreign.session_prev = &foreign;
    for (size_t i = 0; i < SESSION_ABANDONED_LISTS; i++)
        broker->sessions.abandoned[i] = &foreign;
    lifecycle_adopt(broker, sessions[0]);
    ck_assert_ptr_null(foreign.session);
    foreign.abandoned_until = broker->now + 5;
    lifecycle_left(broker, &(struct id128){{'q'}});
    ck_assert_uint_eq(foreign.abandoned_until, broker->now + 5);
    memset(broker->sessions.abandoned, 0, sizeof broker->sessions.abandoned);
}
END_TEST

START_TEST(who_listens_no_more_is_asked_and_given_a_lease)
{
    struct request *request = run('r', NULL);
    be_deaf();
    ck_assert_uint_eq(sessions[0]->deaf_since, broker->now);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_PONG); /* which fails if nobody is there */
    inside_pass(LEASE - 1);
    lifecycle_watch_deaf(broker);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_PONG);
    ck_assert(!sessions[0]->doomed);
    inside_pass(1);
    lifecycle_watch_deaf(broker);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
    ck_assert(sessions[0]->doomed);
    lifecycle_watch_deaf(broker);
    lifecycle_close_sessions(broker);
    sessions[0] = NULL;
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
}
END_TEST

START_TEST(who_listens_again_is_deaf_no_more)
{
    run('r', NULL);
    be_deaf();
    client_listens_again(0);
    inside_pass(LEASE);
    lifecycle_watch_deaf(broker);
    ck_assert_uint_eq(sessions[0]->deaf_since, 0);
    ck_assert(!sessions[0]->doomed);
}
END_TEST

START_TEST(who_listens_no_more_after_his_session_closed_has_left)
{
    struct request *request = run('r', NULL), *kept = run('k', keep_for_seven_seconds);
    lose_session();
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    be_deaf();
    ck_assert_uint_eq(request->abandoned_until, broker->now);
    be_silent(0);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    ck_assert_int_eq(kept->state, REQUEST_RUNNING);
}
END_TEST

/* ---- attaching ---- */

/* Client 1 attaches to what client 0 asked for. */
static struct message attach(uint8_t name)
{
    struct message message = {.kind = MESSAGE_ATTACH};
    message.attach.session = (struct id128){{'a'}};
    message.attach.id = inside_id(name);
    client_says(1, &message);
    return client_hears(1);
}

START_TEST(an_attached_request_is_the_other_sessions)
{
    struct request *request = run('r', NULL);
    inside_produce(request, 2, END_REASON_COUNT);
    struct message ok = attach('r');
    ck_assert_int_eq(ok.kind, MESSAGE_ATTACH_OK);
    ck_assert_uint_eq(ok.attach_ok.id.bytes[0], 'r');
    ck_assert_uint_eq(ok.attach_ok.next, 2);
    ck_assert_uint_eq(ok.attach_ok.epoch.boot, INSIDE_BOOT);
    ck_assert_ptr_eq(request->session, sessions[1]);
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_NONE);
    ck_assert_int_eq(attach('r').kind, MESSAGE_ATTACH_OK); /* again is the same */
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 2);
    inside_produce(request, 3, END_REASON_COUNT);
    ck_assert_int_eq(client_listens(0).kind, MESSAGE_NONE);
    ck_assert_uint_eq(client_listens(1).frame.ids.n, 3);
    lose_session(); /* which has nothing to do with it any more */
    be_silent(GRACE);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    inside_produce(request, 0, END_STOP);
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_END);
    ck_assert_int_eq(attach('r').kind, MESSAGE_ATTACH_OK); /* what has ended, too, with its end */
    ck_assert_int_eq(client_hears(1).kind, MESSAGE_END);
    ck_assert_ptr_null(request->session);
}
END_TEST

START_TEST(two_requests_of_one_id_have_not_one_session)
{
    struct request *request = run('r', NULL);
    inside_admit(1, 'r', NULL);
    struct message no = attach('r');
    ck_assert_int_eq(no.error.error, PROTO_CONFLICT);
    ck_assert_int_eq(no.error.of, MESSAGE_ATTACH);
    ck_assert_ptr_eq(request->session, sessions[0]);
    ck_assert_int_eq(attach('x').error.error, PROTO_UNKNOWN_REQUEST);
}
END_TEST

/* ---- keys ---- */

START_TEST(sessions_count_for_their_keys_as_long_as_they_have_them)
{
    static struct client_key first, second;
    first = (struct client_key){.number = 5, .bytes = {50}};
    second = (struct client_key){.number = 6, .bytes = {60}};
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof first.number, &first);
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof second.number, &second);
    lifecycle_enter_key(broker, sessions[0], 5);
    lifecycle_enter_key(broker, sessions[1], 5);
    ck_assert_uint_eq(first.sessions, 2);
    ck_assert_uint_eq(sessions[0]->key, 5);
    ck_assert_uint_eq(sessions[0]->client.bytes[0], 50);
    lifecycle_enter_key(broker, sessions[0], 6);
    ck_assert_uint_eq(first.sessions, 1);
    ck_assert_uint_eq(second.sessions, 1);
    lifecycle_enter_key(broker, sessions[0], 7); /* which there is not */
    ck_assert_uint_eq(second.sessions, 0);
    ck_assert_uint_eq(sessions[0]->key, 0);
    lifecycle_enter_key(broker, sessions[0], 6);
    lose_session();
    ck_assert_uint_eq(second.sessions, 0);
    ck_assert_uint_eq(first.sessions, 1);
    client_opens(0);
    lifecycle_keys_gone(broker);
    ck_assert(!broker->sessions.any_doomed);
    HASH_CLEAR(by_number, broker->client_keys.by_number);
    lifecycle_keys_gone(broker);
    ck_assert(sessions[1]->doomed);
    ck_assert(!sessions[0]->doomed); /* it needs none */
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, inside_set_up, inside_tear_down);
    tcase_add_test(tests, a_silent_session_is_closed_when_its_lease_is_over);
    tcase_add_test(tests, any_word_renews_the_lease);
    tcase_add_test(tests, what_asked_to_be_kept_is_kept_for_so_long);
    tcase_add_test(tests, who_is_silent_but_still_listens_has_a_grace);
    tcase_add_test(tests, who_is_silent_and_does_not_listen_has_none);
    tcase_add_test(tests, who_says_bye_has_left_though_he_listens);
    tcase_add_test(tests, who_cannot_be_sent_to_but_listens_has_a_grace);
    tcase_add_test(tests, who_comes_back_has_again_what_is_his_and_nothing_else);
    tcase_add_test(tests, of_a_list_that_is_shared_nobody_takes_what_is_anothers);
    tcase_add_test(tests, who_listens_no_more_is_asked_and_given_a_lease);
    tcase_add_test(tests, who_listens_again_is_deaf_no_more);
    tcase_add_test(tests, who_listens_no_more_after_his_session_closed_has_left);
    tcase_add_test(tests, an_attached_request_is_the_other_sessions);
    tcase_add_test(tests, two_requests_of_one_id_have_not_one_session);
    tcase_add_test(tests, sessions_count_for_their_keys_as_long_as_they_have_them);
}

int main(void)
{
    return run_tests("broker/lifecycle_sessions", add);
}
