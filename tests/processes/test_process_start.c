/* SPDX-License-Identifier: MIT */
/* The broker as a process, from its sockets: how the broker starts and stops. */

#include "tests/processes/client.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <czmq.h>

#include "common/clock.h"

START_TEST(a_pool_starts_where_a_killed_broker_left_its_sockets)
{
    struct pool killed = {0};
    char path[RUNDIR_PATH_MAX + 32];
    pool_start(&killed, fake_model(&killed, "ok"), NULL);
    snprintf(path, sizeof path, "%s/worker-0-1-1", killed.rundir);
    ck_assert_int_eq(access(path, F_OK), 0);
    ck_assert_int_eq(pool_stop(&killed, SIGKILL, PATIENCE_S), 128 + SIGKILL);
    unlink(killed.log);
    strcpy(the_pool.rundir, killed.rundir);
    pool_start(&the_pool, fake_model(&the_pool, "ok"), NULL);
    ck_assert_int_eq(access(path, F_OK), -1);
    client_open(&client_a, &the_pool, 'a');
    client_generate(&client_a, 'r', "count 1", NULL);
    ck_assert_uint_gt(client_expect(&client_a, MESSAGE_ACCEPTED).accepted.epoch.boot, 1);
    close_pool();
}
END_TEST

/* The signal comes while the program is being loaded; its owner has no child any more to wait for. */
START_TEST(a_private_pool_whose_owner_died_before_it_began_leaves_nothing)
{
    struct pool pool = {0};
    char model[4096], program[4096], rundir[RUNDIR_PATH_MAX + 1];
    snprintf(model, sizeof model, "%s", fake_model(&pool, "ok"));
    snprintf(program, sizeof program, "%s", build_path("tests/processes/quern-broker"));
    strcpy(rundir, pool.rundir);
    pid_t pid = fork_child();
    if (pid == 0) {
        sigset_t end;
        sigemptyset(&end);
        sigaddset(&end, SIGTERM);
        sigprocmask(SIG_BLOCK, &end, NULL); /* as client/command/pool/private_pool.c does */
        raise(SIGTERM);
        execl(program, program, "--rundir", rundir, "--workers", "1", "--owner", "1", "--", model, NULL);
        _exit(127);
    }
    int status;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(WIFEXITED(status), "%d", status);
    ck_assert_int_eq(access(rundir, F_OK), -1);
    pool_forget(&pool);
}
END_TEST

/* Files of the directory that are no sockets, and memory that is shared through descriptors: both could be
 * opened by whoever may read them, by their path or through /proc. */
static int count_private(const char *folder, mode_t type, const char *link_begins)
{
    char path[512], target[64];
    struct stat st;
    int n = 0;
    DIR *dir = opendir(folder);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *entry; (entry = readdir(dir));) {
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        ssize_t len = readlink(path, target, sizeof target - 1);
        target[len < 0 ? 0 : len] = 0;
        if (strncmp(target, link_begins, strlen(link_begins)) != 0 || stat(path, &st) < 0 ||
            (st.st_mode & S_IFMT) != type || strcmp(entry->d_name, "model") == 0)
            continue;
        ck_assert_msg((st.st_mode & 077) == 0, "%s %s has mode %04o", path, target, st.st_mode & 07777);
        n++;
    }
    closedir(dir);
    return n;
}

