/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: garbage, strangers, and workers that die, stall or lie. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"

START_TEST(a_message_above_the_bound_costs_its_sender_the_connection_and_nobody_else)
{
    uint64_t count;
    open_pool(NULL);
    client_connect(&client_b, &the_pool);
    size_t len = PROTO_MAX_REQUEST_BYTES + 1;
    char *large = calloc(1, len);
    ck_assert_int_eq(zmq_send(client_b.control, large, len, 0), (int)len);
    free(large);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(garbage_on_every_socket_harms_nobody)
{
    uint64_t count;
    char junk[300];
    open_pool(NULL);
    client_connect(&client_b, &the_pool);
    srand(5);
    for (int i = 0; i < 300; i++) {
        for (size_t j = 0; j < sizeof junk; j++)
            junk[j] = (char)rand();
        size_t len = (size_t)rand() % sizeof junk;
        zmq_send(client_a.control, junk, len, i % 7 == 0 ? ZMQ_SNDMORE : 0);
        zmq_send(client_b.control, junk, len, 0);
    }
    zmq_send(client_a.control, "", 0, 0);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 10);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(a_request_that_kills_its_workers_is_given_up_after_three)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client_a, 'd', "die", NULL);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    ck_assert_uint_eq(count, 6);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client_a.session}};
    client_send(&client_a, &hello);
    struct message pool = client_expect(&client_a, MESSAGE_HELLO_OK);
    ck_assert_uint_eq(pool.hello_ok.models.n, 1); /* still served, by nobody for the moment */
    ck_assert_uint_eq(pool.hello_ok.models.items[0].workers, 0);
    ck_assert(bytes_equal(pool.hello_ok.models.items[0].digest, BYTES_LITERAL("0123456789abcdef")));
    client_generate(&client_a, 'r', "count 10", NULL); /* queued until it is back */
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_request_goes_on_where_a_dead_worker_was)
{
    uint64_t count;
    open_pool("--workers", "2", NULL);
    client_generate(&client_a, 'o', "once 9", NULL);
    client_generate(&client_a, 'b', "wait", NULL); /* beside it, or on the other */
    ck_assert_int_eq(client_read(&client_a, 'o', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 9);
    struct message replay = named(MESSAGE_REPLAY, 'o');
    client_send(&client_a, &replay);
    struct message page = client_expect(&client_a, MESSAGE_REPLAY_OK);
    ck_assert_uint_eq(page.replay_ok.next, 9);
    ck_assert_uint_eq(page.replay_ok.epoch.move, 1);
    struct message status = {.kind = MESSAGE_STATUS};
    client_send(&client_a, &status);
    ck_assert_uint_ge(client_expect(&client_a, MESSAGE_STATUS_OK).status_ok.moved, 1);
    close_pool();
}
END_TEST

START_TEST(a_request_that_nobody_is_left_to_go_on_with_ends_with_what_it_has)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    fake_model(&the_pool, "permanent"); /* what the next worker finds */
    client_generate(&client_a, 'o', "once 9", NULL);
    ck_assert_int_eq(client_read(&client_a, 'o', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    ck_assert_uint_eq(count, 2);
    ck_assert_int_eq(pool_wait(&the_pool, 60), 1);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_sends_garbage_is_killed_and_comes_back)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client_a, 'g', "garbage", NULL);
    ck_assert_int_eq(client_read(&client_a, 'g', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_makes_no_progress_is_killed_and_the_other_serves_on)
{
    uint64_t count, started = clock_ns();
    open_pool("--workers", "2", NULL);
    client_generate(&client_a, 's', "stall", NULL);
    for (int i = 0; clock_ns() - started < 60 * CLOCK_NS_PER_S; i++) {
        struct message ping = {.kind = MESSAGE_PING};
        client_send(&client_a, &ping);
        struct message frame = client_frame(&client_a, 500);
        if (frame.kind == MESSAGE_FRAME && frame.frame.has_end) {
            ck_assert_int_eq(frame.frame.end.reason, END_LENGTH);
            break;
        }
    }
    ck_assert_uint_ge(clock_ns() - started, 9 * CLOCK_NS_PER_S);
    ck_assert_uint_lt(clock_ns() - started, 50 * CLOCK_NS_PER_S); /* a bound, whatever the machine does */
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

/* Waits until the worker's process is the incarnation, and ready. */
static void await_incarnation(uint32_t incarnation)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (;;) {
        struct message status = client_status(&client_a);
        const struct worker_status *worker = &status.status_ok.workers.items[0];
        if (worker->incarnation == incarnation && worker->state == WORKER_READY)
            return;
        ck_assert_msg(clock_ns() < until, "it is incarnation %u: %s", worker->incarnation,
                      pool_log(&the_pool));
        usleep(20000);
    }
}

START_TEST(what_a_worker_writes_on_the_board_ends_no_pool)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 's', "spoil", NULL);
    ck_assert_int_eq(client_read(&client_a, 's', &count, NULL), END_LENGTH);
    struct message status = client_status(&client_a);
    ck_assert_uint_eq(status.status_ok.workers.n, 1);
    const pid_t worker = (pid_t)status.status_ok.workers.items[0].pid;
    /* The next broker finds it, and so does the next worker. */
    ck_assert_int_eq(kill(pool_broker_pid(&the_pool), SIGKILL), 0);
    client_close(&client_a);
    client_open(&client_a, &the_pool, 'a');
    await_incarnation(1);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    await_incarnation(2);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

/* What the supervisor holds for brokers (broker/books/vault.h). */
static int open_vault(void)
{
    char path[64], target[64];
    for (int fd = 0; fd < 256; fd++) {
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)the_pool.supervisor, fd);
        ssize_t n = readlink(path, target, sizeof target - 1);
        target[n < 0 ? 0 : n] = 0;
        if (strstr(target, "quern-vault"))
            return open(path, O_RDWR | O_CLOEXEC);
    }
    return -1;
}

