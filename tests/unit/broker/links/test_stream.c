/* SPDX-License-Identifier: MIT */
/* Who listens, as the stream keeps account of it. Within the process, where nothing bounds what a subscriber
 * sends; what needs connections that end has a socket on the disk. */

#include "tests/unit/run.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/wire/connections.h"
#include "broker/wire/intake.h"
#include "broker/links/stream.h"
#include "common/clock.h"
#include "common/files/rundir.h"

enum { SHARDS = 3 };

static void *context, *stranger;
static struct stream stream;

static int n_set; /* subscriptions that libzmq was told to accept */

/* Stands in for libzmq's. */
int zmq_setsockopt(void *socket, int option, const void *value, size_t len)
{
    int (*real)(void *, int, const void *, size_t) =
        (int (*)(void *, int, const void *, size_t))dlsym(RTLD_NEXT, "zmq_setsockopt");
    n_set += option == ZMQ_SUBSCRIBE && socket != stranger;
    return real(socket, option, value, len);
}

/* The connection that messages came by, of a client with KEY; -1: as libzmq says. */
static int came_by = -1;
#define KEY 3

const char *zmq_msg_gets(const zmq_msg_t *message, const char *property)
{
    const char *(*real)(const zmq_msg_t *, const char *) =
        (const char *(*)(const zmq_msg_t *, const char *))dlsym(RTLD_NEXT, "zmq_msg_gets");
    return came_by >= 0 && strcmp(property, "User-Id") == 0 ? "3" : real(message, property);
}

int zmq_msg_get(const zmq_msg_t *message, int property)
{
    int (*real)(const zmq_msg_t *, int) = (int (*)(const zmq_msg_t *, int))dlsym(RTLD_NEXT, "zmq_msg_get");
    return came_by >= 0 && property == ZMQ_SRCFD ? came_by : real(message, property);
}