START_TEST(what_a_pool_makes_is_its_users_alone)
{
    struct stat st;
    char proc[64];
    mode_t before = umask(0);
    open_pool("--workers", "2", NULL);
    umask(before);
    ck_assert_int_eq(stat(the_pool.rundir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 07777, 0700); /* which its sockets are private by */
    ck_assert_int_gt(count_private(the_pool.rundir, S_IFREG, ""), 0);
    snprintf(proc, sizeof proc, "/proc/%d/fd", (int)pool_broker_pid(&the_pool));
    ck_assert_int_gt(count_private(proc, S_IFREG, "/memfd:"), 0);
    snprintf(proc, sizeof proc, "/proc/%d/fd", (int)the_pool.broker); /* of the supervisor */
    ck_assert_int_gt(count_private(proc, S_IFREG, "/memfd:"), 1);
    close_pool();
}
END_TEST

START_TEST(tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it)
{
    char path[RUNDIR_PATH_MAX + 32], address[64], endpoint[64];
    const char *model = fake_model(&the_pool, "ok");
    snprintf(path, sizeof path, "%s/key", the_pool.rundir);
    snprintf(address, sizeof address, "0.0.0.0:%d", pool_free_ports());
    snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1%s", strchr(address, ':'));
    zsys_handler_set(NULL);
    zcert_t *server = zcert_new(), *mine = zcert_new();
    ck_assert_int_eq(zcert_save_secret(server, path), 0);
    pool_start(&the_pool, model, "--tcp", address, "--curve-key", path, "--any-client", NULL);

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
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_HELLO_OK).hello_ok.stream.n, 1);
    zmq_pollitem_t item = {.socket = client_b.control, .events = ZMQ_POLLIN};
    ck_assert_int_eq(zmq_poll(&item, 1, 300), 0);
    zcert_destroy(&server);
    zcert_destroy(&mine);
    client_close(&client_b);
    close_pool();
}
END_TEST

START_TEST(clients_are_sent_to_the_public_name)
{
    char address[64], stream[64];
    const int port = pool_free_ports();
    snprintf(address, sizeof address, "127.0.0.1:%d", port);
    snprintf(stream, sizeof stream, "tcp://pool.example.org:%d", port + 1);
    open_pool("--tcp", address, "--public-host", "pool.example.org", NULL);
    struct message hello = {.kind = MESSAGE_HELLO, .hello = {.proto = {1, 1}, .session = client_a.session}};
    client_send(&client_a, &hello);
    struct message ok = client_expect(&client_a, MESSAGE_HELLO_OK);
    ck_assert_uint_eq(ok.hello_ok.stream.n, 2);
    ck_assert(bytes_equal(ok.hello_ok.stream.items[1], bytes_of_string(stream)));
    /* Who comes by TCP hears of no socket of this machine. */
    struct client far;
    char frontend[80], local[POOL_ENDPOINT_MAX];
    client_connect(&far, &the_pool);
    ck_assert_int_eq(zmq_disconnect(far.control, pool_endpoint(&the_pool, "frontend", local)), 0);
    snprintf(frontend, sizeof frontend, "tcp://%s", address);
    ck_assert_int_eq(zmq_connect(far.control, frontend), 0);
    memset(&hello.hello.session, 'f', sizeof hello.hello.session);
    client_send(&far, &hello);
    ok = client_expect(&far, MESSAGE_HELLO_OK);
    ck_assert_uint_eq(ok.hello_ok.stream.n, 1);
    ck_assert(bytes_equal(ok.hello_ok.stream.items[0], bytes_of_string(stream)));
    client_close(&far);
    close_pool();
}
END_TEST

/* Starts a broker of fakes that is expected to end with `status`, with one line, which holds `text`. */
#define fails_in_one_line(pool, behaviour, status, text, ...)                                                \
    do {                                                                                                     \
        int r = pool_fails(pool, PATIENCE_S, fake_model(pool, behaviour), __VA_ARGS__);                      \
        ck_assert_int_eq(r, status);                                                                         \
        ck_assert_msg(strstr(pool_log(pool), text) && pool_log_lines(pool) == 1, "%s", pool_log(pool));      \
    } while (0)

START_TEST(a_prefix_store_that_does_not_fit_is_refused_by_its_numbers)
{
    fails_in_one_line(&the_pool, "echo", 1, "a prefix store of 4194304 MiB does not fit: ", "--prefix-store",
                      "4194304", NULL);
    pool_forget(&the_pool);
}
END_TEST

START_TEST(a_permanent_failure_is_said_in_one_line_and_not_tried_again)
{
    fails_in_one_line(&the_pool, "permanent", 1, "not a model", "--workers", "2", NULL);
    pool_forget(&the_pool);
}
END_TEST

