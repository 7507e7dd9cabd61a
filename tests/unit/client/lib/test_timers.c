/* SPDX-License-Identifier: MIT */
/* When libquern says something by itself, and when it gives up: on a clock that the test sets. */

#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>

#include "client/lib/incoming.h"
#include "client/lib/loop.h"
#include "client/lib/question.h"
#include "client/lib/requests/request.h"
#include "client/lib/session.h"
#include "client/lib/requests/stream.h"

#define S  CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

/* Its timers, so much later, with a broker that was heard. */
static void pass(uint64_t ns)
{
    client->now += ns;
    client->heard_ns = client->now;
    session_timers(client);
    requests_timers(client);
    questions_timers(client);
}

/* Nothing is said before so much time has passed, and then this. */
#define ck_assert_says_after(ns, what)                                                                       \
    do {                                                                                                     \
        pass((ns)-1);                                                                                        \
        ck_assert_says_none();                                                                               \
        pass(1);                                                                                             \
        ck_assert_says(what);                                                                                \
    } while (0)

/* ---- the session ---- */

START_TEST(hello_is_said_each_second)
{
    for (int i = 0; i < 3; i++)
        ck_assert_says_after(1 * S, MESSAGE_HELLO);
    ck_assert_says_none();
}
END_TEST

START_TEST(a_join_is_repeated_after_twice_as_long_each_time_up_to_a_second)
{
    static const uint64_t waits_ms[] = {20, 40, 80, 160, 320, 640, 1000, 1000, 1000};
    const struct bytes stream = BYTES_LITERAL("inproc://stream");
    struct message ok = {.kind = MESSAGE_HELLO_OK};
    ok.hello_ok.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    ok.hello_ok.stream = (struct text_list){&stream, 1};
    session_hello_ok(client, &ok);
    ck_assert_says(MESSAGE_JOIN);
    for (size_t i = 0; i < sizeof waits_ms / sizeof *waits_ms; i++)
        ck_assert_says_after(waits_ms[i] * MS, MESSAGE_JOIN);
    /* Opened again, it begins anew. */
    session_lost(client);
    ck_assert_says(MESSAGE_HELLO);
    session_hello_ok(client, &ok);
    ck_assert_says(MESSAGE_JOIN);
    ck_assert_says_after(20 * MS, MESSAGE_JOIN);
}
END_TEST

START_TEST(an_open_session_pings_each_second)
{
    bare_open();
    ck_assert_says_none();
    for (int i = 0; i < 3; i++)
        ck_assert_says_after(1 * S, MESSAGE_PING);
}
END_TEST

static void take(enum request_state state)
{
    const struct request request = {.id = state_random_id(), .state = state};
    state_note_taken(client, &request);
}

START_TEST(what_was_taken_is_told_within_a_tenth_of_a_second)
{
    bare_open();
    take(REQUEST_LIVE);
    pass(50 * MS);
    take(REQUEST_LIVE);
    pass(50 * MS - 1);
    ck_assert_says_none();
    pass(1);
    ck_assert_uint_eq(bare_next().ping.taken.n, 2);
    pass(900 * MS);
    ck_assert_says_none(); /* it was a ping: the next one is due a second after it */
    pass(100 * MS);
    ck_assert_uint_eq(bare_next().ping.taken.n, 0);
}
END_TEST

START_TEST(what_the_broker_never_had_is_not_told)
{
    bare_open();
    take(REQUEST_NEW);
    take(REQUEST_SENT);
    take(REQUEST_ATTACHING);
    pass(500 * MS);
    ck_assert_says_none();
}
END_TEST

