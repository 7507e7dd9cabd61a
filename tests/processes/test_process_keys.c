/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: clients on TCP and their keys, in certificates of czmq. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <czmq.h>

#include "common/clock.h"

static zcert_t *server, *alice, *bob;
static char folder[RUNDIR_PATH_MAX + 32], frontend[64], stream[64];

static const char *in_folder(const char *name)
{
    static char path[RUNDIR_PATH_MAX + 64];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void let_in(zcert_t *client, const char *name)
{
    ck_assert_int_eq(zcert_save_public(client, in_folder(name)), 0);
}

/* Starts the pool with a few more arguments; client_b, of the run directory, sees what becomes of the others.
 */
#define open_guarded_pool(...) start_guarded((const char *const[8]){__VA_ARGS__})

static void start_guarded(const char *const more[8])
{
    char address[64], path[RUNDIR_PATH_MAX + 32];
    const int port = pool_free_ports();
    const char *model = fake_model(&the_pool, "ok");
    snprintf(path, sizeof path, "%s/key", the_pool.rundir);
    snprintf(address, sizeof address, "0.0.0.0:%d", port);
    snprintf(frontend, sizeof frontend, "tcp://127.0.0.1:%d", port);
    snprintf(stream, sizeof stream, "tcp://127.0.0.1:%d", port + 1);
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    pool_start(&the_pool, model, "--tcp", address, "--curve-key", path, "--client-keys", folder, more[0],
               more[1], more[2], more[3], more[4], more[5], NULL);
    client_open(&client_b, &the_pool, 'b');
}

static void set_up(void)
{
    zsys_handler_set(NULL);
    server = zcert_new();
    alice = zcert_new();
    bob = zcert_new();
    fake_model(&the_pool, "ok");
    snprintf(folder, sizeof folder, "%s.keys", the_pool.rundir);
    ck_assert_int_eq(mkdir(folder, 0700), 0);
}

static void tear_down(void)
{
    zcert_destroy(&server);
    zcert_destroy(&alice);
    zcert_destroy(&bob);
    rundir_remove(folder);
}

static void close_all(struct client *client)
{
    client_close(client);
    client_a = client_b; /* whom close_pool closes */
    close_pool();
}

static void encrypt(void *socket, zcert_t *own)
{
    zmq_setsockopt(socket, ZMQ_CURVE_SERVERKEY, zcert_public_key(server), 32);
    zmq_setsockopt(socket, ZMQ_CURVE_PUBLICKEY, zcert_public_key(own), 32);
    zmq_setsockopt(socket, ZMQ_CURVE_SECRETKEY, zcert_secret_key(own), 32);
}

/* Connects over TCP with this key, without a word. */
static void connect_tcp(struct client *client, zcert_t *own)
{
    char path[POOL_ENDPOINT_MAX];
    client_connect(client, &the_pool);
    zmq_disconnect(client->control, pool_endpoint(&the_pool, "frontend", path));
    zmq_disconnect(client->stream, pool_endpoint(&the_pool, "stream", path));
    encrypt(client->control, own);
    encrypt(client->stream, own);
    ck_assert_int_eq(zmq_connect(client->control, frontend), 0);
    ck_assert_int_eq(zmq_connect(client->stream, stream), 0);
}

/* Without waiting: a socket that was refused takes nothing any more. */
static void say_hello(struct client *client)
{
    struct buffer out = {0};
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client->session}};
    ck_assert_int_eq(message_encode(&hello, &out), 0);
    zmq_send(client->control, out.data, out.len, ZMQ_DONTWAIT);
    buffer_deinit(&out);
}

/* Connects over TCP as this session, which the broker knows then and the stream does not. */
static void greet_tcp(struct client *client, zcert_t *own, uint8_t name)
{
    connect_tcp(client, own);
    memset(&client->session, name, sizeof client->session);
    say_hello(client);
    client_expect(client, MESSAGE_HELLO_OK);
}

