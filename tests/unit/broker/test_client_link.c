/* SPDX-License-Identifier: MIT */
/* The client link: what waits for clients that do not read, and who is closed when it is too much. */

#include "broker/client_link.h"
#include "tests/unit/run.h"

#include <zmq.h>

enum { SESSIONS = 4 };

static struct sessions sessions;
static struct client_link link_;
static struct session clients[SESSIONS];
static void *context, *dealer;

/* All sessions have one peer, which reads nothing. */
static void set_up(void)
{
    int one = 1, none = 0;
    sessions = (struct sessions){0};
    context = zmq_ctx_new();
    link_ = (struct client_link){.sessions = &sessions, .router = zmq_socket(context, ZMQ_ROUTER)};
    dealer = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(link_.router, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    zmq_setsockopt(link_.router, ZMQ_LINGER, &none, sizeof none);
    zmq_setsockopt(dealer, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(link_.router, "inproc://clients"), 0);
    ck_assert_int_eq(zmq_connect(dealer, "inproc://clients"), 0);
    ck_assert_int_eq(zmq_send(dealer, "hello", 5, 0), 5);
    zmq_msg_t part;
    struct peer peer;
    zmq_msg_init(&part);
    ck_assert(router_receive(link_.router, &peer, &part));
    zmq_msg_close(&part);
    ck_assert_int_eq(credit_total_init(&link_.credit, NULL), 0);
    for (int i = 0; i < SESSIONS; i++)
        clients[i] = (struct session){.peer = peer, .outbox.credit = credit_new(&link_.credit)};
}

static void tear_down(void)
{
    for (int i = 0; i < SESSIONS; i++) {
        outbox_deinit(&clients[i].outbox);
        session_unpend(&sessions, &clients[i]);
    }
    ck_assert_uint_eq(link_.credit.waiting, 0);
    client_link_deinit(&link_);
    zmq_close(dealer);
    zmq_ctx_term(context);
    credit_total_deinit(&link_.credit);
}

/* Sends so many small answers, of which the first few go out. */
static void send(struct session *session, int n)
{
    struct message pong = {.kind = MESSAGE_PONG, .pong = {.ref = 1}};
    for (int i = 0; i < n; i++)
        client_link_send(&link_, session, &pong);
}

START_TEST(what_has_no_credit_waits_until_the_client_reads)
{
    char bytes[64];
    send(&clients[0], CREDIT_MESSAGES);
    ck_assert(!clients[0].pending);
    send(&clients[0], 10);
    ck_assert_uint_eq(clients[0].outbox.n, 10);
    ck_assert_uint_eq(link_.credit.waiting, clients[0].outbox.bytes);
    ck_assert_ptr_eq(sessions.pending, &clients[0]);
    client_link_flush(&link_);
    ck_assert_uint_eq(clients[0].outbox.n, 10);
    for (int i = 0; i < CREDIT_MESSAGES; i++)
        ck_assert_int_gt(zmq_recv(dealer, bytes, sizeof bytes, 0), 0);
    ck_assert(credit_total_woken(&link_.credit));
    client_link_flush(&link_);
    ck_assert_uint_eq(clients[0].outbox.n, 0);
    ck_assert(!clients[0].doomed);
}
END_TEST

START_TEST(when_too_much_waits_those_who_have_most_of_it_are_closed)
{
    for (int i = 0; i < SESSIONS; i++)
        send(&clients[i], CREDIT_MESSAGES + 10);
    send(&clients[2], 1000);
    link_.most_unread = link_.credit.waiting;
    client_link_shed(&link_);
    ck_assert(!sessions.any_doomed);
    link_.most_unread--;
    client_link_shed(&link_);
    for (int i = 0; i < SESSIONS; i++)
        ck_assert(clients[i].doomed == (i == 2));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_has_no_credit_waits_until_the_client_reads);
    tcase_add_test(tests, when_too_much_waits_those_who_have_most_of_it_are_closed);
}

int main(void)
{
    return run_tests("broker/client_link", add);
}