/* A ping has room for so many; they are sent as soon as there are. */
START_TEST(many_that_were_taken_are_told_at_once_and_each_once)
{
    enum { FULL = TAKEN_AT_ONCE, MORE = 44 };
    bare_open();
    for (int i = 0; i < FULL - 1; i++)
        take(REQUEST_LIVE);
    pass(1);
    ck_assert_says_none();
    take(REQUEST_LIVE);
    const struct id128 first = *(const struct id128 *)(const void *)client->taken.data;
    for (int i = 0; i < MORE; i++)
        take(REQUEST_LIVE);
    const struct id128 next = ((const struct id128 *)(const void *)client->taken.data)[FULL];
    pass(1);
    struct message ping = bare_next();
    ck_assert_uint_eq(ping.ping.taken.n, FULL);
    ck_assert_mem_eq(ping.ping.taken.items[0].data, &first, sizeof first);
    pass(1);
    ck_assert_says_none();
    pass(100 * MS);
    ping = bare_next();
    ck_assert_uint_eq(ping.ping.taken.n, MORE);
    ck_assert_mem_eq(ping.ping.taken.items[0].data, &next, sizeof next);
    ck_assert_uint_eq(client->taken.len, 0);
}
END_TEST

START_TEST(a_broker_is_given_up_when_it_was_silent_for_the_patience_and_no_sooner)
{
    struct told told = {0};
    bare_open();
    bare_request(REQUEST_LIVE, &told);
    quern_set_patience(client, 2500);
    client->now += 2500 * MS - 1;
    session_timers(client);
    ck_assert_int_eq(client->state, SESSION_OPEN);
    client->now++;
    session_timers(client);
    ck_assert_int_eq(client->state, SESSION_BROKEN);
    ck_assert_int_eq(client->broken, -ETIMEDOUT);
    ck_assert_str_eq(client->broken_err.text, "the broker at inproc://broker has not answered for 2.5 s");
    ck_assert_int_eq(told.ends, 1);
    ck_assert_str_eq(told.error_text, client->broken_err.text);
}
END_TEST

START_TEST(a_session_that_does_not_open_again_is_given_up_after_the_patience)
{
    quern_set_patience(client, 2500);
    pass(60 * S); /* at first it is waited for as long as who connects wants */
    ck_assert_int_eq(client->state, SESSION_HELLO);
    bare_open();
    pass(60 * S);
    ck_assert_int_eq(client->state, SESSION_OPEN);
    session_lost(client);
    pass(2500 * MS - 1);
    ck_assert_int_eq(client->state, SESSION_HELLO);
    pass(1);
    ck_assert_int_eq(client->state, SESSION_BROKEN);
    ck_assert_str_eq(client->broken_err.text,
                     "the session at inproc://broker was lost and could not be reopened within 2.5 s");
    while (bare_next().kind != MESSAGE_NONE)
        ;
    pass(10 * S);
    ck_assert_says_none();
}
END_TEST

START_TEST(who_did_not_call_for_two_seconds_calls_nobody_silent)
{
    bare_open();
    quern_set_patience(client, 1000);
    client->timers_ns = clock_ns() - 2100 * MS;
    client->heard_ns = clock_ns() - 60 * S;
    ck_assert_int_eq(quern_dispatch(client, 0, NULL), 0);
    client->timers_ns = clock_ns() - 1500 * MS;
    client->heard_ns = clock_ns() - 60 * S;
    ck_assert_int_eq(quern_dispatch(client, 0, NULL), -ETIMEDOUT);
}
END_TEST

START_TEST(a_session_is_open_while_its_broker_was_heard_lately)
{
    client->heard_ns = client->now;
    ck_assert(!quern_is_open(client));
    bare_open();
    ck_assert(quern_is_open(client));
    client->heard_ns = client->now - 2 * S; /* two pings may be late */
    ck_assert(quern_is_open(client));
    client->heard_ns = client->now - 4 * S;
    ck_assert(!quern_is_open(client));
}
END_TEST

/* ---- requests ---- */

START_TEST(a_request_without_a_verdict_is_sent_again_each_second)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_NEW, &told);
    client->ping_ns = client->now;
    pass(0); /* the first time at once */
    ck_assert(bare_next_is_generate());
    for (int times = 0; times < 2; times++) {
        ck_assert_int_eq(request->state, REQUEST_SENT);
        client->ping_ns = client->now;
        pass(1 * S - 1);
        ck_assert_says_none();
        client->ping_ns = client->now;
        pass(1);
        ck_assert(bare_next_is_generate());
    }
    ck_assert_int_eq(request->state, REQUEST_SENT);
}
END_TEST