/* Opens a session over TCP and waits for its welcome on the stream. */
static void open_tcp(struct client *client, zcert_t *own, uint8_t name)
{
    struct message join = {.kind = MESSAGE_JOIN, .join = {.nonce = 7}};
    greet_tcp(client, own, name);
    zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session);
    for (int i = 0; i < 300 && !client->open; i++) {
        client_send(client, &join);
        client->open = client_frame(client, 100).kind == MESSAGE_WELCOME;
    }
    ck_assert(client->open);
}

/* Whether anything comes on its DEALER. */
static bool hears(struct client *client, int ms)
{
    zmq_pollitem_t item = {.socket = client->control, .events = ZMQ_POLLIN};
    return zmq_poll(&item, 1, ms) > 0;
}

/* Waits until there are so many sessions, and so many requests run; `other` keeps its lease meanwhile. */
static void await_pool(struct client *other, uint32_t sessions, uint32_t running)
{
    struct message ping = {.kind = MESSAGE_PING}, status = {.kind = MESSAGE_NONE};
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    do {
        ck_assert_msg(clock_ns() < until, "%u sessions, %u requests run: %s", status.status_ok.sessions,
                      status.status_ok.running, pool_log(&the_pool));
        usleep(20000);
        client_send(other, &ping);
        status = client_status(&client_b);
    } while (status.status_ok.sessions != sessions || status.status_ok.running != running);
}

START_TEST(who_has_a_key_in_the_folder_gets_in_and_nobody_else)
{
    struct client stranger;
    uint64_t count;
    let_in(alice, "alice");
    open_guarded_pool(NULL);
    open_tcp(&client_a, alice, 'a');
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    /* Bob knows the server's key, and Alice's session. */
    connect_tcp(&stranger, bob);
    memset(&stranger.session, 'a', sizeof stranger.session);
    zmq_setsockopt(stranger.stream, ZMQ_SUBSCRIBE, &stranger.session, sizeof stranger.session);
    say_hello(&stranger);
    ck_assert(pool_says(&the_pool, " of clients whose keys are not in", PATIENCE_S));
    client_generate(&client_a, 's', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 's', &count, NULL), END_LENGTH);
    ck_assert(!hears(&stranger, 300));
    ck_assert_int_eq(client_frame(&stranger, 0).kind, MESSAGE_NONE);
    ck_assert_uint_eq(client_status(&client_b).status_ok.sessions, 2);
    client_close(&stranger);
    close_all(&client_a);
}
END_TEST

START_TEST(an_empty_folder_lets_in_nobody_until_a_key_is_there)
{
    open_guarded_pool(NULL);
    connect_tcp(&client_a, alice);
    say_hello(&client_a);
    ck_assert(pool_says(&the_pool, " of clients whose keys are not in", PATIENCE_S));
    ck_assert(!hears(&client_a, 0));
    let_in(alice, "alice");
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    do { /* a socket that was refused does not try again */
        ck_assert_uint_lt(clock_ns(), until);
        client_close(&client_a);
        connect_tcp(&client_a, alice);
        say_hello(&client_a);
    } while (!hears(&client_a, 500));
    ck_assert_int_eq(client_next(&client_a).kind, MESSAGE_HELLO_OK);
    close_all(&client_a);
}
END_TEST

