/* SPDX-License-Identifier: MIT */
/* The broker as a process, when clients send more than it takes in: subscriptions, parts, messages without
 * end. What it holds is bounded because their connections are closed, so that is what is looked for. */

#include "tests/integration/support/zmtp.h"
#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/wire/intake.h"

static int open_raw(const char *name, const char *type)
{
    int fd = zmtp_open(the_pool.rundir, name, type);
    ck_assert_int_ge(fd, 0);
    return fd;
}

/* Subscribes to `n` topics of `len` bytes. Returns how many were sent before the connection was closed. */
static size_t subscribe(int fd, size_t n, size_t len)
{
    static uint8_t body[4096];
    size_t i;
    memset(body, 'x', sizeof body);
    body[0] = 1;
    for (i = 0; i < n; i++) {
        memcpy(body + 1, &i, sizeof i);
        if (!zmtp_send(fd, 0, body, 1 + len))
            break;
    }
    return i;
}

/* A client that comes now. Others may have been silent for too long meanwhile. */
static void expect_service(void)
{
    uint64_t count;
    client_open(&client_b, &the_pool, 'b');
    client_generate(&client_b, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_b, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 10);
    client_close(&client_b);
}

static void expect_refusals(int n)
{
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(expect_error(&client_b), PROTO_BAD_REQUEST);
}

START_TEST(a_connection_that_subscribes_without_end_is_closed)
{
    static const size_t lengths[] = {1, sizeof(struct id128), PROTO_TOPIC_BYTES, 2040};
    open_pool(NULL);
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        int fd = open_raw("stream", "XSUB");
        /* The kernel may hold some hundred KiB that nobody reads. */
        ck_assert_uint_lt(subscribe(fd, (4 << 20) / lengths[i], lengths[i]), (4 << 20) / lengths[i]);
        close(fd);
    }
    ck_assert(pool_says(&the_pool, "with more subscriptions than 16384 bytes", PATIENCE_S));
    expect_service();
    close_pool();
}
END_TEST

START_TEST(connections_that_subscribe_much_share_what_there_is_and_keep_nobody_out)
{
    enum { TOPICS = 400, CONNECTIONS = INTAKE_MAX_SUBSCRIPTION_BYTES / (TOPICS * 18) * 3 };
    int fds[CONNECTIONS], closed = 0;
    _Static_assert(TOPICS * 20 < INTAKE_MAX_SUBSCRIBER_BYTES, "each alone is within its bound");
    open_pool(NULL);
    for (int i = 0; i < CONNECTIONS; i++) {
        fds[i] = open_raw("stream", "XSUB");
        subscribe(fds[i], TOPICS, sizeof(struct id128));
    }
    ck_assert(zmtp_closes(fds[CONNECTIONS - 1], PATIENCE_S * 1000));
    expect_service();
    for (int i = 0; i < CONNECTIONS; i++) {
        closed += zmtp_closes(fds[i], 0);
        close(fds[i]);
    }
    ck_assert_int_gt(closed, CONNECTIONS / 4);
    ck_assert_int_lt(closed, CONNECTIONS);
    close_pool();
}
END_TEST

START_TEST(a_message_of_parts_without_end_costs_its_sender_the_connection)
{
    static uint8_t part[1024];
    open_pool(NULL);
    int fd = open_raw("frontend", "DEALER");
    size_t i = 0;
    while (i < 65536 && zmtp_send(fd, ZMTP_MORE, part, sizeof part))
        i++;
    ck_assert_uint_lt(i, 65536);
    close(fd);
    ck_assert(pool_says(&the_pool, "1 with a message of more than 16 parts", PATIENCE_S));
    expect_service();
    close_pool();
}
END_TEST

/* All but the last byte of the largest message. */
static int begin_message(const char *bytes)
{
    int fd = open_raw("frontend", "DEALER");
    ck_assert(zmtp_promise(fd, 0, PROTO_MAX_REQUEST_BYTES));
    ck_assert(zmtp_write(fd, bytes, PROTO_MAX_REQUEST_BYTES - 1));
    return fd;
}

START_TEST(messages_that_do_not_end_make_room_for_those_that_do)
{
    enum { ALL = INTAKE_MAX_BYTES / PROTO_MAX_REQUEST_BYTES, MORE = 8 };
    int fds[ALL + MORE];
    char *bytes = calloc(1, PROTO_MAX_REQUEST_BYTES);
    open_pool(NULL);
    for (int i = 0; i < ALL + MORE; i++)
        fds[i] = begin_message(bytes);
    ck_assert(zmtp_closes(fds[0], PATIENCE_S * 1000));
    ck_assert(pool_says(&the_pool, "when all together exceeded 256 MiB", PATIENCE_S));
    client_connect(&client_b, &the_pool);
    ck_assert_int_ge(zmq_send(client_b.control, bytes, PROTO_MAX_REQUEST_BYTES, 0), 0);
    expect_refusals(1);
    client_close(&client_b);
    ck_assert(!zmtp_closes(fds[ALL + MORE - 1], 0));
    for (int i = 0; i < ALL + MORE; i++)
        close(fds[i]);
    /* What they held has room again. */
    for (int i = 0; i < ALL / 2; i++)
        fds[i] = begin_message(bytes);
    expect_service();
    for (int i = 0; i < ALL / 2; i++) {
        ck_assert(!zmtp_closes(fds[i], 0));
        close(fds[i]);
    }
    free(bytes);
    close_pool();
}
END_TEST

START_TEST(a_client_with_many_large_messages_is_slowed_down_not_closed)
{
    enum { MESSAGES = 30 };
    char *bytes = calloc(1, PROTO_MAX_REQUEST_BYTES);
    open_pool(NULL);
    client_connect(&client_b, &the_pool);
    for (int i = 0; i < MESSAGES; i++)
        ck_assert_int_ge(zmq_send(client_b.control, bytes, PROTO_MAX_REQUEST_BYTES, 0), 0);
    expect_refusals(MESSAGES);
    client_close(&client_b);
    free(bytes);
    ck_assert_ptr_null(strstr(pool_log(&the_pool), "closed"));
    expect_service();
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_connection_that_subscribes_without_end_is_closed);
    tcase_add_test(tests, connections_that_subscribe_much_share_what_there_is_and_keep_nobody_out);
    tcase_add_test(tests, a_message_of_parts_without_end_costs_its_sender_the_connection);
    tcase_add_test(tests, messages_that_do_not_end_make_room_for_those_that_do);
    tcase_add_test(tests, a_client_with_many_large_messages_is_slowed_down_not_closed);
}

int main(void)
{
    return run_tests("broker process: floods", add);
}
