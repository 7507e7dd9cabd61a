/* SPDX-License-Identifier: MIT */
/* What the descriptor of a libzmq socket says of its messages, and what it does not. */

#include "common/system/socket_news.h"
#include "tests/unit/run.h"

#include <zmq.h>

static void *context, *from, *to;
static struct socket_news news;

static void set_up(void)
{
    context = zmq_ctx_new();
    from = zmq_socket(context, ZMQ_PAIR);
    to = zmq_socket(context, ZMQ_PAIR);
    ck_assert_int_eq(zmq_bind(to, "inproc://news"), 0);
    ck_assert_int_eq(zmq_connect(from, "inproc://news"), 0);
    ck_assert_int_eq(socket_news_init(to, &news), 0);
}

static void tear_down(void)
{
    zmq_close(from);
    zmq_close(to);
    zmq_ctx_term(context);
}

static void wait_for_news(int ms)
{
    struct pollfd item = socket_news_item(&news);
    poll(&item, 1, ms);
    socket_news_polled(&news, &item);
}

static int take(void)
{
    char text[8];
    int n = 0;
    while (zmq_recv(to, text, sizeof text, ZMQ_DONTWAIT) >= 0)
        n++;
    socket_news_over(&news);
    ck_assert(!news.look);
    return n;
}

START_TEST(what_comes_after_the_socket_was_found_empty_is_told)
{
    ck_assert(news.look);
    ck_assert_int_eq(take(), 0);
    for (int round = 0; round < 1000; round++) {
        wait_for_news(0);
        ck_assert(!news.look);
        for (int i = 0; i <= round % 3; i++)
            ck_assert_int_eq(zmq_send(from, "news", 4, 0), 4);
        wait_for_news(20000);
        ck_assert(news.look);
        ck_assert_int_eq(take(), 1 + round % 3);
    }
}
END_TEST

/* The reason why a socket that was used is looked into whatever its descriptor says. */
START_TEST(another_use_of_the_socket_takes_the_news_off_the_descriptor)
{
    int events;
    ck_assert_int_eq(take(), 0);
    ck_assert_int_eq(zmq_send(from, "news", 4, 0), 4);
    ck_assert_int_eq(zmq_getsockopt(to, ZMQ_EVENTS, &events, &(size_t){sizeof events}), 0);
    ck_assert(events & ZMQ_POLLIN);
    wait_for_news(0);
    ck_assert(!news.look);
    ck_assert_int_eq(take(), 1);
}
END_TEST

START_TEST(an_interrupted_receive_does_not_end_the_look)
{
    errno = EINTR;
    socket_news_over(&news);
    ck_assert(news.look);
    errno = EAGAIN;
    socket_news_over(&news);
    ck_assert(!news.look);
}
END_TEST

START_TEST(a_socket_that_is_asked_says_what_there_is)
{
    socket_news_ask(to, &news);
    ck_assert(!news.look);
    ck_assert_int_eq(zmq_send(from, "news", 4, 0), 4);
    socket_news_ask(to, &news);
    ck_assert(news.look);
    ck_assert_int_eq(take(), 1);
    ck_assert_int_eq(zmq_send(from, "news", 4, 0), 4);
    wait_for_news(20000);
    ck_assert(news.look);
}
END_TEST

START_TEST(what_is_no_socket_has_no_news)
{
    ck_assert_int_lt(socket_news_init(context, &news), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_comes_after_the_socket_was_found_empty_is_told);
    tcase_add_test(tests, another_use_of_the_socket_takes_the_news_off_the_descriptor);
    tcase_add_test(tests, an_interrupted_receive_does_not_end_the_look);
    tcase_add_test(tests, a_socket_that_is_asked_says_what_there_is);
    tcase_add_test(tests, what_is_no_socket_has_no_news);
}

int main(void)
{
    return run_tests("socket_news", add);
}