START_TEST(a_key_that_is_taken_away_takes_its_connections_sessions_and_requests_along)
{
    struct client stays;
    let_in(alice, "alice");
    let_in(bob, "bob");
    open_guarded_pool(NULL);
    open_tcp(&client_a, alice, 'a');
    open_tcp(&stays, bob, 's');
    client_generate(&client_a, 'r', "wait", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    client_generate(&stays, 's', "wait", NULL);
    ck_assert_int_eq(client_frame(&stays, 30000).kind, MESSAGE_FRAME);
    await_pool(&stays, 3, 2);
    ck_assert_int_eq(unlink(in_folder("alice")), 0);
    await_pool(&stays, 2, 1);
    /* Her sockets were closed, and connected again in vain; his were not. */
    ck_assert(pool_says(&the_pool, " of clients whose keys are not in", PATIENCE_S));
    struct message cancel = named(MESSAGE_CANCEL, 's');
    client_send(&stays, &cancel);
    ck_assert_int_eq(client_expect(&stays, MESSAGE_END).end.end.reason, END_CANCELLED);
    client_close(&stays);
    close_all(&client_a);
}
END_TEST

/* The refusal, by what its text says. */
static struct message expect_overloaded(struct client *client, const char *text)
{
    struct message no = client_expect(client, MESSAGE_ERROR);
    ck_assert_int_eq(no.error.error, PROTO_OVERLOADED);
    ck_assert_msg(memmem(no.error.text.data, no.error.text.len, text, strlen(text)) != NULL, "%.*s",
                  (int)no.error.text.len, (const char *)no.error.text.data);
    ck_assert_uint_gt(no.error.retry_after_ms, 0);
    return no;
}

START_TEST(a_key_has_its_limits_over_all_of_its_sessions)
{
    struct client second, third;
    uint64_t count;
    let_in(alice, "alice");
    open_guarded_pool("--client-sessions", "2", "--client-requests", "2", "--client-tokens", "50");
    open_tcp(&client_a, alice, 'a');
    open_tcp(&second, alice, 's');
    connect_tcp(&third, alice);
    say_hello(&third);
    expect_overloaded(&third, "has 2 sessions open; at most 2 are allowed (client-sessions)");
    client_generate(&client_a, '1', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_generate(&second, '2', "wait", NULL);
    client_expect(&second, MESSAGE_ACCEPTED);
    client_generate(&second, '3', "count 1", NULL);
    expect_overloaded(&second, "2 requests unfinished; at most 2 are allowed (client-requests)");
    /* A client of the run directory has its own. */
    client_generate(&client_b, '3', "count 1", NULL);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    struct message cancel = named(MESSAGE_CANCEL, '1');
    client_send(&client_a, &cancel);
    client_expect(&client_a, MESSAGE_END);
    client_generate(&client_a, '4', "count 60", NULL);
    ck_assert_int_eq(client_read(&client_a, '4', &count, NULL), END_LENGTH);
    client_generate(&second, '5', "count 1", NULL);
    expect_overloaded(&second, "has used its 50 tokens a minute (client-tokens): more in ");
    client_close(&second);
    client_close(&third);
    close_all(&client_a);
}
END_TEST

/* Opens the session again, with the sockets that it has. */
static void open_again(struct client *client)
{
    struct message message = {.kind = MESSAGE_NONE};
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (message.kind != MESSAGE_HELLO_OK) {
        ck_assert_uint_lt(clock_ns(), until);
        say_hello(client);
        while (message.kind != MESSAGE_HELLO_OK && hears(client, 500))
            message = client_next(client);
    }
}

static char made_up[16];

static void for_a_made_up_name(struct generation *generation)
{
    generation->tenant = bytes_of_string(made_up);
}

START_TEST(a_key_that_makes_up_tenants_gets_no_more_turns)
{
    enum { FLOOD = 120 };
    uint64_t count;
    let_in(alice, "alice");
    open_guarded_pool(NULL);
    open_tcp(&client_a, alice, 'a');
    for (unsigned i = 0; i < FLOOD; i++) {
        snprintf(made_up, sizeof made_up, "n%u", i);
        client_generate(&client_a, (uint8_t)i, "wait", for_a_made_up_name);
    }
    for (unsigned i = 0; i < FLOOD; i++)
        client_expect(&client_a, MESSAGE_ACCEPTED);
    client_generate(&client_b, 1, "count 3", NULL);
    client_generate(&client_b, 2, "count 3", NULL);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    client_expect(&client_b, MESSAGE_ACCEPTED);
    uint32_t running = client_status(&client_b).status_ok.running;
    /* Four slots are given up: two for the key, two for the other. Each tenant of a turn of its own would
     * take them all. */
    for (uint8_t i = 0; i < 4; i++) {
        struct message message = named(MESSAGE_CANCEL, i);
        client_send(&client_a, &message);
        client_expect(&client_a, MESSAGE_END);
    }
    ck_assert_int_eq(client_read(&client_b, 1, &count, NULL), END_LENGTH);
    ck_assert_int_eq(client_read(&client_b, 2, &count, NULL), END_LENGTH);
    ck_assert_uint_le(client_status(&client_b).status_ok.running, running);
    ck_assert_uint_gt(client_status(&client_b).status_ok.queued, FLOOD - running - 10);
    close_all(&client_a);
}
END_TEST

START_TEST(the_limits_of_a_key_outlive_the_broker)
{
    let_in(alice, "alice");
    open_guarded_pool("--client-requests", "2", NULL);
    open_tcp(&client_a, alice, 'a');
    for (uint8_t name = '1'; name <= '2'; name++) {
        client_generate(&client_a, name, "wait", NULL);
        client_expect(&client_a, MESSAGE_ACCEPTED);
    }
    kill(pool_broker_pid(&the_pool), SIGKILL);
    open_again(&client_a);
    struct client second;
    open_tcp(&second, alice, 's'); /* another session, the same key */
    client_generate(&second, '3', "count 1", NULL);
    expect_overloaded(&second, "2 requests unfinished; at most 2 are allowed (client-requests)");
    client_close(&second);
    client_close(&client_b); /* whose session the next broker does not know */
    close_pool();
}
END_TEST

START_TEST(texts_to_tokenize_count_as_tokens_of_the_key)
{
    struct message question = {
        .kind = MESSAGE_TOKENIZE, .tokenize.has_text = true, .tokenize.text = BYTES_LITERAL("ab")};
    struct client second;
    let_in(alice, "alice");
    open_guarded_pool("--client-tokens", "3", NULL);
    open_tcp(&client_a, alice, 'a');
    open_tcp(&second, alice, 's');
    for (int i = 0; i < 2; i++) { /* two ids each */
        client_send(&client_a, &question);
        ck_assert_uint_eq(client_expect(&client_a, MESSAGE_TOKENIZE_OK).tokenize_ok.ids.n, 2);
    }
    question.tokenize.ref = 77;
    client_send(&second, &question);
    struct message no =
        expect_overloaded(&second, "has used its 3 tokens a minute (client-tokens): more in ");
    ck_assert_uint_eq(no.error.ref, 77);
    ck_assert_int_eq(no.error.of, MESSAGE_TOKENIZE);
    client_generate(&second, '1', "count 1", NULL);
    expect_overloaded(&second, "has used its 3 tokens a minute (client-tokens): more in ");
    client_send(&client_b, &question); /* it has no key */
    client_expect(&client_b, MESSAGE_TOKENIZE_OK);
    client_close(&second);
    close_all(&client_a);
}
END_TEST

/* What is encrypted takes more than what it says, which alone is bounded. */
START_TEST(the_largest_message_that_is_allowed_arrives_encrypted_too)
{
    struct message generate = {.kind = MESSAGE_GENERATE};
    struct buffer out = {0};
    uint64_t count;
    char *text = malloc(PROTO_MAX_REQUEST_BYTES);
    memset(text, ' ', PROTO_MAX_REQUEST_BYTES);
    memset(&generate.generate.id, 'r', sizeof generate.generate.id);
    generation_defaults(&generate.generate.generation);
    memcpy(text, "long", 4);
    for (size_t len = PROTO_MAX_REQUEST_BYTES / 2; out.len < PROTO_MAX_REQUEST_BYTES;) {
        len += out.len > 0 ? PROTO_MAX_REQUEST_BYTES - out.len : 0;
        memcpy(text + len - 8, "|count 3", 8);
        generate.generate.generation.prompt.text = (struct bytes){text, len};
        out.len = 0;
        ck_assert_int_eq(message_encode(&generate, &out), 0);
    }
    ck_assert_uint_eq(out.len, PROTO_MAX_REQUEST_BYTES);
    let_in(alice, "alice");
    open_guarded_pool(NULL);
    open_tcp(&client_a, alice, 'a');
    ck_assert_int_eq(zmq_send(client_a.control, out.data, out.len, 0), (int)out.len);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 3);
    buffer_deinit(&out);
    free(text);
    close_all(&client_a);
}
END_TEST

/* Subscribes and joins, until the welcome comes or an error on the DEALER, which is returned. */
static struct message subscribe_and_join(struct client *client)
{
    struct message join = {.kind = MESSAGE_JOIN, .join = {.nonce = 7}}, message = {.kind = MESSAGE_NONE};
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &client->session, sizeof client->session);
    while (message.kind != MESSAGE_ERROR && message.kind != MESSAGE_WELCOME) {
        ck_assert_uint_lt(clock_ns(), until);
        client_send(client, &join);
        message = client_frame(client, 100);
        if (message.kind != MESSAGE_WELCOME && hears(client, 0))
            message = client_next(client);
    }
    return message;
}

