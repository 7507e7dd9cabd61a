/* SPDX-License-Identifier: MIT */
/* Bad input to a running pool: each piece gets an error that names the thing that is wrong, and a good
 * request right after it is answered as if nothing had been. Messages that libquern would not send are
 * written by hand. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <zmq.h>

#include "common/clock.h"
#include "proto/message.h"

static struct pool pool;

static void start(void)
{
    pool_start(&pool, tiny_model(), "--workers", "1", "--ctx", "256", NULL);
}

static void stop(void)
{
    if (pool.broker > 0)
        ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

static void still_answers(void)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    ask(client, "still there?", 4, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_msg(answer.reason != QUERN_ERROR, "%s: %s", answer.error, answer.error_text);
    answer_deinit(&answer);
    quern_free(client);
}

/* The end of a request that should be refused by name, its text naming the thing. */
static void refused(const struct quern_request *request, const char *error, const char *names)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_error err = {0};
    ck_assert_msg(quern_generate_wait(client, request, answer_collect, &answer, &err) == 0, "%s", err.text);
    ck_assert_int_eq(answer.reason, QUERN_ERROR);
    ck_assert_str_eq(answer.error, error);
    ck_assert_msg(strstr(answer.error_text, names), "\"%s\" does not say \"%s\"", answer.error_text, names);
    answer_deinit(&answer);
    quern_free(client);
    still_answers();
}

static struct quern_request request_of(const char *text)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = text;
    request.max_tokens = 4;
    return request;
}

START_TEST(more_than_the_context_is_refused_with_both_numbers)
{
    struct quern_request request = request_of("hello");
    request.max_tokens = 1000;
    refused(&request, "too_long", "256");
    refused(&request, "too_long", "1000");
}
END_TEST

START_TEST(a_prompt_that_fits_is_not_refused_for_a_limit_that_nobody_gave)
{
    enum { PROMPT = 200, CONTEXT = 256 };
    int32_t ids[PROMPT];
    struct answer answer = {0};
    struct quern_error err = {{0}};
    struct quern *client = connect_to(pool.frontend);
    struct quern_request request;
    for (int i = 0; i < PROMPT; i++)
        ids[i] = 260 + i;
    quern_request_init(&request);
    request.ids = ids;
    request.n_ids = PROMPT;
    request.temperature = 0;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &answer, &err), 0);
    ck_assert_msg(answer.reason == QUERN_LENGTH, "%s: %s", answer.error, answer.error_text);
    ck_assert_uint_eq(answer.ids.len, CONTEXT - PROMPT);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

/* Splitting such a prompt took a second, in which nobody else got a token. */
START_TEST(a_prompt_far_beyond_the_context_is_refused_before_it_is_split)
{
    size_t len = 3u << 20;
    char *text = malloc(len + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'a', len);
    text[len] = 0;
    struct quern_request request = request_of(text);
    refused(&request, "too_long", "3 MiB");
    free(text);
}
END_TEST

START_TEST(an_unknown_model_is_refused)
{
    struct quern_request request = request_of("hello");
    request.model = "no-such-model";
    refused(&request, "no_worker", "no-such-model");
}
END_TEST

START_TEST(ids_outside_the_vocabulary_are_refused)
{
    int32_t ids[] = {1, 2, 1 << 20};
    struct quern_request request = request_of(NULL);
    request.ids = ids;
    request.n_ids = 3;
    refused(&request, "bad_request", "1048576");
}
END_TEST

/* ---- messages by hand ---- */

struct peer {
    void *context, *socket;
    struct message_decoder *decoder;
};

static struct peer peer_open(const char *endpoint, int type)
{
    struct peer peer = {.context = zmq_ctx_new()};
    peer.socket = zmq_socket(peer.context, type);
    int zero = 0;
    zmq_setsockopt(peer.socket, ZMQ_LINGER, &zero, sizeof zero);
    ck_assert_int_eq(zmq_connect(peer.socket, endpoint), 0);
    ck_assert_int_eq(message_decoder_new(&peer.decoder), 0);
    return peer;
}

static void peer_close(struct peer *peer)
{
    message_decoder_free(peer->decoder);
    zmq_close(peer->socket);
    zmq_ctx_term(peer->context);
}

static void peer_send(struct peer *peer, const struct message *message)
{
    struct buffer out = {0};
    ck_assert_int_eq(message_encode(message, &out), 0);
    ck_assert_int_eq(zmq_send(peer->socket, out.data, out.len, 0), (int)out.len);
    buffer_deinit(&out);
}

