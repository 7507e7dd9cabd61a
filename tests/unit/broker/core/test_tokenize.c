/* SPDX-License-Identifier: MIT */
/* Questions for a tokenizer on their way through the broker: the test is the client and both workers. */

#include "broker/core/tokenize.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>
#include <zmq.h>

#include "common/clock.h"

enum { WORKERS = 2, LARGE = 20000 };

static struct broker *broker;
static void *context, *client, *dealers[WORKERS];
static struct session *session;
static struct client_key key;
static struct message_decoder *decoder;
static struct buffer raw;
static char text[LARGE];

static void *bound(const char *endpoint)
{
    int one = 1, none = 0;
    void *router = zmq_socket(context, ZMQ_ROUTER);
    zmq_setsockopt(router, ZMQ_ROUTER_MANDATORY, &one, sizeof one);
    zmq_setsockopt(router, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_bind(router, endpoint), 0);
    return router;
}

static void *connected(const char *endpoint, void *router, struct peer *ret_peer)
{
    int none = 0;
    void *dealer = zmq_socket(context, ZMQ_DEALER);
    zmq_msg_t part;
    zmq_setsockopt(dealer, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_connect(dealer, endpoint), 0);
    ck_assert_int_eq(zmq_send(dealer, "hello", 5, 0), 5);
    zmq_msg_init(&part);
    ck_assert(router_receive(router, ret_peer, &part));
    zmq_msg_close(&part);
    return dealer;
}

static void set_up(void)
{
    struct peer peer;
    broker = calloc(1, sizeof *broker);
    ck_assert_ptr_nonnull(broker);
    context = zmq_ctx_new();
    broker->now = 1000;
    broker->n_workers = WORKERS;
    broker->client_link = (struct client_link){.router = bound("inproc://c"), .sessions = &broker->sessions};
    broker->worker_link =
        (struct worker_link){.router = bound("inproc://w"), .workers = broker->workers, .n_workers = WORKERS};
    client = connected("inproc://c", broker->client_link.router, &peer);
    session = session_open(&broker->sessions, (struct id128){{7}}, &peer, broker->now);
    ck_assert_ptr_nonnull(session);
    for (uint32_t i = 0; i < WORKERS; i++) {
        struct worker *worker = &broker->workers[i];
        *worker = (struct worker){.index = i, .state = WORKER_READY, .slots = 1, .model = "m", .load = i};
        dealers[i] = connected("inproc://w", broker->worker_link.router, &worker->peer);
    }
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    ck_assert_int_eq(message_decoder_new(&broker->request_decoder), 0);
    memset(text, 'a', sizeof text);
}

static void close_session(void)
{
    session_close(&broker->sessions, session);
    session = NULL;
}

static void tear_down(void)
{
    if (session)
        close_session();
    zmq_close(client);
    for (int i = 0; i < WORKERS; i++)
        zmq_close(dealers[i]);
    client_link_deinit(&broker->client_link);
    worker_link_deinit(&broker->worker_link);
    zmq_ctx_term(context);
    tokenize_table_deinit(&broker->tokenize);
    ck_assert_uint_eq(broker->tokenize.n, 0);
    message_decoder_free(broker->request_decoder);
    decoder = message_decoder_free(decoder);
    buffer_deinit(&raw);
    HASH_CLEAR(by_number, broker->client_keys.by_number);
    free(broker);
}

/* The session is one of a client with a key that may have 100 tokens a minute. */
static void have_key(void)
{
    key = (struct client_key){.number = 5};
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof key.number, &key);
    session->key = 5;
    broker->allowance.tokens = 100;
}

/* The next message on a socket; its kind is MESSAGE_NONE when there is none. Valid until the next call. */
static struct message next(void *dealer)
{
    static uint8_t bytes[64 << 10];
    struct message message = {.kind = MESSAGE_NONE};
    struct error err = {{0}};
    int n = zmq_recv(dealer, bytes, sizeof bytes, ZMQ_DONTWAIT);
    if (n >= 0)
        ck_assert_msg(message_decode(decoder, bytes, (size_t)n, &message, &err) == 0, "%s", err.text);
    return message;
}

static void ask(const struct message *message)
{
    raw.len = 0;
    ck_assert_int_eq(message_encode(message, &raw), 0);
    tokenize_ask(broker, session, message, (struct bytes){raw.data, raw.len});
}

static void ask_text(uint64_t ref, size_t len)
{
    struct message message = {.kind = MESSAGE_TOKENIZE,
                              .tokenize = {.ref = ref, .has_text = true, .text = {text, len}}};
    ask(&message);
}

static void ask_ids(uint64_t ref, size_t n)
{
    static const int32_t ids[100];
    struct message message = {.kind = MESSAGE_DETOKENIZE, .detokenize = {.ref = ref, .ids = {ids, n}}};
    ask(&message);
}