/* The same once there is room again. */
static void await_welcome(struct client *client)
{
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (subscribe_and_join(client).kind != MESSAGE_WELCOME)
        ck_assert_uint_lt(clock_ns(), until);
}

static void expect_no_more_subscriptions(const struct message *message, const char *text)
{
    ck_assert_int_eq(message->kind, MESSAGE_ERROR);
    ck_assert_int_eq(message->error.error, PROTO_OVERLOADED);
    ck_assert_int_eq(message->error.of, MESSAGE_JOIN);
    ck_assert_uint_gt(message->error.retry_after_ms, 0);
    ck_assert_uint_eq(message->error.text.len, strlen(text));
    ck_assert_mem_eq(message->error.text.data, text, strlen(text));
}

START_TEST(a_key_has_so_many_subscriptions_over_all_of_its_connections)
{
    struct client second, third, other;
    uint64_t count;
    let_in(alice, "alice");
    let_in(bob, "bob");
    open_guarded_pool("--client-subscriptions", "2", NULL);
    open_tcp(&client_a, alice, 'a');
    open_tcp(&second, alice, 's');
    greet_tcp(&third, alice, 't');
    struct message no = subscribe_and_join(&third);
    expect_no_more_subscriptions(
        &no,
        "this client's key has 2 subscriptions of the stream; at most 2 are allowed (client-subscriptions)");
    ck_assert(pool_says(&the_pool,
                        " that exceeded the 2 subscriptions of their client's key "
                        "(client-subscriptions), the last of alice",
                        PATIENCE_S));
    open_tcp(&other, bob, 'o'); /* who has his own */
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    client_close(&second); /* and there is room: the socket of the third connects again by itself */
    await_welcome(&third);
    client_close(&third);
    client_close(&other);
    close_all(&client_a);
}
END_TEST

