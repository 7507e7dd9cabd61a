/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: clients that leave, attach, stay silent or do not read. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"

START_TEST(a_peer_without_a_session_is_told_to_say_hello)
{
    open_pool(NULL);
    client_connect(&client_b, &the_pool);
    client_generate(&client_b, 'r', "count 1", NULL);
    ck_assert_int_eq(expect_error(&client_b), PROTO_HELLO_REQUIRED);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(nobody_hears_sessions_that_he_cannot_name)
{
    uint64_t count;
    open_pool(NULL);
    client_connect(&client_b, &the_pool);
    zmq_setsockopt(client_b.stream, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(client_b.stream, ZMQ_SUBSCRIBE, "aaaa", 4);
    zmq_setsockopt(client_b.stream, ZMQ_SUBSCRIBE, "aaaaaaaaaaaaaaa", 15);
    client_begin(&client_b, 'b'); /* the broker has read all of that */
    client_generate(&client_a, 'r', "count 10", NULL);
    client_read(&client_a, 'r', &count, NULL);
    struct message next; /* a second welcome, perhaps */
    while ((next = client_frame(&client_b, 200)).kind != MESSAGE_NONE)
        ck_assert_int_eq(next.kind, MESSAGE_WELCOME);
    client_close(&client_b);
    close_pool();
}
END_TEST

static void keep(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 30;
}

static void keep_briefly(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 1;
}

START_TEST(nobody_else_hears_or_takes_over_what_a_session_left_when_it_ended)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_a, 'r', "wait", keep_briefly);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    zmq_setsockopt(client_b.stream, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(client_b.stream, ZMQ_SUBSCRIBE, "aaaaaaaaaaaaaaa", 15);
    struct message bye = {.kind = MESSAGE_BYE}, replay = named(MESSAGE_REPLAY, 'r');
    struct message attach = named(MESSAGE_ATTACH, 'r'), cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client_a, &bye);
    client_expect(&client_a, MESSAGE_BYE_OK);
    client_a.open = false;
    /* The request's id alone is no key to it, whatever is asked. */
    client_send(&client_b, &replay);
    ck_assert_int_eq(expect_error(&client_b), PROTO_UNKNOWN_REQUEST);
    client_send(&client_b, &attach);
    ck_assert_int_eq(expect_error(&client_b), PROTO_UNKNOWN_REQUEST);
    client_send(&client_b, &cancel);
    ck_assert_int_eq(expect_error(&client_b), PROTO_UNKNOWN_REQUEST);
    /* Its end goes to who still listens to the session, and to nobody else. */
    struct message last = client_frame(&client_a, 30000);
    while (last.kind == MESSAGE_WELCOME)
        last = client_frame(&client_a, 30000);
    ck_assert_int_eq(last.kind, MESSAGE_FRAME);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_frame(&client_b, 200).kind, MESSAGE_NONE);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_client_that_leaves_has_its_requests_cancelled_or_kept_as_they_asked)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 'c', "wait", NULL);
    client_generate(&client_b, 'k', "count 20", keep);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    struct id128 session = client_b.session;
    client_close(&client_b);
    client_await_idle(&client_a, 1);
    struct message attach = named(MESSAGE_ATTACH, 'c');
    attach.attach.session = session;
    client_send(&client_a, &attach);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_ATTACH_OK).attach_ok.next, 1);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    attach = named(MESSAGE_ATTACH, 'k');
    attach.attach.session = session;
    client_send(&client_a, &attach);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_ATTACH_OK).attach_ok.next, 20);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(an_attached_request_streams_to_its_new_session)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 'k', "wait", keep);
    ck_assert_uint_eq(client_frame(&client_b, 30000).frame.ids.n, 1);
    struct message attach = named(MESSAGE_ATTACH, 'k');
    attach.attach.session = client_b.session;
    client_send(&client_a, &attach);
    client_expect(&client_a, MESSAGE_ATTACH_OK);
    client_send(&client_a, &attach); /* said twice, and answered twice */
    client_expect(&client_a, MESSAGE_ATTACH_OK);
    struct message cancel = named(MESSAGE_CANCEL, 'k');
    client_send(&client_b, &cancel); /* it is no longer the old session's */
    ck_assert_int_eq(expect_error(&client_b), PROTO_UNKNOWN_REQUEST);
    ck_assert_int_eq(client_frame(&client_a, 100).kind, MESSAGE_NONE);
    client_send(&client_a, &cancel);
    struct message last = client_frame(&client_a, 30000);
    ck_assert_int_eq(last.kind, MESSAGE_FRAME);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(client_frame(&client_b, 100).kind, MESSAGE_NONE);
    client_close(&client_b);
    close_pool();
}
END_TEST

