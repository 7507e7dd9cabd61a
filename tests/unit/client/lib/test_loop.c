/* SPDX-License-Identifier: MIT */
/* Waiting for many clients at once: any of them ends it, as does a descriptor, and nothing else. */

#include <quern.h>

#include "common/clock.h"
#include "tests/unit/run.h"

#include <string.h>
#include <unistd.h>
#include <zmq.h>

#define MANY    40    /* more than quern_wait has room for without asking for memory */
#define LONG_MS 20000 /* a wait that must end sooner */

static void *context, *broker;
static char endpoint[256];
static struct quern *clients[MANY];
static uint8_t routing_ids[MANY][256];
static size_t id_lens[MANY];

/* Clients that have said hello, one after the other, to a broker that answers nothing by itself. */
static void set_up(void)
{
    uint8_t frame[4096];
    size_t len = sizeof endpoint;
    const int linger = 0;
    context = zmq_ctx_new();
    broker = zmq_socket(context, ZMQ_ROUTER);
    zmq_setsockopt(broker, ZMQ_LINGER, &linger, sizeof linger);
    ck_assert_int_eq(zmq_bind(broker, "tcp://127.0.0.1:*"), 0);
    ck_assert_int_eq(zmq_getsockopt(broker, ZMQ_LAST_ENDPOINT, endpoint, &len), 0);
    for (int i = 0; i < MANY; i++) {
        ck_assert_int_eq(quern_connect_begin(endpoint, NULL, NULL, &clients[i], NULL), 0);
        const int id_len = zmq_recv(broker, routing_ids[i], sizeof routing_ids[i], 0);
        ck_assert_int_gt(id_len, 0);
        id_lens[i] = (size_t)id_len;
        ck_assert_int_gt(zmq_recv(broker, frame, sizeof frame, 0), 0);
    }
    for (int i = 0; i < MANY; i++) /* one that was used has something to do */
        quern_dispatch(clients[i], 1, NULL);
}

static void tear_down(void)
{
    for (int i = 0; i < MANY; i++)
        clients[i] = quern_free(clients[i]);
    zmq_close(broker);
    zmq_ctx_term(context);
}

/* How long it waits, in milliseconds. */
static uint64_t wait_for(size_t n, int fd, int timeout_ms)
{
    const uint64_t begun = clock_ns();
    ck_assert_int_eq(quern_wait(clients, n, fd, timeout_ms), 0);
    return (clock_ns() - begun) / CLOCK_NS_PER_MS;
}

START_TEST(the_last_of_many_clients_ends_a_wait)
{
    ck_assert_uint_ge(wait_for(MANY, -1, 30), 29);
    ck_assert_int_gt(zmq_send(broker, routing_ids[MANY - 1], id_lens[MANY - 1], ZMQ_SNDMORE), 0);
    ck_assert_int_eq(zmq_send(broker, "?", 1, 0), 1);
    ck_assert_uint_lt(wait_for(MANY, -1, LONG_MS), LONG_MS);
    ck_assert_uint_ge(wait_for(MANY - 1, -1, 30), 29); /* the others have nothing to do */
    quern_dispatch(clients[MANY - 1], 0, NULL);        /* which takes it */
    ck_assert_uint_ge(wait_for(MANY, -1, 30), 29);
}
END_TEST

/* As many as have room, and one more. */
START_TEST(a_descriptor_ends_a_wait_for_any_number_of_clients)
{
    int ends[2];
    char byte;
    ck_assert_int_eq(pipe(ends), 0);
    for (size_t n = 0; n <= MANY; n += n == 16 ? 1 : 8) {
        ck_assert_uint_ge(wait_for(n, ends[0], 10), 9);
        ck_assert_int_eq(write(ends[1], "x", 1), 1);
        ck_assert_uint_lt(wait_for(n, ends[0], LONG_MS), LONG_MS);
        ck_assert_int_eq(read(ends[0], &byte, 1), 1);
    }
    close(ends[0]);
    close(ends[1]);
}
END_TEST

/* Else the program that waits would learn of it only when another client has something to do. */
START_TEST(a_client_that_is_broken_is_not_waited_for)
{
    struct quern *client = clients[MANY - 1];
    quern_set_patience(client, 0);
    while (quern_dispatch(client, 1, NULL) >= 0)
        ;
    ck_assert_uint_lt(wait_for(MANY, -1, LONG_MS), LONG_MS);
    ck_assert_uint_ge(wait_for(MANY - 1, -1, 30), 29);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 110);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_last_of_many_clients_ends_a_wait);
    tcase_add_test(tests, a_descriptor_ends_a_wait_for_any_number_of_clients);
    tcase_add_test(tests, a_client_that_is_broken_is_not_waited_for);
}

int main(void)
{
    return run_tests("client/loop", add);
}
