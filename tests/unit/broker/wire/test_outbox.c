/* SPDX-License-Identifier: MIT */
/* The outbox: order is kept, memory is bounded, and a peer that is gone is told apart from one that is slow.
 */

#include "broker/wire/outbox.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>

#include <zmq.h>

static void *context, *router, *dealer;
static struct peer peer;

/* A ROUTER that takes two messages for a peer whose DEALER takes two more, and then none. */
static void connect_pair(void)
{
    int one = 1, mark = 2, none = 0;
    context = zmq_ctx_new();
    router = zmq_socket(context, ZMQ_ROUTER);
    dealer = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    zmq_setsockopt(router, ZMQ_SNDHWM, &mark, sizeof mark);
    zmq_setsockopt(router, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(dealer, ZMQ_RCVHWM, &mark, sizeof mark);
    zmq_setsockopt(dealer, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(router, "inproc://outbox"), 0);
    ck_assert_int_eq(zmq_connect(dealer, "inproc://outbox"), 0);
    ck_assert_int_eq(zmq_send(dealer, "hello", 5, 0), 5);
    zmq_msg_t part;
    zmq_msg_init(&part);
    ck_assert(router_receive(router, &peer, &part));
    ck_assert_uint_eq(zmq_msg_size(&part), 5);
    zmq_msg_close(&part);
}

static void disconnect_pair(struct outbox *outbox)
{
    outbox_deinit(outbox);
    zmq_close(router);
    if (dealer)
        zmq_close(dealer);
    zmq_ctx_term(context);
}

START_TEST(what_a_slow_peer_does_not_take_waits_in_order)
{
    enum { N = 100 };
    struct outbox outbox = {0};
    connect_pair();
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(outbox_send(&outbox, router, &peer, &i, sizeof i), 0);
    ck_assert_uint_gt(outbox.n, 50);
    ck_assert_uint_eq(outbox.bytes, outbox.n * sizeof(int));
    for (int i = 0; i < N; i++) {
        int got = -1;
        /* A socket notices only now and then that its peer has read. */
        do
            ck_assert_int_eq(outbox_flush(&outbox, router, &peer), 0);
        while (zmq_recv(dealer, &got, sizeof got, ZMQ_DONTWAIT) < 0);
        ck_assert_int_eq(got, i);
    }
    ck_assert_uint_eq(outbox.n, 0);
    ck_assert_uint_eq(outbox.bytes, 0);
    disconnect_pair(&outbox);
}
END_TEST

START_TEST(an_outbox_is_bounded_in_messages_and_in_bytes)
{
    struct outbox outbox = {0};
    size_t len = 1 << 20, n = 0;
    void *large = calloc(1, len);
    int r;
    connect_pair();
    while ((r = outbox_send(&outbox, router, &peer, "x", 1)) == 0)
        n++;
    ck_assert_int_eq(r, OUTBOX_E_FULL);
    ck_assert_uint_ge(n, OUTBOX_MAX_MESSAGES);
    ck_assert_uint_le(n, OUTBOX_MAX_MESSAGES + 8);
    outbox_deinit(&outbox);
    for (n = 0; (r = outbox_send(&outbox, router, &peer, large, len)) == 0; n++)
        ck_assert_uint_le(outbox.bytes, OUTBOX_MAX_BYTES);
    ck_assert_int_eq(r, OUTBOX_E_FULL);
    ck_assert_uint_le(n, 8 + OUTBOX_MAX_BYTES / len);
    free(large);
    disconnect_pair(&outbox);
}
END_TEST

START_TEST(a_peer_that_is_gone_is_told)
{
    struct outbox outbox = {0};
    struct peer stranger = {.len = 3, .bytes = "abc"};
    connect_pair();
    ck_assert_int_eq(outbox_send(&outbox, router, &stranger, "x", 1), OUTBOX_E_GONE);
    ck_assert_uint_eq(outbox.n, 0);
    outbox_try(router, &stranger, "x", 1);
    ck_assert_int_eq(outbox_send(&outbox, router, &peer, "x", 1), 0);
    disconnect_pair(&outbox);
}
END_TEST

START_TEST(messages_of_more_or_fewer_parts_than_one_come_out_empty)
{
    struct outbox outbox = {0};
    zmq_msg_t part;
    zmq_msg_init(&part);
    connect_pair();
    zmq_send(dealer, "a", 1, ZMQ_SNDMORE);
    zmq_send(dealer, "b", 1, 0);
    zmq_send(dealer, "c", 1, 0);
    ck_assert(router_receive(router, &peer, &part));
    ck_assert_uint_eq(zmq_msg_size(&part), 0);
    ck_assert(router_receive(router, &peer, &part));
    ck_assert_mem_eq(zmq_msg_data(&part), "c", 1);
    ck_assert(!router_receive(router, &peer, &part));
    zmq_msg_close(&part);
    disconnect_pair(&outbox);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_a_slow_peer_does_not_take_waits_in_order);
    tcase_add_test(tests, an_outbox_is_bounded_in_messages_and_in_bytes);
    tcase_add_test(tests, a_peer_that_is_gone_is_told);
    tcase_add_test(tests, messages_of_more_or_fewer_parts_than_one_come_out_empty);
}

int main(void)
{
    return run_tests("broker/outbox", add);
}