/* Waits until the pool has so many sessions; only `client_b`, who asks, gives signs of life. */
static void await_sessions(uint32_t sessions)
{
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (client_status(&client_b).status_ok.sessions != sessions) {
        ck_assert_uint_lt(clock_ns(), until);
        usleep(100000);
    }
}

static uint32_t n_running(void)
{
    return client_status(&client_b).status_ok.running;
}

START_TEST(a_client_that_was_stopped_finds_its_request_running_though_its_lease_is_over)
{
    open_pool(NULL);
    client_generate(&client_a, 'r', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_open(&client_b, &the_pool, 'b');
    await_sessions(1);
    struct message ping = {.kind = MESSAGE_PING}, cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client_a, &ping);
    ck_assert_int_eq(expect_error(&client_a), PROTO_HELLO_REQUIRED);
    ck_assert_uint_eq(n_running(), 1);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client_a.session}};
    client_send(&client_a, &hello);
    client_expect(&client_a, MESSAGE_HELLO_OK);
    client_send(&client_a, &cancel);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_stream_that_is_lost_and_comes_back_ends_nothing)
{
    char endpoint[POOL_ENDPOINT_MAX];
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_a, 'r', "wait", NULL);
    ck_assert_uint_eq(client_frame(&client_a, 30000).frame.ids.n, 1);
    ck_assert_int_eq(zmq_disconnect(client_a.stream, pool_endpoint(&the_pool, "stream", endpoint)), 0);
    for (int turns = 0; turns < 50; turns++) /* in one of them the broker sees it */
        ck_assert_uint_eq(client_status(&client_a).status_ok.sessions, 2);
    ck_assert_uint_eq(n_running(), 1);
    ck_assert_int_eq(zmq_connect(client_a.stream, endpoint), 0); /* and subscribes by itself */
    client_join(&client_a);
    struct message cancel = named(MESSAGE_CANCEL, 'r');
    client_send(&client_a, &cancel);
    struct message last = client_frame(&client_a, 30000);
    ck_assert(last.kind == MESSAGE_FRAME && last.frame.has_end);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_stopped_client_that_is_killed_has_left)
{
    int linger = 0;
    open_pool(NULL);
    client_generate(&client_a, 'r', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_open(&client_b, &the_pool, 'b');
    await_sessions(1);
    ck_assert_uint_eq(n_running(), 1);
    zmq_close(client_a.stream);
    uint64_t closed = clock_ns();
    client_await_idle(&client_b, 1);
    ck_assert_uint_lt(clock_ns() - closed, 10 * CLOCK_NS_PER_S); /* the grace would last for longer */
    client_a.stream = zmq_socket(client_a.context, ZMQ_SUB);     /* for its end */
    zmq_setsockopt(client_a.stream, ZMQ_LINGER, &linger, sizeof linger);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_client_that_says_bye_has_left_though_it_still_listens)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_a, 'r', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    struct message bye = {.kind = MESSAGE_BYE};
    client_send(&client_a, &bye);
    client_expect(&client_a, MESSAGE_BYE_OK);
    uint64_t left = clock_ns();
    client_await_idle(&client_b, 1);
    ck_assert_uint_lt(clock_ns() - left, 10 * CLOCK_NS_PER_S); /* a grace would last for longer */
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_silent_session_that_listens_to_nothing_is_cancelled_with_its_lease)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    struct client mute;
    client_connect(&mute, &the_pool);
    memset(&mute.session, 'm', sizeof mute.session);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = mute.session}};
    client_send(&mute, &hello);
    client_generate(&mute, 'r', "wait", NULL);
    client_expect(&mute, MESSAGE_ACCEPTED);
    await_sessions(1);
    uint64_t closed = clock_ns();
    client_await_idle(&client_b, 1);
    ck_assert_uint_lt(clock_ns() - closed, 10 * CLOCK_NS_PER_S); /* the grace would last for longer */
    client_close(&mute);
    client_close(&client_b);
    close_pool();
}
END_TEST