/* The ref under which this worker has got a question of this kind. */
static uint64_t asked(uint32_t index, enum message_kind kind)
{
    struct message message = next(dealers[index]);
    ck_assert_int_eq(message.kind, kind);
    return kind == MESSAGE_TOKENIZE ? message.tokenize.ref : message.detokenize.ref;
}

static void answer(uint32_t index, uint64_t ref, size_t n)
{
    static const int32_t ids[] = {11, 12, 13};
    const struct message ok = {.kind = MESSAGE_TOKENIZE_OK, .tokenize_ok = {.ref = ref, .ids = {ids, n}}};
    tokenize_answered(broker, &broker->workers[index], &ok);
}

static void expect_refusal(uint64_t ref, enum message_kind of, enum proto_error error, uint32_t retry_ms,
                           const char *words)
{
    struct message no = next(client);
    ck_assert_int_eq(no.kind, MESSAGE_ERROR);
    ck_assert_uint_eq(no.error.ref, ref);
    ck_assert_int_eq(no.error.of, of);
    ck_assert_int_eq(no.error.error, error);
    ck_assert_uint_eq(no.error.retry_after_ms, retry_ms);
    ck_assert_msg(bytes_equal(no.error.text, bytes_of_string(words)), "%.*s", (int)no.error.text.len,
                  (const char *)no.error.text.data);
}

static void expect_silence(void)
{
    ck_assert_int_eq(next(client).kind, MESSAGE_NONE);
    for (int i = 0; i < WORKERS; i++)
        ck_assert_int_eq(next(dealers[i]).kind, MESSAGE_NONE);
}

START_TEST(an_answer_comes_under_the_ref_of_who_asked)
{
    ask_text(900, 5);
    uint64_t ref = asked(0, MESSAGE_TOKENIZE);
    answer(1, ref, 3); /* who was not asked */
    answer(0, ref + 1, 3);
    expect_silence();
    answer(0, ref, 3);
    struct message ok = next(client);
    ck_assert_int_eq(ok.kind, MESSAGE_TOKENIZE_OK);
    ck_assert_uint_eq(ok.tokenize_ok.ref, 900);
    ck_assert_uint_eq(ok.tokenize_ok.ids.n, 3);
    ck_assert_int_eq(ok.tokenize_ok.ids.items[2], 13);
    answer(0, ref, 3);
    expect_silence();
    ask_ids(901, 2);
    ref = asked(0, MESSAGE_DETOKENIZE);
    const struct message words = {.kind = MESSAGE_DETOKENIZE_OK,
                                  .detokenize_ok = {.ref = ref, .text = BYTES_LITERAL("words")}};
    tokenize_answered(broker, &broker->workers[0], &words);
    ok = next(client);
    ck_assert_int_eq(ok.kind, MESSAGE_DETOKENIZE_OK);
    ck_assert_uint_eq(ok.detokenize_ok.ref, 901);
    ck_assert(bytes_equal(ok.detokenize_ok.text, BYTES_LITERAL("words")));
}
END_TEST

START_TEST(what_the_worker_refuses_is_refused)
{
    ask_ids(900, 2);
    uint64_t ref = asked(0, MESSAGE_DETOKENIZE);
    tokenize_refused(broker, &broker->workers[1], ref, PROTO_BAD_REQUEST, "no such id");
    expect_silence();
    tokenize_refused(broker, &broker->workers[0], ref, PROTO_BAD_REQUEST, "no such id");
    expect_refusal(900, MESSAGE_DETOKENIZE, PROTO_BAD_REQUEST, 0, "no such id");
    tokenize_refused(broker, &broker->workers[0], ref, PROTO_BAD_REQUEST, "no such id");
    expect_silence();
}
END_TEST

START_TEST(a_worker_has_one_large_text_at_a_time)
{
    for (uint64_t i = 0; i < 3; i++)
        ask_text(900 + i, LARGE);
    expect_silence();
    tokenize_dispatch(broker);
    uint64_t first = asked(0, MESSAGE_TOKENIZE), second = asked(1, MESSAGE_TOKENIZE);
    ck_assert_int_eq(next(dealers[0]).kind, MESSAGE_PING);
    ck_assert_int_eq(next(dealers[1]).kind, MESSAGE_PING);
    ck_assert_uint_eq(broker->workers[0].asked, first);
    ck_assert_uint_eq(broker->workers[1].asked, second);
    tokenize_dispatch(broker);
    expect_silence();
    ask_text(910, 5); /* what is brief passes them */
    answer(0, asked(0, MESSAGE_TOKENIZE), 1);
    ck_assert_uint_eq(next(client).tokenize_ok.ref, 910);
    ck_assert_uint_eq(broker->workers[0].asked, first);
    answer(1, second, 1);
    ck_assert_uint_eq(next(client).tokenize_ok.ref, 901);
    ck_assert_uint_eq(broker->workers[1].asked, 0);
    tokenize_dispatch(broker);
    answer(1, asked(1, MESSAGE_TOKENIZE), 1);
    ck_assert_uint_eq(next(client).tokenize_ok.ref, 902);
    ck_assert_uint_eq(broker->tokenize.waiting_bytes, 0);
}
END_TEST