/* A service manager starts no pool again that ends with 78. */
START_TEST(settings_that_name_what_there_is_not_are_told_by_the_exit_status)
{
    fails_in_one_line(&the_pool, "unfit", 78, "unknown device \"gpu\"", "--workers", "2", NULL);
    pool_forget(&the_pool);
}
END_TEST

START_TEST(a_second_pool_or_an_open_door_without_a_key_is_one_line)
{
    struct pool second = {0};
    open_pool(NULL);
    strcpy(second.rundir, the_pool.rundir);
    snprintf(second.log, sizeof second.log, "%s.second", second.rundir);
    fails_in_one_line(&second, "ok", 1, the_pool.rundir, NULL);
    unlink(second.log);
    struct pool third = {0};
    fails_in_one_line(&third, "ok", 2, "0.0.0.0:5999", "--tcp", "0.0.0.0:5999", NULL);
    pool_forget(&third);
    close_pool();
}
END_TEST

START_TEST(requests_made_while_the_model_loads_wait_for_it)
{
    uint64_t count;
    pool_spawn(&the_pool, fake_model(&the_pool, "slow"), NULL);
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
    static const char *const wrong[][2] = {
        {"--workers", "0"}, {"--tcp", "nowhere"}, {"--config", "/nonexistent"}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        fails_in_one_line(&the_pool, "ok", 2, "", wrong[i][0], wrong[i][1], NULL);
        pool_forget(&the_pool);
    }
}
END_TEST

START_TEST(a_port_in_use_is_one_line)
{
    struct pool second = {0};
    char port[64];
    snprintf(port, sizeof port, "127.0.0.1:%d", pool_free_ports());
    open_pool("--tcp", port, NULL);
    fails_in_one_line(&second, "ok", 1, port, "--tcp", port, NULL);
    pool_forget(&second);
    close_pool();
}
END_TEST

START_TEST(sigterm_refuses_new_requests_and_finishes_the_others)
{
    open_pool(NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining", PATIENCE_S));
    client_generate(&client_a, 'r', "count 1", NULL);
    ck_assert_int_eq(expect_error(&client_a), PROTO_DRAINING);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client_a, &cancel);
    struct message last = client_frame(&client_a, 30000);
    ck_assert(last.frame.has_end);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.reason, END_CANCELLED);
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

static void other_model(struct generation *generation)
{
    generation->model = BYTES_LITERAL("another");
}

START_TEST(sigterm_leaves_when_clients_have_read_what_was_sent_to_them)
{
    /* Far more than may be under way (CREDIT_MESSAGES), so that most wait in the broker's outbox; few enough
     * to be read on a busy machine in the five seconds that the broker waits. */
    const uint64_t refusals = 1000;
    open_pool(NULL);
    client_open(&client_b, &the_pool, 'b');
    for (int i = 0; i < (int)refusals; i++)
        client_generate(&client_a, 'r', "count 1", other_model);
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    while (client_status(&client_b).status_ok.rejected < refusals)
        ck_assert_uint_lt(clock_ns(), until);
    pid_t worker;
    ck_assert_int_eq(pool_worker_pids(&the_pool, &worker, 1), 1);
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining", PATIENCE_S));
    for (until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S; kill(worker, 0) == 0; usleep(2000))
        ck_assert_uint_lt(clock_ns(), until); /* nothing else holds the broker up now */
    for (int i = 0; i < (int)refusals; i++)
        client_expect(&client_a, MESSAGE_ERROR); /* a pong may be among them */
    client_close(&client_b);
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    close_pool();
}
END_TEST