#define PATIENCE_MS 30000 /* for what must come: a loaded machine is no failure */

/* The next message within `ms`; false when none came. */
static bool peer_receive(struct peer *peer, int ms, struct message *ret_message)
{
    static uint8_t bytes[1 << 16];
    zmq_setsockopt(peer->socket, ZMQ_RCVTIMEO, &ms, sizeof ms);
    int n = zmq_recv(peer->socket, bytes, sizeof bytes, 0);
    if (n < 0)
        return false;
    struct error err = {0};
    ck_assert_msg(message_decode(peer->decoder, bytes, (size_t)n, ret_message, &err) == 0, "%s", err.text);
    return true;
}

static void peer_hello(struct peer *peer, uint8_t session)
{
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}}}, reply;
    hello.hello.session.bytes[0] = session;
    hello.hello.session.bytes[15] = 1;
    peer_send(peer, &hello);
    ck_assert(peer_receive(peer, PATIENCE_MS, &reply));
    ck_assert_int_eq(reply.kind, MESSAGE_HELLO_OK);
}

static void expect_error(struct peer *peer, enum proto_error error, const char *names)
{
    struct message reply;
    ck_assert_msg(peer_receive(peer, PATIENCE_MS, &reply), "no reply, expected the error %s",
                  proto_error_name(error));
    ck_assert_msg(reply.kind == MESSAGE_ERROR, "a %s instead of an error", message_kind_name(reply.kind));
    ck_assert_msg(reply.error.error == error, "%s instead of %s", proto_error_name(reply.error.error),
                  proto_error_name(error));
    ck_assert_msg(memmem(reply.error.text.data, reply.error.text.len, names, strlen(names)),
                  "\"%.*s\" does not say \"%s\"", (int)reply.error.text.len,
                  (const char *)reply.error.text.data, names);
}

START_TEST(a_request_before_hello_is_told_so)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    struct message ping = {.kind = MESSAGE_PING};
    peer_send(&peer, &ping);
    expect_error(&peer, PROTO_HELLO_REQUIRED, "hello");
    peer_close(&peer);
    still_answers();
}
END_TEST

START_TEST(no_common_version_is_unsupported)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {90, 99}, .session = {{5}}}};
    peer_send(&peer, &hello);
    expect_error(&peer, PROTO_UNSUPPORTED, "version");
    peer_close(&peer);
}
END_TEST

START_TEST(hand_written_nonsense_is_named)
{
    static const struct {
        const char *bytes;
        size_t len;
        enum proto_error error;
        const char *names;
    } cases[] = {
        {"\xc1\xc1\xc1", 3, PROTO_BAD_REQUEST, ""},                /* a byte that msgpack never uses */
        {"\x81\xa1k\xa5hullo", 9, PROTO_BAD_REQUEST, "hullo"},     /* an unknown kind */
        {"\x81\xa1k\xa4ping\x00", 9, PROTO_BAD_REQUEST, "follow"}, /* trailing bytes */
        {"\x81\xa1k\xa8generate", 12, PROTO_BAD_REQUEST, "id"},    /* a missing key */
        {"\xdf\xff\xff\xff\xff", 5, PROTO_BAD_REQUEST, ""},        /* four billion pairs, in five bytes */
        {"\x82\xa1k\xa6"
         "cancel\xa2id\x07",
         13, PROTO_BAD_REQUEST, "id"}, /* a mistyped key */
    };
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    peer_hello(&peer, 9);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(zmq_send(peer.socket, cases[i].bytes, cases[i].len, 0), (int)cases[i].len);
        expect_error(&peer, cases[i].error, cases[i].names);
    }
    peer_close(&peer);
    still_answers();
}
END_TEST

/* A generate with raw key and value appended to a valid map head, so that any value can be sent. */
static void send_generate_with(struct peer *peer, const char *key, const void *value, size_t value_len,
                               uint8_t id)
{
    struct buffer out = {0};
    buffer_append(&out, "\x84\xa1k\xa8generate\xa2id\xc4\x10", 17);
    uint8_t bytes[16] = {id};
    buffer_append(&out, bytes, 16);
    buffer_append(&out, "\xa6prompt", 7);
    buffer_append(&out, "\xa2hi", 3);
    uint8_t head = (uint8_t)(0xa0 | strlen(key));
    buffer_append(&out, &head, 1);
    buffer_append(&out, key, strlen(key));
    buffer_append(&out, value, value_len);
    ck_assert_int_eq(zmq_send(peer->socket, out.data, out.len, 0), (int)out.len);
    buffer_deinit(&out);
}