static void set_up(void)
{
    struct error err;
    int unlimited = 0;
    context = zmq_ctx_new();
    ck_assert_int_eq(stream_init(&stream, context, SHARDS, 7, &err), 0);
    for (int i = 0; i < SHARDS; i++) {
        char endpoint[] = "inproc://stream-0";
        endpoint[sizeof endpoint - 2] = (char)('0' + i);
        zmq_setsockopt(stream.shards[i], ZMQ_RCVHWM, &unlimited, sizeof unlimited);
        ck_assert_int_eq(zmq_bind(stream.shards[i], endpoint), 0);
    }
    stranger = zmq_socket(context, ZMQ_XSUB);
    zmq_setsockopt(stranger, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(stranger, ZMQ_LINGER, &unlimited, sizeof unlimited);
    ck_assert_int_eq(zmq_connect(stranger, "inproc://stream-1"), 0);
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
    stream_woken(&stream);
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
    zmq_pollitem_t item = {.fd = stream.fd, .events = ZMQ_POLLIN};
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

/* A listener to the session on that shard. */
static void *listen_on(int shard, uint32_t number)
{
    char endpoint[] = "inproc://stream-0";
    endpoint[sizeof endpoint - 2] = (char)('0' + shard);
    struct id128 session = session_of(number);
    void *listener = zmq_socket(context, ZMQ_SUB);
    zmq_setsockopt(listener, ZMQ_SUBSCRIBE, &session, sizeof session);
    ck_assert_int_eq(zmq_connect(listener, endpoint), 0);
    return listener;
}

static void publish(uint32_t number, const char *text)
{
    struct id128 session = session_of(number);
    stream_publish(&stream, &session, sizeof session, text, strlen(text));
}

static void forward(uint32_t number, const char *text)
{
    struct id128 session = session_of(number);
    zmq_msg_t topic, payload;
    zmq_msg_init_size(&topic, sizeof session);
    zmq_msg_init_size(&payload, strlen(text));
    memcpy(zmq_msg_data(&topic), &session, sizeof session);
    memcpy(zmq_msg_data(&payload), text, strlen(text));
    stream_forward(&stream, &topic, &payload);
    ck_assert_uint_eq(zmq_msg_size(&payload), 0);
    zmq_msg_close(&topic);
    zmq_msg_close(&payload);
}

/* Whether that is the next that it hears; NULL: nothing. */
static bool hears(void *listener, const char *text)
{
    char topic[64], payload[64];
    if (zmq_recv(listener, topic, sizeof topic, ZMQ_DONTWAIT) < 0)
        return !text;
    int n = zmq_recv(listener, payload, sizeof payload, ZMQ_DONTWAIT);
    return text && n == (int)strlen(text) && memcmp(payload, text, (size_t)n) == 0;
}

START_TEST(a_session_is_heard_on_every_shard_that_it_listens_on)
{
    void *first = listen_on(0, 5), *second = listen_on(2, 5), *other = listen_on(2, 6);
    take_all();
    publish(5, "published");
    forward(5, "forwarded");
    ck_assert(hears(first, "published") && hears(first, "forwarded") && hears(first, NULL));
    ck_assert(hears(second, "published") && hears(second, "forwarded") && hears(second, NULL));
    ck_assert(hears(other, NULL));
    zmq_close(first);
    zmq_close(second);
    zmq_close(other);
}
END_TEST

/* Sending may read what says that something came, so the shard is looked at without being told. */
START_TEST(nothing_that_came_is_missed_for_what_was_sent)
{
    void *listener = listen_on(1, 5);
    take_all();
    for (uint32_t i = 6; i < 200; i++) {
        say(1, i);
        publish(5, "something");
        bool has_left;
        struct id128 left;
        if (stream.ready == 0)
            stream_woken(&stream);
        while (stream_take(&stream, &has_left, &left))
            ;
        ck_assert(has_listener(i));
    }
    zmq_close(listener);
}
END_TEST

START_TEST(who_was_forgotten_for_want_of_room_still_hears)
{
    struct sessions none = {0};
    void *listener = listen_on(2, STREAM_MAX_LISTENED);
    take_all();
    for (uint32_t i = 0; i < STREAM_MAX_LISTENED / 2; i++)
        say(1, i);
    take_all();
    stream_make_room(&stream, &none);
    ck_assert(!has_listener(STREAM_MAX_LISTENED));
    publish(STREAM_MAX_LISTENED, "published");
    forward(STREAM_MAX_LISTENED, "forwarded");
    ck_assert(hears(listener, "published") && hears(listener, "forwarded"));
    void *second = listen_on(0, STREAM_MAX_LISTENED);
    take_all();
    publish(STREAM_MAX_LISTENED, "again");
    ck_assert(hears(second, "again"));
    ck_assert(hears(listener, "again"));
    zmq_close(listener);
    zmq_close(second);
}
END_TEST

/* Its messages are there and not taken yet; libzmq has let go of it. */
static int wait_until_ended(void *monitor)
{
    struct __attribute__((packed)) {
        uint16_t event;
        int32_t fd;
    } news = {0};
    char endpoint[256];
    ck_assert_int_eq(zmq_recv(monitor, &news, sizeof news, 0), sizeof news);
    ck_assert_int_ge(zmq_recv(monitor, endpoint, sizeof endpoint, 0), 0);
    ck_assert_int_eq(news.event, ZMQ_EVENT_DISCONNECTED);
    for (int i = 0; i < 10000 && intake_stands(news.fd); i++)
        usleep(1000);
    ck_assert(!intake_stands(news.fd));
    return news.fd;
}

static void *listen_at(const char *endpoint, uint32_t number)
{
    struct id128 session = session_of(number);
    void *listener = zmq_socket(context, ZMQ_XSUB);
    int none = 0;
    uint8_t message[1 + sizeof session] = {1};
    memcpy(message + 1, &session, sizeof session);
    zmq_setsockopt(listener, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_connect(listener, endpoint), 0);
    ck_assert_int_ge(zmq_send(listener, message, sizeof message, 0), 0);
    zmq_pollitem_t item = {.fd = stream.fd, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, 30000), 1);
    return listener;
}

/* libzmq would keep the entry for ever, and the connection's memory for as long as it likes. */
START_TEST(a_subscription_of_a_connection_that_ended_is_not_set)
{
    char dir[RUNDIR_PATH_MAX + 1], endpoint[RUNDIR_PATH_MAX + 32];
    struct error err;
    ck_assert_int_eq(rundir_temporary(dir, &err), 0);
    snprintf(endpoint, sizeof endpoint, "ipc://%s/stream", dir);
    ck_assert_int_eq(zmq_socket_monitor(stream.shards[0], "inproc://news", ZMQ_EVENT_DISCONNECTED), 0);
    void *monitor = zmq_socket(context, ZMQ_PAIR);
    ck_assert_int_eq(zmq_connect(monitor, "inproc://news"), 0);
    intake_listen_for(INTAKE_SUBSCRIPTIONS);
    ck_assert_int_eq(zmq_bind(stream.shards[0], endpoint), 0);
    intake_listen_for(INTAKE_ANYTHING);
    connections_caught_up();
    take_all();

    n_set = 0;
    unsigned left = 0;
    for (int i = 0; i < 100 && left == 0; i++) { /* until its message is there before its end */
        void *listener = listen_at(endpoint, 5);
        usleep(20000);
        zmq_close(listener);
        int fd = wait_until_ended(monitor), copy = dup(fd);
        ck_assert_int_ge(copy, 0); /* nobody else can get its descriptor */
        close(copy);
        for (int j = 0; j < 100 && left == 0; j++, usleep(1000))
            left += take_all();
        connections_caught_up();
        connections_caught_up();
        ck_assert(dup(fd) < 0 && errno == EBADF);
    }
    ck_assert_uint_eq(left, 1);
    ck_assert_int_eq(n_set, 0);
    ck_assert(!has_listener(5));

    void *listener = listen_at(endpoint, 5); /* one that stays */
    for (uint64_t until = clock_ns() + 30 * CLOCK_NS_PER_S; n_set == 0 && clock_ns() < until; usleep(1000))
        take_all();
    ck_assert_int_eq(n_set, 1);
    ck_assert(has_listener(5));
    zmq_close(listener);
    zmq_close(monitor);
    rundir_remove(dir);
}
END_TEST

START_TEST(many_connections_get_many_shards)
{
    ck_assert_uint_eq(stream_shards_for(0), 1);
    ck_assert_uint_eq(stream_shards_for(750), 1);
    ck_assert_uint_eq(stream_shards_for(10000), 9);
    ck_assert_uint_eq(stream_shards_for(UINT32_MAX), STREAM_MAX_SHARDS);
}
END_TEST

/* A connection of a client with a key, of which `came_by` is this end. Returns the other. */
static int connect_with_key(void)
{
    struct sockaddr_un anywhere = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&anywhere, sizeof(sa_family_t)), 0);
    intake_listen_for(INTAKE_SUBSCRIPTIONS_KEYS);
    ck_assert_int_eq(listen(listener, 1), 0);
    intake_listen_for(INTAKE_ANYTHING);
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    intake_accepted(pair[0], listener);
    close(listener);
    came_by = pair[0];
    return pair[1];
}

