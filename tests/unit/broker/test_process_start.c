/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: how the broker starts and stops. */

#include "tests/unit/broker/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <czmq.h>

START_TEST(a_pool_starts_where_a_killed_broker_left_its_sockets)
{
    struct pool killed;
    char path[RUNDIR_PATH_MAX + 32];
    pool_start(&killed, "ok", NULL);
    ck_assert(pool_said(&killed, 0, "ready:"));
    snprintf(path, sizeof path, "%s/worker-0-1-1", killed.rundir);
    ck_assert_int_eq(access(path, F_OK), 0);
    kill(killed.pid, SIGKILL);
    ck_assert_int_eq(pool_wait(&killed), -SIGKILL);
    pool_start_in(&the_pool, killed.rundir, "ok", NULL);
    ck_assert_msg(pool_said(&the_pool, 0, "ready:"), "%s", the_pool.said);
    ck_assert_int_eq(access(path, F_OK), -1);
    client_open(&client_a, &the_pool, 'a');
    client_generate(&client_a, 'r', "count 1", NULL);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_ACCEPTED).accepted.epoch.boot, 2);
    close_pool();
}
END_TEST

START_TEST(tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it)
{
    char rundir[RUNDIR_PATH_MAX + 1], path[RUNDIR_PATH_MAX + 32], address[64], endpoint[64];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    snprintf(path, sizeof path, "%s/key", rundir);
    snprintf(address, sizeof address, "0.0.0.0:%d", 20000 + getpid() % 20000);
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1%s", strchr(address, ':'));
    zsys_handler_set(NULL);
    zcert_t *server = zcert_new(), *mine = zcert_new();
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    const char *const arguments[] = {"--tcp", address, "--curve-key", path, NULL};
    pool_start_in(&the_pool, rundir, "ok", arguments);
    ck_assert_msg(pool_said(&the_pool, 0, "ready:"), "%s", the_pool.said);

    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}}};
    client_connect(&client_a, &the_pool);
    client_connect(&client_b, &the_pool);
    zmq_disconnect(client_a.control, pool_endpoint(&the_pool, "frontend", path));
    zmq_disconnect(client_b.control, path);
    zmq_setsockopt(client_a.control, ZMQ_CURVE_SERVERKEY, zcert_public_key(server), 32);
    zmq_setsockopt(client_a.control, ZMQ_CURVE_PUBLICKEY, zcert_public_key(mine), 32);
    zmq_setsockopt(client_a.control, ZMQ_CURVE_SECRETKEY, zcert_secret_key(mine), 32);
    ck_assert_int_eq(zmq_connect(client_a.control, endpoint), 0);
    ck_assert_int_eq(zmq_connect(client_b.control, endpoint), 0);
    client_send(&client_b, &hello);
    client_send(&client_a, &hello);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_HELLO_OK).hello_ok.stream.n, 2);
    zmq_pollitem_t item = {.socket = client_b.control, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, 300), 0);
    zcert_destroy(&server);
    zcert_destroy(&mine);
    client_close(&client_b);
    close_pool();
}
END_TEST

static unsigned lines(const char *text)
{
    unsigned n = 0;
    for (; *text; text++)
        n += *text == '\n';
    return n;
}

START_TEST(a_permanent_failure_is_said_in_one_line_and_not_tried_again)
{
    static const char *const two[] = {"--workers", "2", NULL};
    pool_start(&the_pool, "permanent", two);
    ck_assert_int_eq(pool_wait(&the_pool), 1);
    ck_assert_msg(strstr(the_pool.said, "not a model") && lines(the_pool.said) == 1, "%s", the_pool.said);
    pool_stop(&the_pool);
}
END_TEST

START_TEST(a_missing_model_or_a_second_pool_is_one_line)
{
    struct pool second;
    open_pool(NULL);
    pool_start_in(&second, the_pool.rundir, "ok", NULL);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, the_pool.rundir) && lines(second.said) == 1, "%s", second.said);
    static const char *const bad_tcp[] = {"--tcp", "0.0.0.0:5999", NULL};
    char rundir[RUNDIR_PATH_MAX + 1];
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    pool_start_in(&second, rundir, "ok", bad_tcp);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, "0.0.0.0:5999") && lines(second.said) == 1, "%s", second.said);
    rundir_remove(rundir);
    close_pool();
}
END_TEST