START_TEST(a_request_that_is_wanted_no_more_before_it_was_sent_is_never_sent)
{
    struct told told = {0}, sent_once = {0};
    bare_open();
    bare_request(REQUEST_NEW, &told)->cancel_wanted = true;
    struct request *known = bare_request(REQUEST_SENT, &sent_once);
    known->cancel_wanted = true;
    state_request_waits(client, known); /* the session was opened again, and the pool may know it */
    pass(0);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_int_eq(told.end.reason, QUERN_CANCELLED);
    ck_assert(bare_next_is_generate());
    ck_assert_int_eq(sent_once.ends, 0);
    pass(1);
    ck_assert_says(MESSAGE_CANCEL);
}
END_TEST

/* Large prompts would pile up on the way to it. */
START_TEST(a_request_is_not_sent_again_to_a_broker_that_is_silent)
{
    struct told told = {0};
    bare_open();
    bare_request(REQUEST_SENT, &told);
    client->now += 10 * S;
    requests_timers(client);
    ck_assert_says_none();
    client->heard_ns = client->now;
    requests_timers(client);
    ck_assert(bare_next_is_generate());
}
END_TEST

/* Says nothing of pings, which are due meanwhile. */
static struct message next_but_pings(void)
{
    struct message message;
    while ((message = bare_next()).kind == MESSAGE_PING)
        ;
    return message;
}

#define ck_assert_asks_after(ns, what)                                                                       \
    do {                                                                                                     \
        pass((ns)-1);                                                                                        \
        ck_assert_int_eq(next_but_pings().kind, MESSAGE_NONE);                                               \
        pass(1);                                                                                             \
        ck_assert_int_eq(next_but_pings().kind, what);                                                       \
        ck_assert_int_eq(next_but_pings().kind, MESSAGE_NONE);                                               \
    } while (0)

/* 5,000 are passed at most every 10 ms, however often nothing has come. */
START_TEST(many_are_not_looked_at_each_time_that_nothing_has_come)
{
    static struct told told[5000];
    bare_open();
    client->now = client->heard_ns = client->answered_ns = clock_ns();
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        bare_request(REQUEST_LIVE, &told[i])->heard_ns = client->now;
    client->passed_ns = client->now - 20 * MS;
    ck_assert_int_eq(loop_round(client, 0), 0);
    const uint64_t first = client->passed_ns;
    ck_assert_uint_eq(first, client->now);
    while (client->passed_ns == first && client->now - first < 10 * S) {
        ck_assert_int_eq(loop_round(client, 0), 0);
        ck_assert(client->passed_ns == first || client->passed_ns - first >= 10 * MS);
    }
    ck_assert_uint_gt(client->passed_ns, first);
}
END_TEST

START_TEST(an_attach_is_repeated_each_second)
{
    struct told told = {0};
    bare_open();
    bare_request(REQUEST_ATTACHING, &told);
    for (int i = 0; i < 3; i++)
        ck_assert_asks_after(1 * S, MESSAGE_ATTACH);
}
END_TEST

START_TEST(a_request_that_is_silent_for_a_second_is_asked_about)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    request->next = 7;
    request->epoch = (struct epoch){3, 2};
    pass(1 * S - 1);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_NONE);
    request->heard_ns = client->now;
    pass(1 * S);
    struct message replay = next_but_pings();
    ck_assert_int_eq(replay.kind, MESSAGE_REPLAY);
    ck_assert_mem_eq(&replay.replay.id, &request->id, sizeof request->id);
    ck_assert_uint_eq(replay.replay.next, 7);
    ck_assert_uint_eq(replay.replay.epoch.boot, 3);
    ck_assert_uint_eq(replay.replay.epoch.move, 2);
    ck_assert(request->replaying);
    /* And about the page that does not come, whatever else does. */
    request->heard_ns = client->now + 10 * S;
    static const uint64_t waits_s[] = {1, 2, 4, 8, 16, 30, 30};
    for (size_t i = 0; i < sizeof waits_s / sizeof *waits_s; i++)
        ck_assert_asks_after(waits_s[i] * S, MESSAGE_REPLAY);
}
END_TEST