/* As it comes: the name of the model is a part of the bytes. */
static void ask_of(uint64_t ref, const char *model)
{
    struct message message = {
        .kind = MESSAGE_TOKENIZE,
        .tokenize = {.ref = ref, .model = bytes_of_string(model), .has_text = true, .text = {text, LARGE}}};
    raw.len = 0;
    ck_assert_int_eq(message_encode(&message, &raw), 0);
    ck_assert_int_eq(message_decode(decoder, raw.data, raw.len, &message, NULL), 0);
    tokenize_ask(broker, session, &message, (struct bytes){raw.data, raw.len});
}

/* The same of a large text, behind which a ping asks whether it was taken. */
static uint64_t asked_large(uint32_t index)
{
    uint64_t ref = asked(index, MESSAGE_TOKENIZE);
    ck_assert_int_eq(next(dealers[index]).kind, MESSAGE_PING);
    return ref;
}

START_TEST(one_model_that_is_busy_does_not_hold_up_another)
{
    strcpy(broker->workers[1].model, "n");
    ask_of(900, "m");
    ask_of(901, "m");
    ask_of(902, "m");
    ask_of(903, "n");
    ask_of(904, "");
    ask_of(905, "m");
    tokenize_dispatch(broker);
    uint64_t first = asked_large(0), second = asked_large(1);
    answer(1, second, 1);
    ck_assert_uint_eq(next(client).tokenize_ok.ref, 903);
    tokenize_dispatch(broker); /* behind two that go on waiting one for whomever there is */
    second = asked_large(1);
    answer(1, second, 1);
    ck_assert_uint_eq(next(client).tokenize_ok.ref, 904);
    for (uint64_t ref = 900; ref <= 905; ref += ref == 902 ? 3 : 1) {
        answer(0, first, 1);
        ck_assert_uint_eq(next(client).tokenize_ok.ref, ref);
        tokenize_dispatch(broker);
        first = ref == 905 ? 0 : asked_large(0);
    }
    ck_assert_ptr_null(broker->tokenize.waiting);
}
END_TEST

START_TEST(with_its_worker_a_question_is_lost)
{
    ask_text(900, 5);
    ask_text(901, LARGE);
    tokenize_dispatch(broker);
    ck_assert_uint_ne(broker->workers[0].asked, 0);
    tokenize_worker_lost(broker, &broker->workers[1]);
    ck_assert_int_eq(next(client).kind, MESSAGE_NONE);
    tokenize_worker_lost(broker, &broker->workers[0]);
    expect_refusal(900, MESSAGE_TOKENIZE, PROTO_WORKER_LOST, 0, "the worker died");
    expect_refusal(901, MESSAGE_TOKENIZE, PROTO_WORKER_LOST, 0, "the worker died");
    ck_assert_uint_eq(broker->workers[0].asked, 0);
}
END_TEST

START_TEST(a_question_has_so_much_time_wherever_it_waits)
{
    ask_text(900, 5);
    ask_text(901, LARGE);
    broker->now += TOKENIZE_TIMEOUT_MS * CLOCK_NS_PER_MS - 1;
    tokenize_expire(broker);
    ck_assert_int_eq(next(client).kind, MESSAGE_NONE);
    broker->now++;
    tokenize_expire(broker);
    expect_refusal(900, MESSAGE_TOKENIZE, PROTO_INTERNAL, 0, "the worker did not answer");
    expect_refusal(901, MESSAGE_TOKENIZE, PROTO_OVERLOADED, 100,
                   "too many texts are waiting for a tokenizer");
}
END_TEST

START_TEST(without_a_worker_nobody_is_asked)
{
    ask_text(901, LARGE);
    for (int i = 0; i < WORKERS; i++)
        broker->workers[i].state = WORKER_STARTING;
    ask_text(900, 5);
    expect_refusal(900, MESSAGE_TOKENIZE, PROTO_NO_WORKER, 0, "no worker is ready");
    tokenize_dispatch(broker); /* there was one when it came */
    expect_refusal(901, MESSAGE_TOKENIZE, PROTO_NO_WORKER, 0, "no worker is ready");
    ck_assert_uint_eq(broker->tokenize.n, 0);
}
END_TEST