START_TEST(values_out_of_range_are_named_each)
{
    static const struct {
        const char *key;
        const char *value; /* msgpack */
        size_t len;
    } cases[] = {
        {"temperature", "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", 9}, /* NaN */
        {"temperature", "\xff", 1},                                 /* −1 */
        {"temperature", "\xa1x", 2},                                /* a text */
        {"top_p", "\xff", 1},
        {"top_p", "\x02", 1},                                 /* 2 */
        {"min_p", "\xcb\x7f\xf0\x00\x00\x00\x00\x00\x00", 9}, /* infinity */
        {"repetition_penalty", "\x00", 1},
        {"repetition_penalty", "\xcb\x38\x0b\x38\xfb\x9d\xaa\x78\xe4", 9}, /* 1e-38 */
        {"presence_penalty", "\x03", 1},
        {"frequency_penalty", "\xfd", 1},
        {"logit_bias", "\x91\x92\x05\x65", 4}, /* [[5, 101]] */
        {"logit_bias", "\x91\x92\xff\x01", 4}, /* [[−1, 1]] */
        {"logit_bias", "\x81\x05\x01", 3},     /* a map */
        {"top_k", "\xff", 1},
        {"max_tokens", "\x00", 1},
        {"max_tokens", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff", 9},
        {"priority", "\x64", 1},
        {"stop", "\x91\xa0", 2},     /* an empty stop string */
        {"stop", "\x91\xa1\xff", 3}, /* invalid UTF-8 */
        {"logprobs", "\xcc\xff", 2},
        {"on_disconnect", "\xa4stay", 5},
    };
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    peer_hello(&peer, 10);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        send_generate_with(&peer, cases[i].key, cases[i].value, cases[i].len, (uint8_t)(i + 1));
        expect_error(&peer, PROTO_BAD_REQUEST, cases[i].key);
    }
    peer_close(&peer);
    still_answers();
}
END_TEST

START_TEST(an_unknown_required_feature_is_unsupported)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    peer_hello(&peer, 11);
    send_generate_with(&peer, "require", "\x91\xa9telepathy", 11, 1);
    expect_error(&peer, PROTO_UNSUPPORTED, "telepathy");
    peer_close(&peer);
    still_answers();
}
END_TEST

START_TEST(invalid_utf8_and_empty_prompts_are_bad_requests)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    peer_hello(&peer, 12);
    static const char bad[] = "\x83\xa1k\xa8generate\xa2id\xc4\x10zzzzzzzzzzzzzzzz\xa6prompt\xa2\xff\xfe";
    zmq_send(peer.socket, bad, sizeof bad - 1, 0);
    expect_error(&peer, PROTO_BAD_REQUEST, "prompt");
    peer_close(&peer);
    struct quern_request request = request_of(NULL);
    int32_t none;
    request.ids = &none;
    request.n_ids = 0;
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_id id;
    struct quern_error err = {0};
    ck_assert_int_eq(quern_generate(client, &request, answer_collect, &answer, &id, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "prompt"));
    quern_free(client);
    still_answers();
}
END_TEST

START_TEST(the_same_request_twice_is_one_and_another_body_is_a_conflict)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    struct message reply;
    peer_hello(&peer, 13);
    send_generate_with(&peer, "max_tokens", "\x02", 1, 77);
    ck_assert(peer_receive(&peer, PATIENCE_MS, &reply));
    ck_assert_int_eq(reply.kind, MESSAGE_ACCEPTED);
    ck_assert(!reply.accepted.again);
    uint64_t seed = reply.accepted.seed;
    send_generate_with(&peer, "max_tokens", "\x02", 1, 77);
    int ends = 0;
    bool again = false;
    while (!again || ends == 0) {
        ck_assert(peer_receive(&peer, PATIENCE_MS, &reply));
        if (reply.kind == MESSAGE_ACCEPTED) {
            ck_assert(reply.accepted.again);
            ck_assert_uint_eq(reply.accepted.seed, seed);
            again = true;
        }
        ends += reply.kind == MESSAGE_END;
    }
    while (peer_receive(&peer, 500, &reply)) /* its end may be told twice, its acceptance may not */
        ck_assert_int_eq(reply.kind, MESSAGE_END);
    send_generate_with(&peer, "max_tokens", "\x03", 1, 77);
    do /* on a busy machine the end may be told again only now */
        ck_assert(peer_receive(&peer, PATIENCE_MS, &reply));
    while (reply.kind == MESSAGE_END);
    ck_assert_int_eq(reply.kind, MESSAGE_ERROR);
    ck_assert_int_eq(reply.error.error, PROTO_CONFLICT);
    peer_close(&peer);
}
END_TEST