static void keep_a_second(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 1;
}

START_TEST(a_kept_request_is_cancelled_when_its_time_is_up)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 'k', "wait", keep_a_second);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    uint64_t started = clock_ns();
    struct message bye = {.kind = MESSAGE_BYE};
    client_send(&client_b, &bye);
    client_expect(&client_b, MESSAGE_BYE_OK);
    client_await_idle(&client_a, 1);
    ck_assert_uint_ge(clock_ns() - started, CLOCK_NS_PER_S);
    client_close(&client_b);
    close_pool();
}
END_TEST

enum { KEPT_S = 2 };
#define SLACK_NS (200 * CLOCK_NS_PER_MS) /* two turns of the broker's timers */

static void keep_two_seconds(struct generation *generation)
{
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = KEPT_S;
}

/* Nobody is to blame for the time in which the broker itself stood still. */
START_TEST(a_kept_request_has_its_time_though_the_broker_was_stopped)
{
    struct message bye = {.kind = MESSAGE_BYE};
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    const pid_t broker = pool_broker_pid(&the_pool); /* to look for it takes of the two seconds */
    client_generate(&client_a, 'r', "wait", keep_two_seconds);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    const uint64_t left = clock_ns();
    client_send(&client_a, &bye);
    client_expect(&client_a, MESSAGE_BYE_OK);
    kill(broker, SIGSTOP);
    const uint64_t stopped = clock_ns();
    while (clock_ns() <= stopped + KEPT_S * CLOCK_NS_PER_S)
        usleep(10000);
    const uint64_t continued = clock_ns();
    kill(broker, SIGCONT);
    client_await_idle(&client_b, 1);
    ck_assert_uint_ge(clock_ns() - continued + (stopped - left) + SLACK_NS, KEPT_S * CLOCK_NS_PER_S);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_client_that_does_not_read_slows_nobody_and_can_replay)
{
    uint64_t count;
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 's', "count 30000", NULL); /* and reads nothing */
    client_expect(&client_b, MESSAGE_ACCEPTED);
    client_generate(&client_a, 'r', "count 1000", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(client_expect(&client_b, MESSAGE_END).end.count, 30000);
    struct message replay = named(MESSAGE_REPLAY, 's');
    replay.replay.next = 29999;
    client_send(&client_b, &replay);
    struct message page = client_expect(&client_b, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.next, 30000);
    ck_assert(page.replay_ok.done);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_page_asked_for_by_a_client_that_does_not_read_comes_when_it_does)
{
    enum { QUESTIONS = 4000 }; /* their answers fill both pipes and the outbox behind them */
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'r', "count 1000", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    struct message question = {.kind = MESSAGE_STATUS}, replay = named(MESSAGE_REPLAY, 'r');
    for (int i = 0; i < QUESTIONS; i++)
        client_send(&client_a, &question);
    client_send(&client_a, &replay);
    replay.replay.next = 500; /* asked again: what it lacks now counts, and one page comes */
    client_send(&client_a, &replay);
    replay = named(MESSAGE_REPLAY, 'x');
    client_send(&client_a, &replay);
    client_generate(&client_a, 'l', "count 1", NULL); /* when this is admitted, all of it was taken */
    client_open(&client_b, &the_pool, 'b');
    while (client_status(&client_b).status_ok.admitted < 2)
        usleep(20000);
    client_close(&client_b);
    ck_assert_int_eq(expect_error(&client_a), PROTO_UNKNOWN_REQUEST); /* that needs no page */
    struct message page = client_expect(&client_a, MESSAGE_REPLAY_OK);
    if (page.replay_ok.from == 0) /* it was asked for before all was full */
        page = client_expect(&client_a, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.from, 500);
    ck_assert_uint_eq(page.replay_ok.next, 1000);
    ck_assert(page.replay_ok.done);
    close_pool();
}
END_TEST

