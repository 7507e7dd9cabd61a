/* SPDX-License-Identifier: MIT */
/* A server key that is another pool's is told from the handshakes that fail. */

#include <quern.h>

#include "common/clock.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <zmq.h>

static void *context;
static char public_key[41], secret_key[41], other_public[41], other_secret[41];
static char endpoint[256];

static void set_up(void)
{
    context = zmq_ctx_new();
    ck_assert_int_eq(zmq_curve_keypair(public_key, secret_key), 0);
    ck_assert_int_eq(zmq_curve_keypair(other_public, other_secret), 0);
    strcpy(endpoint, "tcp://127.0.0.1:*");
}

static void tear_down(void)
{
    zmq_ctx_term(context);
}

/* A broker that has this key and says nothing, at the endpoint, which is written back. */
static void *broker_with(const char *secret)
{
    const int server = 1, linger = 0;
    size_t len = sizeof endpoint;
    void *broker = zmq_socket(context, ZMQ_ROUTER);
    zmq_setsockopt(broker, ZMQ_LINGER, &linger, sizeof linger);
    zmq_setsockopt(broker, ZMQ_CURVE_SERVER, &server, sizeof server);
    ck_assert_int_eq(zmq_setsockopt(broker, ZMQ_CURVE_SECRETKEY, secret, 41), 0);
    /* A socket that was closed may keep the port for a moment. */
    int bound;
    for (int i = 0; (bound = zmq_bind(broker, endpoint)) < 0 && errno == EADDRINUSE && i < 3000; i++)
        usleep(10000);
    ck_assert_int_eq(bound, 0);
    ck_assert_int_eq(zmq_getsockopt(broker, ZMQ_LAST_ENDPOINT, endpoint, &len), 0);
    return broker;
}

#define DISPATCH_UNTIL(client, condition)                                                                    \
    do {                                                                                                     \
        for (uint64_t begun = clock_ns(); !(condition) && clock_ns() - begun < 60 * CLOCK_NS_PER_S;)         \
            ck_assert_int_ge(quern_dispatch(client, 10, NULL), 0);                                           \
        ck_assert(condition);                                                                                \
    } while (0)

START_TEST(handshakes_that_fail_in_a_row_are_counted_until_one_succeeds)
{
    struct quern *client = NULL;
    void *broker = broker_with(other_secret);
    ck_assert_int_eq(quern_connect_begin(endpoint, public_key, NULL, &client, NULL), 0);
    quern_set_patience(client, 120000);
    ck_assert_uint_eq(quern_failed_handshakes(client), 0);
    DISPATCH_UNTIL(client, quern_failed_handshakes(client) >= 3);
    ck_assert(!quern_is_open(client));
    zmq_close(broker);
    broker = broker_with(secret_key);
    DISPATCH_UNTIL(client, quern_failed_handshakes(client) == 0);
    quern_free(client);
    zmq_close(broker);
}
END_TEST

START_TEST(a_broker_that_is_not_there_fails_no_handshake)
{
    struct quern *client = NULL;
    /* A port that is taken, on which nobody listens. */
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof address;
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&address, len), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&address, &len), 0);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", ntohs(address.sin_port));
    ck_assert_int_eq(quern_connect_begin(endpoint, public_key, NULL, &client, NULL), 0);
    for (int i = 0; i < 30; i++)
        ck_assert_int_ge(quern_dispatch(client, 10, NULL), 0);
    ck_assert_uint_eq(quern_failed_handshakes(client), 0);
    quern_free(client);
    close(fd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 110);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, handshakes_that_fail_in_a_row_are_counted_until_one_succeeds);
    tcase_add_test(tests, a_broker_that_is_not_there_fails_no_handshake);
}

int main(void)
{
    return run_tests("client/handshakes", add);
}