/* Libraries send no such thing, so it is said by another kind of socket. */
START_TEST(the_end_of_a_subscription_that_nobody_had_gives_none_back)
{
    struct client_key key = {.number = KEY};
    struct client_keys keys = {0};
    const struct allowance allowance = {.subscriptions = 10};
    HASH_ADD(by_number, keys.by_number, number, sizeof key.number, &key);
    stream_guard(&stream, &keys, &allowance);
    int other = connect_with_key(), none = 0;
    zmq_close(stranger);
    take_all();
    stranger = zmq_socket(context, ZMQ_DEALER);
    zmq_setsockopt(stranger, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_connect(stranger, "inproc://stream-1"), 0);
    for (uint32_t number = 1; number <= 3; number++)
        say(1, number);
    ck_assert_uint_eq(take_all(), 0);
    ck_assert_uint_eq(intake_subscriptions_of(KEY), 3);
    for (uint32_t number = 7; number <= 9; number++)
        say(0, number);
    ck_assert_uint_eq(take_all(), 0);
    ck_assert_uint_eq(intake_subscriptions_of(KEY), 3);
    say(0, 2);
    say(0, 2);
    ck_assert_uint_eq(take_all(), 1);
    ck_assert_uint_eq(intake_subscriptions_of(KEY), 2);
    close(came_by);
    close(other);
    came_by = -1;
    connections_caught_up();
    connections_caught_up();
    HASH_CLEAR(by_number, keys.by_number);
    stream_guard(&stream, NULL, NULL);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_last_subscription_that_ends_is_a_leaving);
    tcase_add_test(tests, an_ended_connection_leaves_all_its_sessions);
    tcase_add_test(tests, subscriptions_of_strangers_keep_nobody_out);
    tcase_add_test(tests, a_session_is_heard_on_every_shard_that_it_listens_on);
    tcase_add_test(tests, nothing_that_came_is_missed_for_what_was_sent);
    tcase_add_test(tests, who_was_forgotten_for_want_of_room_still_hears);
    tcase_add_test(tests, a_subscription_of_a_connection_that_ended_is_not_set);
    tcase_add_test(tests, many_connections_get_many_shards);
    tcase_add_test(tests, the_end_of_a_subscription_that_nobody_had_gives_none_back);
}

int main(void)
{
    return run_tests("stream", add);
}