START_TEST(a_vault_that_was_damaged_costs_what_is_in_it_and_not_the_pool)
{
    enum { MARKS = 4096, FREE_UNIT = 100000 };
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    int vault = open_vault();
    ck_assert_int_eq(pwrite(vault, "\xff", 1, MARKS + FREE_UNIT), 1);
    close(vault);
    ck_assert_int_eq(kill(pool_broker_pid(&the_pool), SIGKILL), 0);
    client_close(&client_a);
    client_open(&client_a, &the_pool, 'a');
    ck_assert(pool_says(&the_pool, "state is damaged: its requests are lost", PATIENCE_S));
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

/* The most memory that the pool's broker has had, in MiB. */
static long broker_peak_mib(void)
{
    char path[64], line[256];
    long kib = -1;
    snprintf(path, sizeof path, "/proc/%d/status", (int)pool_broker_pid(&the_pool));
    FILE *file = fopen(path, "r");
    while (file && kib < 0 && fgets(line, sizeof line, file))
        if (sscanf(line, "VmHWM: %ld", &kib) != 1)
            kib = -1;
    if (file)
        fclose(file);
    return kib / 1024;
}

/* The worker is lost, as often as the request is tried; nobody else notices, and the broker stays small. */
static void expect_flood_to_end(const char *prompt, const char *reason)
{
    uint64_t count;
    enum proto_error error;
    open_pool(NULL);
    client_generate(&client_a, 'p', prompt, NULL);
    ck_assert_int_eq(client_read(&client_a, 'p', &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_WORKER_LOST);
    if (reason)
        ck_assert_msg(pool_says(&the_pool, reason, PATIENCE_S), "%s", pool_log(&the_pool));
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    ck_assert_int_lt(broker_peak_mib(), test_is_scaled() ? 600 : 200); /* a sanitizer keeps what is freed */
    close_pool();
}

START_TEST(a_worker_whose_message_has_parts_without_end_is_killed)
{
    expect_flood_to_end("parts", "worker-0 sent a message of more than 2 parts: killing it");
}
END_TEST

START_TEST(a_worker_whose_message_on_its_link_has_parts_is_killed)
{
    expect_flood_to_end("pieces", "worker-0 sent a message of more than 1 part: killing it");
}
END_TEST

START_TEST(a_worker_that_begins_messages_on_many_connections_fills_nothing)
{
    expect_flood_to_end("begin", NULL);
}
END_TEST

/* Whether they are too many to be taken, or are taken and too many, the machine decides. */
START_TEST(a_worker_that_repeats_an_old_frame_without_end_is_killed)
{
    expect_flood_to_end("stale", ": killing it");
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_message_above_the_bound_costs_its_sender_the_connection_and_nobody_else);
    tcase_add_test(tests, garbage_on_every_socket_harms_nobody);
    tcase_add_test(tests, a_request_that_kills_its_workers_is_given_up_after_three);
    tcase_add_test(tests, a_request_goes_on_where_a_dead_worker_was);
    tcase_add_test(tests, a_request_that_nobody_is_left_to_go_on_with_ends_with_what_it_has);
    tcase_add_test(tests, a_worker_that_sends_garbage_is_killed_and_comes_back);
    tcase_add_test(tests, a_worker_that_makes_no_progress_is_killed_and_the_other_serves_on);
    tcase_add_test(tests, what_a_worker_writes_on_the_board_ends_no_pool);
    tcase_add_test(tests, a_vault_that_was_damaged_costs_what_is_in_it_and_not_the_pool);
    tcase_add_test(tests, a_worker_whose_message_has_parts_without_end_is_killed);
    tcase_add_test(tests, a_worker_whose_message_on_its_link_has_parts_is_killed);
    tcase_add_test(tests, a_worker_that_begins_messages_on_many_connections_fills_nothing);
    tcase_add_test(tests, a_worker_that_repeats_an_old_frame_without_end_is_killed);
}

int main(void)
{
    return run_tests("broker process: intruders", add);
}