/* They stand behind one another on a slow link; a session that is opened anew may have come by another. */
START_TEST(where_pages_take_long_one_is_waited_for_four_times_as_long)
{
    static const struct bytes none[1] = {{"", 0}};
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    struct message page = {.kind = MESSAGE_REPLAY_OK};
    page.replay_ok.id = request->id;
    page.replay_ok.done = true;
    page.replay_ok.frames.items = none;
    stream_ask(client, request);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_REPLAY);
    ck_assert_asks_after(1 * S, MESSAGE_REPLAY);
    client->now += 1 * S;
    incoming_message(client, &page);
    stream_ask(client, request);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_REPLAY);
    ck_assert_asks_after(8 * S, MESSAGE_REPLAY);
    requests_opened(client, true);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_ATTACH);
    request->state = REQUEST_LIVE;
    stream_ask(client, request);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_REPLAY);
    ck_assert_asks_after(1 * S, MESSAGE_REPLAY);
}
END_TEST

START_TEST(frames_that_lack_after_the_end_are_asked_for_soon)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    request->end_told = true;
    ck_assert_asks_after(100 * MS, MESSAGE_REPLAY);
}
END_TEST

START_TEST(a_cancel_is_repeated_each_second_where_the_request_is_known)
{
    static const struct {
        enum request_state state;
        bool says;
    } rows[] = {{REQUEST_SENT, true}, {REQUEST_ATTACHING, false}, {REQUEST_LIVE, true}};
    bare_open();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct told told = {0};
        struct request *request = bare_request(rows[i].state, &told);
        request->cancel_wanted = true;
        pass(1);
        ck_assert_int_eq(next_but_pings().kind, rows[i].says ? MESSAGE_CANCEL : MESSAGE_NONE);
        ck_assert_uint_eq(request->cancels, rows[i].says);
        request->sent_ns = request->heard_ns = client->now;
        pass(1 * S - 1);
        ck_assert_int_eq(next_but_pings().kind, MESSAGE_NONE);
        request->sent_ns = request->heard_ns = client->now; /* or more would be due */
        pass(1);
        struct message cancel = next_but_pings();
        ck_assert_int_eq(cancel.kind, rows[i].says ? MESSAGE_CANCEL : MESSAGE_NONE);
        if (rows[i].says)
            ck_assert_mem_eq(&cancel.cancel.id, &request->id, sizeof request->id);
        state_remove_request(client, request);
    }
}
END_TEST

START_TEST(nothing_is_said_of_requests_while_the_session_is_not_open)
{
    struct told told[4] = {0};
    for (int state = REQUEST_NEW; state <= REQUEST_LIVE; state++)
        bare_request((enum request_state)state, &told[state])->cancel_wanted = true;
    client->now += 5 * S;
    requests_timers(client);
    ck_assert_says_none();
}
END_TEST

/* ---- questions ---- */

struct heard {
    int answers, code;
    char text[128];
};

static void hear(void *arg, const struct quern_answer *answer)
{
    struct heard *heard = arg;
    heard->answers++;
    heard->code = answer->code;
    snprintf(heard->text, sizeof heard->text, "%s", answer->text);
}

START_TEST(a_question_is_repeated_after_twice_as_long_each_time_until_it_is_given_up)
{
    struct heard heard = {0};
    bare_open();
    ck_assert_int_eq(quern_ask_status(client, 10000, hear, &heard, NULL), 0); /* by the real clock */
    struct message first = bare_next();
    ck_assert_int_eq(first.kind, MESSAGE_STATUS);
    const uint64_t ref = first.status.ref, asked = client->now;
    client->ping_ns = client->now;
    ck_assert_asks_after(1 * S, MESSAGE_STATUS);
    ck_assert_asks_after(2 * S, MESSAGE_STATUS);
    pass(4 * S - 1);
    ck_assert_int_eq(next_but_pings().kind, MESSAGE_NONE);
    pass(1);
    ck_assert_uint_eq(next_but_pings().status.ref, ref);
    pass(asked + 10 * S - 1 - client->now);
    ck_assert_int_eq(heard.answers, 0);
    pass(1);
    ck_assert_int_eq(heard.answers, 1);
    ck_assert_int_eq(heard.code, -ETIMEDOUT);
    ck_assert_str_eq(heard.text, "the broker at inproc://broker did not answer within 10000 ms");
    ck_assert_ptr_null(client->questions);
}
END_TEST