START_TEST(beyond_what_the_journal_can_hold_requests_are_told_when_to_come_back)
{
    enum { REQUESTS = 6000 };
    unsigned accepted = 0, overloaded = 0;
    open_pool("--journal", "16", NULL);
    for (unsigned i = 0; i < REQUESTS; i++) {
        struct message generate = {.kind = MESSAGE_GENERATE};
        memcpy(&generate.generate.id, &i, sizeof i);
        generation_defaults(&generate.generate.generation);
        generate.generate.generation.prompt.text = BYTES_LITERAL("wait");
        client_send(&client_a, &generate);
    }
    while (accepted + overloaded < REQUESTS) {
        struct message message = client_next(&client_a);
        accepted += message.kind == MESSAGE_ACCEPTED;
        if (message.kind != MESSAGE_ERROR)
            continue;
        ck_assert_int_eq(message.error.error, PROTO_OVERLOADED);
        ck_assert_uint_ge(message.error.retry_after_ms, 100);
        overloaded++;
    }
    ck_assert_uint_gt(accepted, 300); /* half of the eighth of it that waits */
    ck_assert_uint_lt(accepted, 600);
    ck_assert_uint_gt(overloaded, 100);
    struct message status = client_status(&client_a);
    ck_assert_uint_le(status.status_ok.journal_bytes, 16 << 20);
    ck_assert_uint_eq(status.status_ok.rejected, overloaded);
    close_pool();
}
END_TEST

static void within_a_moment(struct generation *generation)
{
    generation->deadline_ms = 300;
}

START_TEST(a_client_that_loses_one_of_its_connections_keeps_what_runs)
{
    char endpoint[POOL_ENDPOINT_MAX];
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_generate(&client_a, 'd', "wait", within_a_moment); /* whose end cannot be told */
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_a.open = false; /* it cannot ping */
    ck_assert_int_eq(zmq_disconnect(client_a.control, pool_endpoint(&the_pool, "frontend", endpoint)), 0);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_DEADLINE);
    ck_assert_int_eq(zmq_connect(client_a.control, pool_endpoint(&the_pool, "frontend", endpoint)), 0);
    client_a.open = true;
    client_tells(&client_a);
    while (client_status(&client_a).status_ok.running >
           1) /* the other one ends here when its worker says so */
        usleep(20000);
    ck_assert_uint_eq(client_status(&client_a).status_ok.running, 1);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client_a, &cancel);
    client_expect(&client_a, MESSAGE_END);
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_client_that_loses_one_of_its_connections_keeps_what_runs);
    tcase_add_test(tests, a_peer_without_a_session_is_told_to_say_hello);
    tcase_add_test(tests, nobody_hears_sessions_that_he_cannot_name);
    tcase_add_test(tests, nobody_else_hears_or_takes_over_what_a_session_left_when_it_ended);
    tcase_add_test(tests, a_client_that_leaves_has_its_requests_cancelled_or_kept_as_they_asked);
    tcase_add_test(tests, an_attached_request_streams_to_its_new_session);
    tcase_add_test(tests, a_client_that_was_stopped_finds_its_request_running_though_its_lease_is_over);
    tcase_add_test(tests, a_stream_that_is_lost_and_comes_back_ends_nothing);
    tcase_add_test(tests, a_stopped_client_that_is_killed_has_left);
    tcase_add_test(tests, a_client_that_says_bye_has_left_though_it_still_listens);
    tcase_add_test(tests, a_silent_session_that_listens_to_nothing_is_cancelled_with_its_lease);
    tcase_add_test(tests, a_kept_request_is_cancelled_when_its_time_is_up);
    tcase_add_test(tests, a_kept_request_has_its_time_though_the_broker_was_stopped);
    tcase_add_test(tests, a_client_that_does_not_read_slows_nobody_and_can_replay);
    tcase_add_test(tests, a_page_asked_for_by_a_client_that_does_not_read_comes_when_it_does);
    tcase_add_test(tests, beyond_what_the_journal_can_hold_requests_are_told_when_to_come_back);
}

int main(void)
{
    return run_tests("broker process: clients", add);
}