START_TEST(an_oversized_frame_harms_only_its_sender)
{
    struct peer peer = peer_open(pool.frontend, ZMQ_DEALER);
    size_t len = (size_t)PROTO_MAX_REQUEST_BYTES + (1 << 20);
    char *big = calloc(1, len);
    ck_assert_ptr_nonnull(big);
    zmq_send(peer.socket, big, len, 0);
    struct message reply;
    ck_assert(!peer_receive(&peer, 1000, &reply));
    free(big);
    peer_close(&peer);
    still_answers();
}
END_TEST

/* Where there is a leak checker. libzmq loses the message that it was about to send when the other side ends
 * the connection, as the broker does here. */
void __lsan_disable(void) __attribute__((weak));
void __lsan_enable(void) __attribute__((weak));

static void send_noise(void *socket, const uint8_t *noise, size_t len, int flags)
{
    if (__lsan_disable)
        __lsan_disable();
    zmq_send(socket, noise, len, flags);
    if (__lsan_enable)
        __lsan_enable();
}

START_TEST(garbage_on_every_socket_disturbs_nobody)
{
    srand(1);
    const char *const endpoints[] = {pool.frontend, pool.stream};
    static const int types[] = {ZMQ_DEALER, ZMQ_XSUB};
    for (int s = 0; s < 2; s++) {
        struct peer peer = peer_open(endpoints[s], types[s]);
        for (int i = 0; i < 2000; i++) {
            uint8_t noise[300];
            size_t len = (size_t)(rand() % 300);
            for (size_t b = 0; b < len; b++)
                noise[b] = (uint8_t)rand();
            if (i % 3 == 0 && len > 4)
                memcpy(noise, "\x81\xa1k\xa8", 4);
            send_noise(peer.socket, noise, len, rand() % 4 == 0 ? ZMQ_DONTWAIT | ZMQ_SNDMORE : ZMQ_DONTWAIT);
        }
        zmq_send(peer.socket, "", 0, ZMQ_DONTWAIT);
        still_answers();
        peer_close(&peer);
        still_answers();
    }
}
END_TEST

START_TEST(nobody_may_subscribe_to_everybody)
{
    struct peer spy = peer_open(pool.stream, ZMQ_SUB);
    zmq_setsockopt(spy.socket, ZMQ_SUBSCRIBE, "", 0);
    zmq_setsockopt(spy.socket, ZMQ_SUBSCRIBE, "\x01", 1);
    still_answers();
    int timeout = 500;
    zmq_setsockopt(spy.socket, ZMQ_RCVTIMEO, &timeout, sizeof timeout);
    uint8_t bytes[64];
    ck_assert_int_eq(zmq_recv(spy.socket, bytes, sizeof bytes, 0), -1);
    peer_close(&spy);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, start, stop);
    tcase_add_test(tests, more_than_the_context_is_refused_with_both_numbers);
    tcase_add_test(tests, a_prompt_that_fits_is_not_refused_for_a_limit_that_nobody_gave);
    tcase_add_test(tests, a_prompt_far_beyond_the_context_is_refused_before_it_is_split);
    tcase_add_test(tests, an_unknown_model_is_refused);
    tcase_add_test(tests, ids_outside_the_vocabulary_are_refused);
    tcase_add_test(tests, a_request_before_hello_is_told_so);
    tcase_add_test(tests, no_common_version_is_unsupported);
    tcase_add_test(tests, hand_written_nonsense_is_named);
    tcase_add_test(tests, values_out_of_range_are_named_each);
    tcase_add_test(tests, an_unknown_required_feature_is_unsupported);
    tcase_add_test(tests, invalid_utf8_and_empty_prompts_are_bad_requests);
    tcase_add_test(tests, the_same_request_twice_is_one_and_another_body_is_a_conflict);
    tcase_add_test(tests, an_oversized_frame_harms_only_its_sender);
    tcase_add_test(tests, garbage_on_every_socket_disturbs_nobody);
    tcase_add_test(tests, nobody_may_subscribe_to_everybody);
}

int main(void)
{
    return run_tests("refusals", add);
}
