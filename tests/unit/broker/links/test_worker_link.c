/* SPDX-License-Identifier: MIT */
/* What is sent to workers: in order when they are slow, never twice, and who cannot be sent to is killed. The
 * supervisor's end of its connection is held here. */

#include "broker/links/worker_link.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "proto/supervision.h"

enum { WORKERS = 2 };

static void *context, *dealers[WORKERS];
static struct worker workers[WORKERS];
static struct supervisor supervisor;
static struct worker_link to;
static struct message_decoder *decoder;
static int orders; /* what the supervisor is told */

/* Each takes two messages and two more, and then none. */
static void set_up(void)
{
    int one = 1, mark = 2, none = 0, pair[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    orders = pair[0];
    supervisor = (struct supervisor){.fd = pair[1], .n = WORKERS};
    context = zmq_ctx_new();
    to = (struct worker_link){.router = zmq_socket(context, ZMQ_ROUTER),
                              .supervisor = &supervisor,
                              .workers = workers,
                              .n_workers = WORKERS};
    zmq_setsockopt(to.router, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    zmq_setsockopt(to.router, ZMQ_SNDHWM, &mark, sizeof mark);
    zmq_setsockopt(to.router, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(to.router, "inproc://workers"), 0);
    for (uint32_t i = 0; i < WORKERS; i++) {
        workers[i] = (struct worker){.index = i, .name = "worker", .wseq = 40};
        supervisor.places[i].record = (struct place_record){.state = PLACE_READY, .incarnation = 7 + i};
        dealers[i] = zmq_socket(context, ZMQ_DEALER);
        zmq_setsockopt(dealers[i], ZMQ_RCVHWM, &mark, sizeof mark);
        zmq_setsockopt(dealers[i], ZMQ_LINGER, &none, sizeof none);
        ck_assert_int_eq(zmq_connect(dealers[i], "inproc://workers"), 0);
        ck_assert_int_eq(zmq_send(dealers[i], "hello", 5, 0), 5);
        zmq_msg_t part;
        zmq_msg_init(&part);
        ck_assert(router_receive(to.router, &workers[i].peer, &part));
        zmq_msg_close(&part);
    }
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
}

static void leave(uint32_t index)
{
    zmq_close(dealers[index]);
    dealers[index] = NULL;
}

static void tear_down(void)
{
    for (uint32_t i = 0; i < WORKERS; i++) {
        outbox_deinit(&workers[i].outbox);
        buffer_deinit(&workers[i].credits.topics);
        ids_deinit(&workers[i].credits.counts);
        if (dealers[i])
            leave(i);
    }
    worker_link_deinit(&to);
    ck_assert_ptr_null(to.router);
    zmq_ctx_term(context);
    close(orders);
    close(supervisor.fd);
    decoder = message_decoder_free(decoder);
}

/* The next message that this worker has; its kind is MESSAGE_NONE when there is none. */
static struct message next(uint32_t index)
{
    static uint8_t bytes[64 << 10];
    struct message message = {.kind = MESSAGE_NONE};
    struct error err = {{0}};
    int n = zmq_recv(dealers[index], bytes, sizeof bytes, ZMQ_DONTWAIT);
    if (n >= 0)
        ck_assert_msg(message_decode(decoder, bytes, (size_t)n, &message, &err) == 0, "%s", err.text);
    return message;
}

static int send_ack(uint32_t index, uint64_t wseq)
{
    return worker_link_send(&to, &workers[index], &(struct message){.kind = MESSAGE_ACK, .ack.wseq = wseq},
                            NULL);
}

/* How many workers the supervisor was told to kill; which, with its incarnation. */
static int killed(struct order *ret_order)
{
    int n = 0;
    while (supervision_receive(orders, ret_order, sizeof *ret_order) == 0) {
        ck_assert_uint_eq(ret_order->kind, ORDER_KILL);
        n++;
    }
    return n;
}

/* By whoever wants to know; else by the log. */
START_TEST(what_cannot_be_encoded_is_told_once)
{
    const struct message nothing = {.kind = MESSAGE_ASSIGN}; /* no prompt, which it must have */
    struct error err = {{0}};
    struct logged logged;
    logged_begin(&logged);
    ck_assert_int_lt(worker_link_send(&to, &workers[0], &nothing, &err), 0);
    ck_assert_str_eq(logged_end(&logged), "");
    ck_assert_str_ne(err.text, "");
    logged_begin(&logged);
    ck_assert_int_lt(worker_link_send(&to, &workers[0], &nothing, NULL), 0);
    ck_assert_ptr_nonnull(strstr(logged_end(&logged), "a assign for worker cannot be encoded: "));
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(what_a_slow_worker_does_not_take_is_sent_in_order)
{
    enum { N = 60 };
    struct order order;
    for (uint64_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < WORKERS; k++)
            ck_assert_int_eq(send_ack(k, 100 * k + i), 0);
    ck_assert(to.waiting);
    for (uint32_t k = 0; k < WORKERS; k++)
        for (uint64_t i = 0; i < N; i++) {
            struct message got;
            /* A socket notices only now and then that its peer has read. */
            do
                worker_link_flush(&to);
            while ((got = next(k)).kind == MESSAGE_NONE);
            ck_assert_uint_eq(got.ack.wseq, 100 * k + i);
            /* It waits as long as something does for anybody. */
            ck_assert_int_eq(to.waiting, workers[0].outbox.n > 0 || workers[1].outbox.n > 0);
        }
    ck_assert(!to.waiting);
    ck_assert_int_eq(killed(&order), 0);
}
END_TEST

START_TEST(a_worker_that_went_is_killed_when_what_waits_is_sent)
{
    struct order order;
    for (uint64_t i = 0; i < 20; i++)
        ck_assert_int_eq(send_ack(1, i), 0);
    ck_assert_uint_gt(workers[1].outbox.n, 0);
    leave(1);
    zmq_msg_t part;
    zmq_msg_init(&part);
    while (workers[1].peer.len > 0) { /* the end of a connection is noticed by who reads, now and then */
        struct peer nobody;
        ck_assert(!router_receive(to.router, &nobody, &part));
        worker_link_flush(&to);
    }
    zmq_msg_close(&part);
    ck_assert_int_eq(killed(&order), 1);
    ck_assert_uint_eq(order.index, 1);
    ck_assert_uint_eq(order.incarnation, 8);
    ck_assert_uint_eq(workers[1].peer.len, 0);
    ck_assert(!to.waiting);
    /* It gets nothing more, and is not killed for that. */
    ck_assert_int_eq(send_ack(1, 1), WORKER_LINK_E_LOST);
    worker_link_flush(&to);
    ck_assert_int_eq(killed(&order), 0);
    ck_assert_int_eq(send_ack(0, 5), 0);
    ck_assert_uint_eq(next(0).ack.wseq, 5);
}
END_TEST

START_TEST(a_worker_that_does_not_read_is_killed)
{
    struct order order;
    int r, n = 0;
    while ((r = send_ack(0, 1)) == 0)
        n++;
    ck_assert_int_eq(r, WORKER_LINK_E_LOST);
    ck_assert_int_ge(n, OUTBOX_MAX_MESSAGES);
    ck_assert_int_eq(killed(&order), 1);
    ck_assert_uint_eq(order.incarnation, 7);
}
END_TEST

START_TEST(behind_a_message_that_is_not_brief_is_a_ping_with_its_length)
{
    static char text[REQUEST_BRIEF_BYTES + 100];
    memset(text, 'x', sizeof text);
    struct message large = {.kind = MESSAGE_TOKENIZE,
                            .tokenize = {.ref = 3, .has_text = true, .text = {text, sizeof text}}},
                   got;
    ck_assert_int_eq(worker_link_send(&to, &workers[0], &large, NULL), 0);
    size_t len = workers[0].under_way;
    ck_assert_uint_gt(len, sizeof text);
    ck_assert_int_eq(send_ack(0, 1), 0);
    ck_assert_uint_eq(workers[0].under_way, len);
    ck_assert_int_eq(next(0).kind, MESSAGE_TOKENIZE);
    got = next(0);
    ck_assert_int_eq(got.kind, MESSAGE_PING);
    ck_assert_uint_eq(got.ping.ref, len);
    ck_assert_int_eq(next(0).kind, MESSAGE_ACK);
    worker_link_taken(&workers[0], len - 1);
    ck_assert_uint_eq(workers[0].under_way, 1);
    worker_link_taken(&workers[0], 1000); /* of what an earlier process had */
    ck_assert_uint_eq(workers[0].under_way, 0);
}
END_TEST

START_TEST(frames_are_asked_for_again_after_a_while)
{
    const uint64_t now = CLOCK_NS_PER_S;
    worker_link_ask_resend(&to, &workers[0], now);
    struct message got = next(0);
    ck_assert_int_eq(got.kind, MESSAGE_RESEND);
    ck_assert_uint_eq(got.resend.wseq, 41);
    worker_link_ask_resend(&to, &workers[0], now + 99 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
    worker_link_ask_resend(&to, &workers[0], now + 100 * CLOCK_NS_PER_MS);
    ck_assert_int_eq(next(0).kind, MESSAGE_RESEND);
}
END_TEST

START_TEST(frames_are_acknowledged_once_when_that_is_due)
{
    const uint64_t now = CLOCK_NS_PER_S;
    worker_link_acknowledge(&to, &workers[0], now);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
    workers[0].ack_due = now + 1;
    worker_link_acknowledge(&to, &workers[0], now);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
    worker_link_acknowledge(&to, &workers[0], now + 1);
    ck_assert_uint_eq(next(0).ack.wseq, 40);
    ck_assert_uint_eq(workers[0].acked_wseq, 40);
    worker_link_acknowledge(&to, &workers[0], now + 2);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(credits_are_sent_together)
{
    const struct request_key keys[] = {{{{1}}, {{2}}}, {{{3}}, {{4}}}};
    for (uint64_t i = 0; i < 2; i++)
        worker_link_credit(&to, &workers[0], &keys[i], 100 + i);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
    worker_link_send_credits(&to);
    const struct message got = next(0);
    ck_assert_int_eq(got.kind, MESSAGE_CREDIT);
    ck_assert_uint_eq(got.credit.topics.n, 2);
    ck_assert_mem_eq(got.credit.topics.items[1].data, &keys[1], sizeof keys[1]);
    ck_assert_int_eq(got.credit.counts.items[1], 101);
    worker_link_send_credits(&to);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
    worker_link_disconnect(&to, &workers[0]);
}
END_TEST

/* The counts have one more than the topics then, which nobody may read. */
START_TEST(a_worker_that_cannot_be_told_of_its_credit_is_killed_and_told_nothing_more)
{
    const struct request_key key = {{{1}}, {{2}}};
    struct worker_credits *credits = &workers[0].credits;
    struct order order;
    worker_link_credit(&to, &workers[0], &key, 100);
    const struct buffer topics = credits->topics;
    credits->topics.len = credits->topics.cap = SIZE_MAX - 4; /* there is no memory for more */
    worker_link_credit(&to, &workers[0], &key, 200);
    ck_assert_uint_eq(credits->topics.len, 0);
    ck_assert_uint_eq(credits->counts.len, 0);
    ck_assert_uint_eq(workers[0].peer.len, 0);
    ck_assert_int_eq(killed(&order), 1);
    credits->topics = topics;
    credits->topics.len = 0;
    worker_link_send_credits(&to);
    worker_link_credit(&to, &workers[0], &key, 300); /* it has no connection any more */
    ck_assert_uint_eq(credits->counts.len, 0);
    ck_assert_int_eq(next(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(strangers_are_answered_if_that_goes_at_once)
{
    struct peer nobody = {.len = 3, .bytes = "abc"}, peer = workers[0].peer;
    struct order order;
    workers[0].peer.len = 0;
    for (uint64_t i = 0; i < 50; i++)
        worker_link_send_stranger(&to, &peer, &(struct message){.kind = MESSAGE_ACK, .ack.wseq = i});
    worker_link_send_stranger(&to, &nobody, &(struct message){.kind = MESSAGE_ACK, .ack.wseq = 1});
    ck_assert(!to.waiting);
    ck_assert_uint_eq(next(0).ack.wseq, 0);
    ck_assert_int_eq(killed(&order), 0);
}
END_TEST

/* ---- connections ---- */

/* A worker of these comes to listen there. */
static void *listen_at(const char *endpoint)
{
    int none = 0;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(socket, endpoint), 0);
    return socket;
}

/* Who said what came next; NULL: nothing came. */
static struct worker *next_speaker(void)
{
    struct worker *speaker = NULL;
    struct peer peer;
    zmq_msg_t part;
    zmq_msg_init(&part);
    if (router_receive(to.router, &peer, &part)) {
        ck_assert_uint_gt(peer.len, 0);
        speaker = worker_link_of(&to, &peer);
    }
    zmq_msg_close(&part);
    return speaker;
}

START_TEST(whose_word_it_is_the_connection_tells)
{
    ck_assert_int_eq(worker_link_connect(&to, &workers[0], "inproc://link-0", NULL), 0);
    ck_assert_int_eq(worker_link_connect(&to, &workers[1], "inproc://link-1", NULL), 0);
    ck_assert_uint_eq(workers[0].peer.len, 0); /* it has to register */
    workers[0].peer = workers[0].link;
    ck_assert_int_eq(send_ack(0, 7), 0); /* before it listens */
    void *zero = listen_at("inproc://link-0"), *one = listen_at("inproc://link-1");
    ck_assert_int_eq(zmq_send(one, "I am worker 0", 13, 0), 13);
    ck_assert_ptr_eq(next_speaker(), &workers[1]);
    ck_assert_int_eq(zmq_send(zero, "x", 1, 0), 1);
    ck_assert_ptr_eq(next_speaker(), &workers[0]);
    leave(0);
    dealers[0] = zero;
    ck_assert_uint_eq(next(0).ack.wseq, 7);
    zmq_close(one);
}
END_TEST

START_TEST(who_is_disconnected_is_not_heard_any_more_and_the_next_one_is)
{
    struct order order;
    void *before = listen_at("inproc://link-a"), *after = listen_at("inproc://link-b");
    ck_assert_int_eq(worker_link_connect(&to, &workers[0], "inproc://link-a", NULL), 0);
    workers[0].peer = workers[0].link;
    ck_assert_int_eq(zmq_send(before, "x", 1, 0), 1);
    worker_link_disconnect(&to, &workers[0]);
    ck_assert_int_eq(send_ack(0, 1), WORKER_LINK_E_LOST);
    ck_assert_ptr_null(next_speaker());
    worker_link_disconnect(&to, &workers[0]); /* once is enough */
    ck_assert_int_eq(worker_link_connect(&to, &workers[0], "inproc://link-b", NULL), 0);
    ck_assert_int_eq(zmq_send(after, "x", 1, 0), 1);
    ck_assert_ptr_eq(next_speaker(), &workers[0]);
    ck_assert_int_eq(killed(&order), 0);
    zmq_close(before);
    zmq_close(after);
}
END_TEST

START_TEST(an_endpoint_that_cannot_be_is_named_and_leaves_no_connection)
{
    struct error err = {{0}};
    ck_assert_int_lt(worker_link_connect(&to, &workers[0], "nowhere", &err), 0);
    ck_assert_ptr_nonnull(strstr(err.text, "nowhere: "));
    ck_assert_uint_eq(workers[0].link.len, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, what_cannot_be_encoded_is_told_once);
    tcase_add_test(tests, what_a_slow_worker_does_not_take_is_sent_in_order);
    tcase_add_test(tests, a_worker_that_went_is_killed_when_what_waits_is_sent);
    tcase_add_test(tests, a_worker_that_does_not_read_is_killed);
    tcase_add_test(tests, behind_a_message_that_is_not_brief_is_a_ping_with_its_length);
    tcase_add_test(tests, frames_are_asked_for_again_after_a_while);
    tcase_add_test(tests, frames_are_acknowledged_once_when_that_is_due);
    tcase_add_test(tests, credits_are_sent_together);
    tcase_add_test(tests, a_worker_that_cannot_be_told_of_its_credit_is_killed_and_told_nothing_more);
    tcase_add_test(tests, strangers_are_answered_if_that_goes_at_once);
    tcase_add_test(tests, whose_word_it_is_the_connection_tells);
    tcase_add_test(tests, who_is_disconnected_is_not_heard_any_more_and_the_next_one_is);
    tcase_add_test(tests, an_endpoint_that_cannot_be_is_named_and_leaves_no_connection);
}

int main(void)
{
    return run_tests("broker/worker_link", add);
}