/* Subscribes to so many sessions that are nobody's on one connection. */
static void subscribe_to_many(struct client *client, unsigned n)
{
    struct id128 topic = {{'x'}};
    for (unsigned i = 0; i < n; i++) {
        memcpy(&topic.bytes[4], &i, sizeof i);
        zmq_setsockopt(client->stream, ZMQ_SUBSCRIBE, &topic, sizeof topic);
    }
}

START_TEST(subscriptions_of_one_connection_count_each)
{
    let_in(alice, "alice");
    open_guarded_pool("--client-subscriptions", "5", NULL);
    open_tcp(&client_a, alice, 'a');
    subscribe_to_many(&client_a, 4);
    struct message pong = {.kind = MESSAGE_PING};
    client_send(&client_a, &pong);
    client_expect(&client_a, MESSAGE_PONG);
    struct client second;
    greet_tcp(&second, alice, 's');
    struct message no = subscribe_and_join(&second);
    expect_no_more_subscriptions(
        &no,
        "this client's key has 5 subscriptions of the stream; at most 5 are allowed (client-subscriptions)");
    for (unsigned i = 0; i < 4; i++) { /* given back one by one, too */
        struct id128 topic = {{'x'}};
        memcpy(&topic.bytes[4], &i, sizeof i);
        zmq_setsockopt(client_a.stream, ZMQ_UNSUBSCRIBE, &topic, sizeof topic);
    }
    await_welcome(&second);
    client_close(&second);
    close_all(&client_a);
}
END_TEST

