/* SPDX-License-Identifier: MIT */
/* The broker as a process, told to end while there is still work: what it waits for, and for how long. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zmq.h>

/* Reads the end of request `name`: it was not waited for. */
static void expect_stopped(struct client *client, uint8_t name)
{
    uint64_t count;
    enum proto_error error;
    ck_assert_int_eq(client_read(client, name, &count, &error), END_ERROR);
    ck_assert_int_eq(error, PROTO_DRAINING);
}

START_TEST(what_is_not_finished_when_the_time_is_up_ends_and_the_broker_with_it)
{
    open_pool("--drain-seconds", "1", NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    client_generate(&client_a, 'd', "deaf", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    kill(the_pool.broker, SIGTERM);
    expect_stopped(&client_a, 'd');
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    ck_assert(pool_says(&the_pool, "2 requests not finished after 1 s", 0));
    close_pool();
}
END_TEST

START_TEST(what_waits_in_the_queue_ends_too_when_the_time_is_up)
{
    open_pool("--drain-seconds", "1", NULL);
    for (uint8_t i = 0; i < 12; i++)
        client_generate(&client_a, i, "wait", NULL);
    for (int i = 0; i < 12; i++)
        client_expect(&client_a, MESSAGE_ACCEPTED);
    kill(the_pool.broker, SIGTERM);
    for (int i = 0; i < 12; i++) {
        struct message end = client_expect(&client_a, MESSAGE_END);
        ck_assert_int_eq(end.end.end.error, PROTO_DRAINING);
    }
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

START_TEST(a_draining_broker_finishes_what_takes_less_than_its_time)
{
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining: 1 request to finish", PATIENCE_S));
    client_generate(&client_a, 'n', "count 1", NULL);
    ck_assert_int_eq(expect_error(&client_a), PROTO_DRAINING);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client_a, &cancel);
    ck_assert_int_eq(client_read(&client_a, 'w', &count, NULL), END_CANCELLED);
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

START_TEST(a_client_that_never_reads_does_not_keep_a_draining_broker)
{
    enum { QUESTIONS = 6000 }; /* their answers fill both pipes and wait behind them */
    uint64_t count;
    open_pool(NULL);
    client_generate(&client_a, 'r', "count 3000", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    struct message question = {.kind = MESSAGE_STATUS}, replay = named(MESSAGE_REPLAY, 'r');
    for (int i = 0; i < QUESTIONS; i++)
        client_send(&client_a, &question);
    for (int i = 0; i < 100; i++)
        client_send(&client_a, &replay);
    client_open(&client_b, &the_pool, 'b'); /* all that is taken by the broker now */
    client_close(&client_b);
    ck_assert_int_eq(pool_stop(&the_pool, SIGTERM, PATIENCE_S), 0);
    close_pool();
}
END_TEST

/* Reads by replays all that there is of request `name`. */
static uint64_t replay_all(struct client *client, uint8_t name)
{
    struct message replay = named(MESSAGE_REPLAY, name);
    for (;;) {
        client_send(client, &replay);
        struct message page = client_expect(client, MESSAGE_REPLAY_OK);
        replay.replay.next = page.replay_ok.next;
        if (page.replay_ok.done)
            return page.replay_ok.next;
    }
}

START_TEST(a_draining_broker_stays_for_who_has_not_said_to_have_what_is_his)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_tells(&client_a);
    client_generate(&client_a, 'r', "count 3000", NULL);
    client_expect(&client_a, MESSAGE_END);
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining: 0 requests", PATIENCE_S));
    for (int turns = 0; turns < 20; turns++) /* it would have left in one of them */
        client_status(&client_b);
    client_close(&client_b);
    ck_assert_uint_eq(replay_all(&client_a, 'r'), 3000);
    client_taken(&client_a, 'r');
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

START_TEST(a_draining_broker_does_not_stay_for_who_has_left)
{
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    client_tells(&client_a);
    client_tells(&client_b);
    client_generate(&client_a, 'r', "count 10", NULL);
    client_expect(&client_a, MESSAGE_END);
    client_generate(&client_b, 'r', "count 10", NULL);
    client_expect(&client_b, MESSAGE_END);
    client_close(&client_b); /* as one that died */
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining: 0 requests", PATIENCE_S));
    struct message bye = {.kind = MESSAGE_BYE};
    client_send(&client_a, &bye);
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_ends_hands_over_what_it_has_however_often_that_happens)
{
    uint64_t count;
    open_pool("--workers", "2", NULL);
    client_generate(&client_a, 'l', "leave 3", NULL); /* once more than workers may die of it */
    ck_assert_int_eq(client_read(&client_a, 'l', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 9);
    ck_assert_uint_eq(client_status(&client_a).status_ok.moved, 3);
    close_pool();
}
END_TEST

START_TEST(a_worker_that_ends_alone_has_its_time_and_the_next_one_goes_on)
{
    uint64_t count;
    open_pool("--drain-seconds", "1", NULL);
    client_generate(&client_a, 'l', "leave 1", NULL);
    ck_assert_int_eq(client_read(&client_a, 'l', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 9);
    ck_assert_uint_eq(client_status(&client_a).status_ok.workers.items[0].restarts, 1);
    close_pool();
}
END_TEST

static int n_sockets(void)
{
    char path[RUNDIR_PATH_MAX + 300];
    struct stat st;
    int n = 0;
    DIR *dir = opendir(the_pool.rundir);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", the_pool.rundir, entry->d_name);
        n += lstat(path, &st) == 0 && S_ISSOCK(st.st_mode);
    }
    closedir(dir);
    return n;
}

START_TEST(a_pool_whose_broker_stands_still_leaves_no_socket_behind)
{
    open_pool(NULL);
    ck_assert_int_gt(n_sockets(), 2);
    ck_assert_int_eq(kill(pool_broker_pid(&the_pool), SIGSTOP), 0);
    kill(the_pool.broker, SIGTERM);
    kill(the_pool.broker, SIGINT); /* the same one twice may be one */
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 1);
    ck_assert_int_eq(n_sockets(), 0);
    client_close(&client_a);
    pool_forget(&the_pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_worker_that_ends_hands_over_what_it_has_however_often_that_happens);
    tcase_add_test(tests, a_worker_that_ends_alone_has_its_time_and_the_next_one_goes_on);
    tcase_add_test(tests, a_draining_broker_stays_for_who_has_not_said_to_have_what_is_his);
    tcase_add_test(tests, a_draining_broker_does_not_stay_for_who_has_left);
    tcase_add_test(tests, what_is_not_finished_when_the_time_is_up_ends_and_the_broker_with_it);
    tcase_add_test(tests, what_waits_in_the_queue_ends_too_when_the_time_is_up);
    tcase_add_test(tests, a_draining_broker_finishes_what_takes_less_than_its_time);
    tcase_add_test(tests, a_client_that_never_reads_does_not_keep_a_draining_broker);
    tcase_add_test(tests, a_pool_whose_broker_stands_still_leaves_no_socket_behind);
}

int main(void)
{
    return run_tests("broker process: drain", add);
}