START_TEST(a_question_waits_for_the_session_to_open)
{
    struct heard heard = {0};
    ck_assert_int_eq(quern_ask_status(client, 10000, hear, &heard, NULL), 0);
    ck_assert_says_none();
    client->hello_ns = client->now;
    bare_open();
    pass(1);
    ck_assert_says(MESSAGE_STATUS);
}
END_TEST

/* A broker that restarts answers as soon as it is back, not when the old one would have been asked again. */
START_TEST(a_question_is_asked_at_once_when_the_session_opens_again)
{
    struct heard heard = {0};
    bare_open();
    ck_assert_int_eq(quern_ask_status(client, 20000, hear, &heard, NULL), 0);
    ck_assert_int_eq(bare_next().kind, MESSAGE_STATUS);
    client->ping_ns = client->now;
    ck_assert_asks_after(1 * S, MESSAGE_STATUS);
    ck_assert_asks_after(2 * S, MESSAGE_STATUS);
    session_lost(client);
    ck_assert_says(MESSAGE_HELLO);
    bare_open();
    ck_assert_says(MESSAGE_STATUS);
    client->ping_ns = client->now;
    ck_assert_asks_after(1 * S, MESSAGE_STATUS);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, bare_set_up, bare_tear_down);
    tcase_add_test(tests, hello_is_said_each_second);
    tcase_add_test(tests, a_join_is_repeated_after_twice_as_long_each_time_up_to_a_second);
    tcase_add_test(tests, an_open_session_pings_each_second);
    tcase_add_test(tests, what_was_taken_is_told_within_a_tenth_of_a_second);
    tcase_add_test(tests, what_the_broker_never_had_is_not_told);
    tcase_add_test(tests, many_that_were_taken_are_told_at_once_and_each_once);
    tcase_add_test(tests, a_broker_is_given_up_when_it_was_silent_for_the_patience_and_no_sooner);
    tcase_add_test(tests, a_session_that_does_not_open_again_is_given_up_after_the_patience);
    tcase_add_test(tests, who_did_not_call_for_two_seconds_calls_nobody_silent);
    tcase_add_test(tests, a_session_is_open_while_its_broker_was_heard_lately);
    tcase_add_test(tests, a_request_without_a_verdict_is_sent_again_each_second);
    tcase_add_test(tests, a_request_that_is_wanted_no_more_before_it_was_sent_is_never_sent);
    tcase_add_test(tests, a_request_is_not_sent_again_to_a_broker_that_is_silent);
    tcase_add_test(tests, many_are_not_looked_at_each_time_that_nothing_has_come);
    tcase_add_test(tests, an_attach_is_repeated_each_second);
    tcase_add_test(tests, a_request_that_is_silent_for_a_second_is_asked_about);
    tcase_add_test(tests, where_pages_take_long_one_is_waited_for_four_times_as_long);
    tcase_add_test(tests, frames_that_lack_after_the_end_are_asked_for_soon);
    tcase_add_test(tests, a_cancel_is_repeated_each_second_where_the_request_is_known);
    tcase_add_test(tests, nothing_is_said_of_requests_while_the_session_is_not_open);
    tcase_add_test(tests, a_question_is_repeated_after_twice_as_long_each_time_until_it_is_given_up);
    tcase_add_test(tests, a_question_waits_for_the_session_to_open);
    tcase_add_test(tests, a_question_is_asked_at_once_when_the_session_opens_again);
}

int main(void)
{
    return run_tests("client timers", add);
}
