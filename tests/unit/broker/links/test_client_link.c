/* SPDX-License-Identifier: MIT */
/* The client link: what waits for clients that do not read, and who is closed when it is too much. */

#include "broker/links/client_link.h"
#include "broker/books/request.h"
#include "broker/choose/admission.h"
#include "common/amount.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <string.h>

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
    ck_assert_ptr_null(link_.router);
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

/* The next message that the client has; its kind is MESSAGE_NONE when there is none. */
static enum message_kind next(void)
{
    struct message_decoder *decoder;
    struct message message = {.kind = MESSAGE_NONE};
    uint8_t bytes[256];
    int n = zmq_recv(dealer, bytes, sizeof bytes, ZMQ_DONTWAIT);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    if (n >= 0)
        ck_assert_int_eq(message_decode(decoder, bytes, (size_t)n, &message, NULL), 0);
    message_decoder_free(decoder);
    return message.kind;
}

START_TEST(who_is_gone_is_doomed_as_one_that_cannot_be_reached)
{
    clients[0].peer.bytes[0] ^= 0xff;
    send(&clients[0], 1);
    ck_assert(clients[0].doomed);
    ck_assert(clients[0].unreachable);
    ck_assert(sessions.any_doomed);
    ck_assert_uint_eq(clients[0].outbox.n, 0);
}
END_TEST

START_TEST(who_does_not_read_has_so_many_messages_and_is_then_doomed)
{
    send(&clients[0], CREDIT_MESSAGES + OUTBOX_MAX_MESSAGES);
    ck_assert_uint_eq(clients[0].outbox.n, OUTBOX_MAX_MESSAGES);
    ck_assert(!clients[0].doomed);
    send(&clients[0], 1);
    ck_assert(clients[0].doomed);
    ck_assert(!clients[0].unreachable); /* its connection stands */
    for (int i = 0; i < CREDIT_MESSAGES; i++)
        ck_assert_int_eq(next(), MESSAGE_PONG);
    send(&clients[0], 1);
    client_link_flush(&link_); /* nothing more is sent to it */
    ck_assert_uint_eq(clients[0].outbox.n, OUTBOX_MAX_MESSAGES);
    ck_assert_int_eq(next(), MESSAGE_NONE);
}
END_TEST

START_TEST(a_full_queue_is_cancelled_while_a_client_is_busy)
{
    for (int i = 0; i < 3 * ADMISSION_MAX_QUEUED; i++) { /* accepted, cancelled, ended */
        struct message ok = {.kind = MESSAGE_CANCEL_OK};
        memset(&ok.cancel_ok.id, 'r', sizeof ok.cancel_ok.id);
        client_link_send(&link_, &clients[0], &ok);
    }
    ck_assert(!clients[0].doomed);
    ck_assert_uint_gt(clients[0].outbox.n, 2 * ADMISSION_MAX_QUEUED);
}
END_TEST

START_TEST(a_client_is_asked_whether_it_is_there_unless_something_waits)
{
    client_link_probe(&link_, &clients[0]);
    ck_assert_int_eq(next(), MESSAGE_PONG);
    ck_assert_int_eq(next(), MESSAGE_NONE);
    send(&clients[1], CREDIT_MESSAGES + 1);
    client_link_probe(&link_, &clients[1]);
    ck_assert_uint_eq(clients[1].outbox.n, 1);
    for (int i = 0; i < CREDIT_MESSAGES; i++)
        ck_assert_int_eq(next(), MESSAGE_PONG);
    client_link_flush(&link_); /* one alone goes, too */
    ck_assert_uint_eq(clients[1].outbox.n, 0);
    ck_assert_int_eq(next(), MESSAGE_PONG);
}
END_TEST

START_TEST(a_stranger_and_an_end_are_sent_what_they_are)
{
    const struct message no = {.kind = MESSAGE_ERROR, .error = {.error = PROTO_OVERLOADED}};
    struct request request = {0};
    client_link_send_end(&link_, &clients[0], &request); /* which has none */
    ck_assert_int_eq(next(), MESSAGE_NONE);
    client_link_send_stranger(&link_, &clients[0].peer, &no);
    ck_assert_int_eq(next(), MESSAGE_ERROR);
    ck_assert_int_eq(message_encode(&no, &request.end_message), 0);
    client_link_send_end(&link_, &clients[0], &request);
    ck_assert_int_eq(next(), MESSAGE_ERROR);
    buffer_deinit(&request.end_message);
}
END_TEST

START_TEST(the_log_says_how_much_waits_and_who_was_closed)
{
    static struct logged logged;
    char expected[200];
    send(&clients[0], CREDIT_MESSAGES + 10);
    send(&clients[1], CREDIT_MESSAGES + 1000);
    link_.most_unread = link_.credit.waiting - 1;
    snprintf(expected, sizeof expected, "warn %s waiting for clients that do not read: 1 connection closed\n",
             amount_of_bytes(link_.credit.waiting).text);
    logged_begin(&logged);
    client_link_shed(&link_);
    ck_assert_ptr_nonnull(strstr(logged_end(&logged), expected));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_has_no_credit_waits_until_the_client_reads);
    tcase_add_test(tests, when_too_much_waits_those_who_have_most_of_it_are_closed);
    tcase_add_test(tests, who_is_gone_is_doomed_as_one_that_cannot_be_reached);
    tcase_add_test(tests, who_does_not_read_has_so_many_messages_and_is_then_doomed);
    tcase_add_test(tests, a_full_queue_is_cancelled_while_a_client_is_busy);
    tcase_add_test(tests, a_client_is_asked_whether_it_is_there_unless_something_waits);
    tcase_add_test(tests, a_stranger_and_an_end_are_sent_what_they_are);
    tcase_add_test(tests, the_log_says_how_much_waits_and_who_was_closed);
}

int main(void)
{
    return run_tests("broker/client_link", add);
}