START_TEST(requests_made_while_the_model_loads_wait_for_it)
{
    uint64_t count;
    pool_start(&the_pool, "slow", NULL);
    client_open(&client_a, &the_pool, 'a');
    client_generate(&client_a, 'r', "count 10", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(client_status(&client_a).status_ok.queued, 1);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

START_TEST(a_wrong_command_line_is_one_line_and_status_2)
{
    static const char *const lines_of_arguments[][3] = {
        {"--workers", "0", NULL}, {"--tcp", "nowhere", NULL}, {"--config", "/nonexistent", NULL}};
    for (size_t i = 0; i < sizeof lines_of_arguments / sizeof *lines_of_arguments; i++) {
        pool_start(&the_pool, "ok", lines_of_arguments[i]);
        ck_assert_int_eq(pool_wait(&the_pool), 2);
        ck_assert_msg(lines(the_pool.said) == 1, "%s", the_pool.said);
        pool_stop(&the_pool);
    }
}
END_TEST

START_TEST(a_port_in_use_is_one_line)
{
    struct pool second;
    char rundir[RUNDIR_PATH_MAX + 1], port[64];
    snprintf(port, sizeof port, "127.0.0.1:%d", 20000 + getpid() % 20000);
    const char *const tcp[] = {"--tcp", port, NULL};
    open_pool(tcp);
    ck_assert_int_eq(rundir_temporary(rundir, NULL), 0);
    pool_start_in(&second, rundir, "ok", tcp);
    ck_assert_int_eq(pool_wait(&second), 1);
    ck_assert_msg(strstr(second.said, port) && lines(second.said) == 1, "%s", second.said);
    rundir_remove(rundir);
    close_pool();
}
END_TEST

START_TEST(sigterm_refuses_new_requests_and_finishes_the_others)
{
    open_pool(NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    kill(the_pool.pid, SIGTERM);
    ck_assert(pool_said(&the_pool, 0, "draining"));
    client_generate(&client_a, 'r', "count 1", NULL);
    ck_assert_int_eq(expect_error(&client_a), PROTO_DRAINING);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client_a, &cancel);
    struct message last = client_frame(&client_a, 30000);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(pool_wait(&the_pool), 0);
    close_pool();
}
END_TEST

START_TEST(a_second_signal_ends_at_once_and_leaves_no_worker_behind)
{
    open_pool(NULL);
    pid_t worker = (pid_t)client_status(&client_a).status_ok.workers.items[0].pid;
    client_generate(&client_a, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    kill(the_pool.pid, SIGINT);
    ck_assert(pool_said(&the_pool, 0, "draining"));
    kill(the_pool.pid, SIGINT);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.error, PROTO_DRAINING);
    ck_assert_int_eq(pool_wait(&the_pool), 0);
    ck_assert_int_eq(kill(worker, 0), -1);
    close_pool();
}
END_TEST

START_TEST(a_crash_loop_stops_with_its_reason)
{
    pool_start(&the_pool, "crash", NULL);
    ck_assert_int_eq(pool_wait(&the_pool), 1);
    ck_assert_msg(strstr(the_pool.said, "killed by signal 6"), "%s", the_pool.said);
    ck_assert_uint_eq(lines(the_pool.said), 5);
    pool_stop(&the_pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_pool_starts_where_a_killed_broker_left_its_sockets);
    tcase_add_test(tests, tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it);
    tcase_add_test(tests, a_permanent_failure_is_said_in_one_line_and_not_tried_again);
    tcase_add_test(tests, a_missing_model_or_a_second_pool_is_one_line);
    tcase_add_test(tests, requests_made_while_the_model_loads_wait_for_it);
    tcase_add_test(tests, a_wrong_command_line_is_one_line_and_status_2);
    tcase_add_test(tests, a_port_in_use_is_one_line);
    tcase_add_test(tests, sigterm_refuses_new_requests_and_finishes_the_others);
    tcase_add_test(tests, a_second_signal_ends_at_once_and_leaves_no_worker_behind);
    tcase_add_test(tests, a_crash_loop_stops_with_its_reason);
}

int main(void)
{
    return run_tests("broker process: start", add);
}