START_TEST(a_client_has_its_share_of_the_questions)
{
    for (uint64_t i = 0; i < TOKENIZE_TABLE_MAX / 2; i++)
        ask_ids(i, 1);
    ck_assert_int_eq(next(client).kind, MESSAGE_NONE);
    ask_ids(900, 1);
    expect_refusal(900, MESSAGE_DETOKENIZE, PROTO_OVERLOADED, 100,
                   "this client's share of the tokenizer queue is full: 128 of the 128 waiting, at most 256; "
                   "of the large ones 0 bytes of the 0 bytes waiting, at most 32 MiB");
}
END_TEST

START_TEST(ids_are_charged_to_the_key_when_they_are_known)
{
    have_key();
    ask_ids(900, 70);
    ck_assert_double_eq(key.tokens, 30);
    ask_text(901, 5);
    ck_assert_double_eq(key.tokens, 30);
    uint64_t first = asked(0, MESSAGE_DETOKENIZE), second = asked(0, MESSAGE_TOKENIZE);
    answer(0, second, 3);
    ck_assert_double_eq(key.tokens, 27);
    next(client);
    ask_ids(902, 27);
    ask_ids(903, 1);
    expect_refusal(903, MESSAGE_DETOKENIZE, PROTO_OVERLOADED, 601,
                   "this client's key has used its 100 tokens a minute (client-tokens): more in 1 s");
    ck_assert_double_eq(key.tokens, 0);
    tokenize_refused(broker, &broker->workers[0], first, PROTO_BAD_REQUEST, "no such id");
    ck_assert_double_eq(key.tokens, 0);
}
END_TEST

START_TEST(who_left_is_told_nothing_and_leaves_nothing)
{
    ask_text(900, 5);
    ask_text(901, LARGE);
    close_session();
    tokenize_dispatch(broker);
    ck_assert_uint_eq(broker->tokenize.n, 1);
    answer(0, asked(0, MESSAGE_TOKENIZE), 3);
    ck_assert_uint_eq(broker->tokenize.n, 0);
    expect_silence();
}
END_TEST

START_TEST(a_worker_that_cannot_be_reached_answers_nothing)
{
    struct supervisor *supervisor = &broker->supervisor;
    supervisor->fd = -1;
    broker->worker_link.supervisor = supervisor;
    broker->workers[0].peer.bytes[0] ^= 0xff; /* a peer that is gone */
    ask_text(900, 5);
    expect_refusal(900, MESSAGE_TOKENIZE, PROTO_WORKER_LOST, 0, "the worker cannot be reached");
    ck_assert_uint_eq(broker->tokenize.n, 0);
    ck_assert(!worker_is_serving(&broker->workers[0]));
}
END_TEST

/* A text whose message has so many bytes. */
static void ask_message_of(uint64_t ref, size_t bytes)
{
    struct message message = {.kind = MESSAGE_TOKENIZE,
                              .tokenize = {.ref = ref, .has_text = true, .text = {text, 10000}}};
    raw.len = 0;
    ck_assert_int_eq(message_encode(&message, &raw), 0);
    ask_text(ref, bytes - (raw.len - 10000));
    ck_assert_uint_eq(raw.len, bytes);
}

START_TEST(a_message_is_brief_up_to_its_bound)
{
    ask_message_of(900, REQUEST_BRIEF_BYTES);
    ck_assert_uint_eq(broker->tokenize.waiting_bytes, 0);
    asked(0, MESSAGE_TOKENIZE);
    ask_message_of(901, REQUEST_BRIEF_BYTES + 1);
    ck_assert_uint_eq(broker->tokenize.waiting_bytes, REQUEST_BRIEF_BYTES + 1);
    expect_silence();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_answer_comes_under_the_ref_of_who_asked);
    tcase_add_test(tests, what_the_worker_refuses_is_refused);
    tcase_add_test(tests, a_worker_has_one_large_text_at_a_time);
    tcase_add_test(tests, one_model_that_is_busy_does_not_hold_up_another);
    tcase_add_test(tests, with_its_worker_a_question_is_lost);
    tcase_add_test(tests, a_question_has_so_much_time_wherever_it_waits);
    tcase_add_test(tests, without_a_worker_nobody_is_asked);
    tcase_add_test(tests, a_client_has_its_share_of_the_questions);
    tcase_add_test(tests, ids_are_charged_to_the_key_when_they_are_known);
    tcase_add_test(tests, who_left_is_told_nothing_and_leaves_nothing);
    tcase_add_test(tests, a_worker_that_cannot_be_reached_answers_nothing);
    tcase_add_test(tests, a_message_is_brief_up_to_its_bound);
}

int main(void)
{
    return run_tests("broker/tokenize", add);
}
