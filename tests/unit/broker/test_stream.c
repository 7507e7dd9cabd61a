/* SPDX-License-Identifier: MIT */
/* Who listens, as the stream keeps account of it. Within the process, where nothing bounds what a subscriber
 * sends. */

#include "tests/unit/run.h"

#include <string.h>

#include <zmq.h>

#include "broker/stream.h"

static void *context, *stranger;
static struct stream stream;

static void set_up(void)
{
    struct error err;
    int unlimited = 0;
    context = zmq_ctx_new();
    ck_assert_int_eq(stream_init(&stream, context, 7, &err), 0);
    zmq_setsockopt(stream.socket, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    ck_assert_int_eq(zmq_bind(stream.socket, "inproc://stream"), 0);
    stranger = zmq_socket(context, ZMQ_XSUB);
    zmq_setsockopt(stranger, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(stranger, ZMQ_LINGER, &unlimited, sizeof unlimited);
    ck_assert_int_eq(zmq_connect(stranger, "inproc://stream"), 0);
}

static void tear_down(void)
{
    if (stranger)
        zmq_close(stranger);
    stream_deinit(&stream);
    zmq_ctx_term(context);
}

static struct id128 session_of(uint32_t number)
{
    struct id128 session = {{0}};
    memcpy(&session, &number, sizeof number);
    return session;
}

/* `verb`: 1 subscribes, 0 ends it. */
static void say(uint8_t verb, uint32_t number)
{
    struct id128 session = session_of(number);
    uint8_t message[1 + sizeof session] = {verb};
    memcpy(message + 1, &session, sizeof session);
    ck_assert_int_ge(zmq_send(stranger, message, sizeof message, 0), 0);
}

/* Takes what has come; returns how many sessions were left. */
static unsigned take_all(void)
{
    bool has_left;
    struct id128 left;
    unsigned n = 0;
    while (stream_take(&stream, &has_left, &left))
        n += has_left;
    return n;
}

static bool has_listener(uint32_t number)
{
    struct id128 session = session_of(number);
    return stream_has_listener(&stream, &session);
}

START_TEST(the_last_subscription_that_ends_is_a_leaving)
{
    say(1, 5);
    ck_assert_uint_eq(take_all(), 0);
    ck_assert(has_listener(5));
    ck_assert(!has_listener(6));
    say(0, 5);
    ck_assert_uint_eq(take_all(), 1);
    ck_assert(!has_listener(5));
}
END_TEST

START_TEST(an_ended_connection_leaves_all_its_sessions)
{
    for (uint32_t i = 0; i < 100; i++)
        say(1, i);
    take_all();
    zmq_close(stranger);
    stranger = NULL;
    unsigned left = 0;
    zmq_pollitem_t item = {.socket = stream.socket, .events = ZMQ_POLLIN};
    for (int i = 0; i < 300 && left < 100; i++) {
        zmq_poll(&item, 1, 100);
        left += take_all();
    }
    ck_assert_uint_eq(left, 100);
}
END_TEST

/* Twice each, which the socket reports as one when the connection ends, so nothing takes them from the table.
 */
START_TEST(subscriptions_of_strangers_keep_nobody_out)
{
    struct sessions none = {0};
    for (uint32_t i = 0; i < STREAM_MAX_LISTENED; i++)
        for (int twice = 0; twice < 2; twice++)
            say(1, i);
    take_all();
    say(1, STREAM_MAX_LISTENED);
    take_all();
    ck_assert(!has_listener(STREAM_MAX_LISTENED)); /* full */
    stream_make_room(&stream, &none);
    say(1, STREAM_MAX_LISTENED);
    take_all();
    ck_assert(has_listener(STREAM_MAX_LISTENED));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_last_subscription_that_ends_is_a_leaving);
    tcase_add_test(tests, an_ended_connection_leaves_all_its_sessions);
    tcase_add_test(tests, subscriptions_of_strangers_keep_nobody_out);
}

int main(void)
{
    return run_tests("stream", add);
}