START_TEST(a_second_signal_ends_at_once_and_leaves_no_worker_behind)
{
    open_pool(NULL);
    pid_t worker = (pid_t)client_status(&client_a).status_ok.workers.items[0].pid;
    client_generate(&client_a, 'w', "wait", NULL);
    ck_assert_int_eq(client_frame(&client_a, 30000).kind, MESSAGE_FRAME);
    kill(the_pool.broker, SIGINT);
    ck_assert(pool_says(&the_pool, "draining", PATIENCE_S));
    kill(the_pool.broker, SIGINT);
    ck_assert_int_eq(client_expect(&client_a, MESSAGE_END).end.end.error, PROTO_DRAINING);
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0);
    ck_assert_int_eq(kill(worker, 0), -1);
    close_pool();
}
END_TEST

START_TEST(a_crash_loop_stops_with_its_reason)
{
    ck_assert_int_eq(pool_fails(&the_pool, 60, fake_model(&the_pool, "crash"), NULL), 1);
    ck_assert_msg(strstr(pool_log(&the_pool), "killed by signal 6"), "%s", pool_log(&the_pool));
    ck_assert_uint_eq(pool_log_lines(&the_pool), 5);
    pool_forget(&the_pool);
}
END_TEST

START_TEST(a_worker_that_calls_itself_ready_is_not_yet_a_pool)
{
    pool_start(&the_pool, fake_model(&the_pool, "early"), NULL);
    ck_assert_ptr_nonnull(strstr(pool_log(&the_pool), "info ready:"));
    ck_assert_msg(strstr(pool_log(&the_pool), "\nready: ipc://"), "%s", pool_log(&the_pool));
    client_open(&client_a, &the_pool, 'a');
    ck_assert_int_eq(client_status(&client_a).status_ok.workers.items[0].state, WORKER_READY);
    close_pool();
}
END_TEST

START_TEST(a_broker_whose_stderr_nobody_reads_serves_and_ends)
{
    uint64_t count;
    char junk[4096] = {0};
    const char *model = fake_model(&the_pool, "ok");
    snprintf(the_pool.log, sizeof the_pool.log, "%s.fifo", the_pool.rundir);
    ck_assert_int_eq(mkfifo(the_pool.log, 0600), 0);
    int fifo = open(the_pool.log, O_RDWR | O_NONBLOCK);
    while (write(fifo, junk, sizeof junk) > 0)
        ;
    pool_spawn(&the_pool, model, NULL);
    client_open(&client_a, &the_pool, 'a');
    client_generate(&client_a, 'd', "die", NULL); /* a death is worth a line */
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_ERROR);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
    close(fifo);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_pool_starts_where_a_killed_broker_left_its_sockets);
    tcase_add_test(tests, a_private_pool_whose_owner_died_before_it_began_leaves_nothing);
    tcase_add_test(tests, what_a_pool_makes_is_its_users_alone);
    tcase_add_test(tests, tcp_beyond_this_machine_takes_a_certificate_and_only_those_who_know_it);
    tcase_add_test(tests, clients_are_sent_to_the_public_name);
    tcase_add_test(tests, a_prefix_store_that_does_not_fit_is_refused_by_its_numbers);
    tcase_add_test(tests, a_permanent_failure_is_said_in_one_line_and_not_tried_again);
    tcase_add_test(tests, settings_that_name_what_there_is_not_are_told_by_the_exit_status);
    tcase_add_test(tests, a_second_pool_or_an_open_door_without_a_key_is_one_line);
    tcase_add_test(tests, requests_made_while_the_model_loads_wait_for_it);
    tcase_add_test(tests, a_wrong_command_line_is_one_line_and_status_2);
    tcase_add_test(tests, a_port_in_use_is_one_line);
    tcase_add_test(tests, sigterm_refuses_new_requests_and_finishes_the_others);
    tcase_add_test(tests, sigterm_leaves_when_clients_have_read_what_was_sent_to_them);
    tcase_add_test(tests, a_second_signal_ends_at_once_and_leaves_no_worker_behind);
    tcase_add_test(tests, a_crash_loop_stops_with_its_reason);
    tcase_add_test(tests, a_worker_that_calls_itself_ready_is_not_yet_a_pool);
    tcase_add_test(tests, a_broker_whose_stderr_nobody_reads_serves_and_ends);
}

int main(void)
{
    return run_tests("broker process: start", add);
}