START_TEST(what_one_key_may_say_to_the_stream_it_does_not_take_from_another)
{
    enum { GREEDY = 6, TOPICS = 250, SOME = 40 };
    struct client greedy[GREEDY], other;
    let_in(alice, "alice");
    let_in(bob, "bob");
    open_guarded_pool(NULL);
    open_tcp(&client_a, alice, 'a');
    for (int i = 0; i < GREEDY; i++) {
        connect_tcp(&greedy[i], alice);
        subscribe_to_many(&greedy[i], TOPICS);
    }
    ck_assert_msg(pool_says(&the_pool,
                            "with more subscriptions than 65536 bytes of one client's key, or than 1024 "
                            "more a second",
                            PATIENCE_S),
                  "%s", pool_log(&the_pool));
    connect_tcp(&other, bob);
    memset(&other.session, 'o', sizeof other.session);
    subscribe_to_many(&other, SOME);
    say_hello(&other);
    client_expect(&other, MESSAGE_HELLO_OK);
    ck_assert_int_eq(subscribe_and_join(&other).kind, MESSAGE_WELCOME);
    ck_assert_ptr_null(strstr(pool_log(&the_pool), "of all and")); /* what is there for all was not touched */
    for (int i = 0; i < GREEDY; i++)
        client_close(&greedy[i]);
    client_close(&other);
    close_all(&client_a);
}
END_TEST

static void expect_refusal(int status, const char *text, const char *option, const char *value,
                           const char *other, const char *other_value)
{
    struct pool pool = {0};
    int r = pool_fails(&pool, PATIENCE_S, fake_model(&pool, "ok"), "--tcp", "127.0.0.1:5998", option, value,
                       other, other_value, NULL);
    ck_assert_int_eq(r, status);
    ck_assert_msg(strstr(pool_log(&pool), text) && pool_log_lines(&pool) == 1, "%s", pool_log(&pool));
    pool_forget(&pool);
}

START_TEST(a_folder_of_keys_that_makes_no_sense_is_one_line)
{
    char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/key", the_pool.rundir);
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    expect_refusal(2, "client-keys: requires curve-key", "--client-keys", folder, NULL, NULL);
    expect_refusal(2, "any-client and client-keys exclude each other", "--any-client", "--client-keys",
                   folder, NULL);
    expect_refusal(1, "client-keys: /nowhere: No such file", "--curve-key", path, "--client-keys",
                   "/nowhere");
    pool_forget(&the_pool);
}
END_TEST

START_TEST(beyond_this_machine_clients_need_keys_unless_it_is_said_that_they_need_none)
{
    char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/key", the_pool.rundir);
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    struct pool pool = {0};
    int r = pool_fails(&pool, PATIENCE_S, fake_model(&pool, "ok"), "--tcp", "0.0.0.0:5998", "--curve-key",
                       path, NULL);
    ck_assert_int_eq(r, 2);
    ck_assert_msg(strstr(pool_log(&pool), "give --client-keys"), "%s", pool_log(&pool));
    pool_forget(&pool);
    pool_forget(&the_pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, who_has_a_key_in_the_folder_gets_in_and_nobody_else);
    tcase_add_test(tests, an_empty_folder_lets_in_nobody_until_a_key_is_there);
    tcase_add_test(tests, a_key_that_is_taken_away_takes_its_connections_sessions_and_requests_along);
    tcase_add_test(tests, a_key_has_its_limits_over_all_of_its_sessions);
    tcase_add_test(tests, the_largest_message_that_is_allowed_arrives_encrypted_too);
    tcase_add_test(tests, texts_to_tokenize_count_as_tokens_of_the_key);
    tcase_add_test(tests, a_key_that_makes_up_tenants_gets_no_more_turns);
    tcase_add_test(tests, the_limits_of_a_key_outlive_the_broker);
    tcase_add_test(tests, a_key_has_so_many_subscriptions_over_all_of_its_connections);
    tcase_add_test(tests, subscriptions_of_one_connection_count_each);
    tcase_add_test(tests, what_one_key_may_say_to_the_stream_it_does_not_take_from_another);
    tcase_add_test(tests, beyond_this_machine_clients_need_keys_unless_it_is_said_that_they_need_none);
    tcase_add_test(tests, a_folder_of_keys_that_makes_no_sense_is_one_line);
}

int main(void)
{
    return run_tests("broker process: keys", add);
}
