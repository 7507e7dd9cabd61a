/* SPDX-License-Identifier: MIT */
/* A pool whose processes are replaced while it serves, by good programs and by bad ones. */

#include "tests/processes/client.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/clock.h"
#include "proto/control.h"

/* ---- asking for it ---- */

static int connect_control(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s/" CONTROL_NAME, the_pool.rundir);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static int ask(void)
{
    const struct control_request request = {.version = CONTROL_VERSION, .kind = CONTROL_RELOAD};
    int fd = connect_control();
    ck_assert_int_eq((int)send(fd, &request, sizeof request, 0), (int)sizeof request);
    return fd;
}

/* Reads reports to the last one. */
static struct control_report await(int fd)
{
    struct control_report report = {0};
    struct pollfd item = {.fd = fd, .events = POLLIN};
    do {
        ck_assert_msg(poll(&item, 1, PATIENCE_S * 1000) == 1, "no report: %s", pool_log(&the_pool));
        ssize_t n = recv(fd, &report, sizeof report, 0);
        ck_assert_msg(n == sizeof report, "%zd bytes: %s", n, pool_log(&the_pool));
    } while (report.result == CONTROL_PROGRESS);
    close(fd);
    return report;
}

/* A client of another broker: its session is the same. */
static void open_again(void)
{
    client_close(&client_a);
    client_open(&client_a, &the_pool, 'a');
}

static void expect_service(uint8_t name)
{
    uint64_t count;
    open_again();
    client_generate(&client_a, name, "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, name, &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 10);
}

/* ---- programs of our own, to be overwritten ---- */

static char folder[64]; /* of the build folder */

static void copy_program(const char *from_folder, const char *name)
{
    char path[4096], from[128], to[128];
    struct stat status;
    snprintf(from, sizeof from, "%s/%s", from_folder, name);
    snprintf(to, sizeof to, "%s/%s", folder, name);
    int in = open(build_path(from), O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "%s.new", build_path(to));
    int out = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    ck_assert_int_eq(fstat(in, &status), 0);
    for (off_t left = status.st_size; left > 0;) {
        ssize_t n = sendfile(out, in, NULL, (size_t)left);
        ck_assert_int_gt(n, 0);
        left -= n;
    }
    close(in);
    close(out);
    ck_assert_int_eq(rename(path, build_path(to)), 0);
}

static void spoil_program(const char *name, const char *script)
{
    char path[4096], to[128];
    snprintf(to, sizeof to, "%s/%s", folder, name);
    snprintf(path, sizeof path, "%s.new", build_path(to));
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    ck_assert_int_eq(fchmod(fileno(file), 0700), 0);
    fclose(file);
    ck_assert_int_eq(rename(path, build_path(to)), 0);
}

static void open_pool_of_copies(const char *workers)
{
    const char *model = fake_model(&the_pool, "ok");
    snprintf(folder, sizeof folder, "tests/processes/copies-%d", (int)getpid());
    ck_assert_int_eq(mkdir(build_path(folder), 0700), 0);
    copy_program(the_pool.programs, "quern-broker");
    copy_program(the_pool.programs, "quern-worker");
    the_pool.programs = folder;
    pool_start(&the_pool, model, "--workers", workers, NULL);
    client_open(&client_a, &the_pool, 'a');
}

static void remove_copies(void)
{
    if (folder[0])
        rundir_remove(build_path(folder));
    folder[0] = 0;
}

/* ---- tests ---- */

START_TEST(every_process_is_replaced_and_what_runs_goes_on)
{
    pid_t before[3], after[3];
    open_pool("--workers", "2", NULL);
    client_generate(&client_a, 'w', "wait", NULL);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    while (client_frame(&client_a, PATIENCE_S * 1000).kind != MESSAGE_FRAME)
        ;
    struct message status = client_status(&client_a);
    for (int i = 0; i < 2; i++)
        before[i] = (pid_t)status.status_ok.workers.items[i].pid;
    before[2] = pool_broker_pid(&the_pool);
    struct control_report report = await(ask());
    ck_assert_msg(report.result == CONTROL_DONE, "%s", report.text);
    open_again();
    status = client_status(&client_a);
    for (int i = 0; i < 2; i++)
        after[i] = (pid_t)status.status_ok.workers.items[i].pid;
    after[2] = pool_broker_pid(&the_pool);
    for (int i = 0; i < 3; i++)
        ck_assert_int_ne(before[i], after[i]);
    ck_assert_uint_eq(status.status_ok.running, 1);
    ck_assert_uint_ge(status.status_ok.moved, 1);
    struct message cancel = named(MESSAGE_CANCEL, 'w');
    client_send(&client_a, &cancel);
    struct message end = client_expect(&client_a, MESSAGE_END);
    ck_assert_int_eq(end.end.end.reason, END_CANCELLED);
    ck_assert_uint_ge(end.end.count, 2); /* a frame of each worker that had it */
    expect_service('c');
    close_pool();
}
END_TEST

START_TEST(what_a_client_has_not_taken_is_waited_for_by_the_next_broker_too)
{
    open_pool(NULL);
    client_tells(&client_a);
    client_generate(&client_a, 'r', "count 3000", NULL);
    client_expect(&client_a, MESSAGE_END);
    client_generate(&client_a, 's', "count 30", NULL);
    client_expect(&client_a, MESSAGE_END);
    client_taken(&client_a, 's');
    client_status(&client_a); /* which comes behind it */
    ck_assert_int_eq(await(ask()).result, CONTROL_DONE);
    open_again();
    client_tells(&client_a);
    client_open(&client_b, &the_pool, 'b');
    kill(the_pool.broker, SIGTERM);
    ck_assert(pool_says(&the_pool, "draining: 0 requests", PATIENCE_S));
    for (int turns = 0; turns < 20; turns++) /* it would have left in one of them */
        client_status(&client_b);
    client_close(&client_b);
    struct message replay = named(MESSAGE_REPLAY, 'r');
    for (struct message page = {0}; !page.replay_ok.done; replay.replay.next = page.replay_ok.next) {
        client_send(&client_a, &replay);
        page = client_expect(&client_a, MESSAGE_REPLAY_OK);
    }
    ck_assert_uint_eq(replay.replay.next, 3000);
    client_taken(&client_a, 'r');
    ck_assert_int_eq(pool_wait(&the_pool, PATIENCE_S), 0); /* and not for the other */
    close_pool();
}
END_TEST

START_TEST(a_worker_program_that_does_not_come_up_is_taken_back)
{
    open_pool_of_copies("2");
    pid_t broker = pool_broker_pid(&the_pool);
    spoil_program("quern-worker", "echo this build is broken >&2; exit 78");
    struct control_report report = await(ask());
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "this build is broken"), "%s", report.text);
    ck_assert_int_eq(pool_broker_pid(&the_pool), broker);
    expect_service('b');
    struct message status = client_status(&client_a);
    ck_assert_uint_eq(status.status_ok.workers.items[1].incarnation, 1); /* it was not tried */
    copy_program("tests/processes", "quern-worker");
    report = await(ask());
    ck_assert_msg(report.result == CONTROL_DONE, "%s", report.text);
    expect_service('c');
    close_pool();
}
END_TEST

/* What ps(1) shows: the name of the process, and the first word of its command line. */
static void expect_name(pid_t pid, const char *name)
{
    static const char *const files[] = {"comm", "cmdline"};
    for (int i = 0; i < 2; i++) {
        char path[64], text[256] = "";
        snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, files[i]);
        FILE *file = fopen(path, "r");
        ck_assert_ptr_nonnull(file);
        ck_assert_uint_gt(fread(text, 1, sizeof text - 1, file), 0);
        fclose(file);
        text[strcspn(text, "\n")] = 0;
        ck_assert_str_eq(text, name);
    }
}

START_TEST(a_broker_program_that_does_not_come_up_is_taken_back)
{
    uint64_t count;
    open_pool_of_copies("1");
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    spoil_program("quern-broker", "exit 1");
    struct control_report report = await(ask());
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "restarting the old one"), "%s", report.text);
    expect_service('b');
    expect_name(pool_broker_pid(&the_pool), "quern-broker"); /* although it is /proc/self/exe */
    struct message replay = named(MESSAGE_REPLAY, 'r');      /* from before */
    client_send(&client_a, &replay);
    ck_assert_uint_eq(client_expect(&client_a, MESSAGE_REPLAY_OK).replay_ok.next, 10);
    close_pool();
}
END_TEST

START_TEST(a_broker_program_that_comes_up_slowly_is_waited_for)
{
    char script[4096 + 64], program[4096];
    open_pool_of_copies("1");
    snprintf(program, sizeof program, "%s", build_path("tests/processes/quern-broker"));
    snprintf(script, sizeof script, "sleep 1; exec '%s' \"$@\"", program);
    spoil_program("quern-broker", script);
    struct control_report report = await(ask());
    ck_assert_msg(report.result == CONTROL_DONE, "%s", report.text);
    expect_service('b');
    close_pool();
}
END_TEST

/* The pool is without one until then: in seconds it has the one before. */
START_TEST(a_broker_program_that_hangs_is_taken_back)
{
    open_pool_of_copies("1");
    spoil_program("quern-broker", "exec sleep 1000");
    uint64_t began = clock_ns();
    struct control_report report = await(ask());
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "stalled and was killed: restarting the old one"), "%s", report.text);
    ck_assert_uint_lt(clock_ns() - began, PATIENCE_S * CLOCK_NS_PER_S);
    expect_service('b');
    close_pool();
}
END_TEST

START_TEST(a_killed_broker_whose_program_hangs_is_started_all_the_same)
{
    open_pool_of_copies("1");
    spoil_program("quern-broker", "exec sleep 1000");
    ck_assert_int_eq(kill(pool_broker_pid(&the_pool), SIGKILL), 0);
    expect_service('b');
    close_pool();
}
END_TEST

START_TEST(a_worker_program_that_hangs_is_taken_back_at_once)
{
    open_pool_of_copies("2");
    spoil_program("quern-worker", "exec sleep 1000");
    uint64_t began = clock_ns();
    struct control_report report = await(ask());
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "made no progress while loading for 10 s"), "%s", report.text);
    ck_assert_uint_lt(clock_ns() - began, 2 * PATIENCE_S * CLOCK_NS_PER_S);
    expect_service('b');
    struct message status = client_status(&client_a);
    ck_assert_uint_eq(status.status_ok.workers.items[1].incarnation, 1); /* it was not tried */
    close_pool();
}
END_TEST

/* It counts no progress for longer than one that hangs is given, but it is at work. */
START_TEST(a_worker_program_that_loads_slowly_is_waited_for)
{
    char script[4096 + 256], program[4096];
    open_pool_of_copies("1");
    snprintf(program, sizeof program, "%s", build_path("tests/processes/quern-worker"));
    snprintf(script, sizeof script,
             "end=$(($(date +%%s) + 14)); while [ $(date +%%s) -lt $end ]; do i=0; "
             "while [ $i -lt 20000 ]; do i=$((i + 1)); done; done; exec '%s' \"$@\"",
             program);
    spoil_program("quern-worker", script);
    struct control_report report = await(ask());
    ck_assert_msg(report.result == CONTROL_DONE, "%s", report.text);
    expect_service('b');
    close_pool();
}
END_TEST

START_TEST(a_killed_broker_whose_program_was_spoiled_is_started_all_the_same)
{
    open_pool_of_copies("1");
    spoil_program("quern-broker", "exit 1");
    ck_assert_int_eq(kill(pool_broker_pid(&the_pool), SIGKILL), 0);
    expect_service('b');
    ck_assert(pool_says(&the_pool, "ended with status 1: restarting the old one", PATIENCE_S));
    close_pool();
}
END_TEST

START_TEST(what_is_no_request_or_comes_while_one_is_served_is_refused)
{
    static const char garbage[] = "reload, please";
    static const struct control_request unknown = {.version = CONTROL_VERSION, .kind = 77};
    open_pool(NULL);
    for (int i = 0; i < 300; i++)
        close(connect_control());
    int silent[12]; /* more than have a place */
    for (int i = 0; i < 12; i++)
        silent[i] = connect_control();
    int fd = connect_control();
    ck_assert_int_gt((int)send(fd, garbage, sizeof garbage, 0), 0);
    ck_assert_int_eq(await(fd).result, CONTROL_FAILED);
    fd = connect_control();
    ck_assert_int_gt((int)send(fd, &unknown, sizeof unknown, 0), 0);
    ck_assert_int_eq(await(fd).result, CONTROL_FAILED);
    struct control_report report = {.result = CONTROL_DONE};
    for (int i = 0; i < 20 && report.result == CONTROL_DONE; i++) { /* until both come in time */
        int first = ask(), second = ask();
        const struct control_report reports[] = {await(first), await(second)};
        int refused = reports[0].result == CONTROL_FAILED ? 0 : 1; /* either may be heard before the other */
        ck_assert_int_eq(reports[!refused].result, CONTROL_DONE);
        report = reports[refused];
    }
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "already running"), "%s", report.text);
    for (int i = 0; i < 12; i++)
        close(silent[i]);
    expect_service('c');
    close_pool();
}
END_TEST

START_TEST(a_reload_ends_with_the_pool)
{
    open_pool("--drain-seconds", "1", NULL);
    client_generate(&client_a, 'd', "deaf", NULL); /* its worker does not let go of it */
    client_expect(&client_a, MESSAGE_ACCEPTED);
    int fd = ask();
    ck_assert(pool_says(&the_pool, "worker-0 is replaced", PATIENCE_S));
    ck_assert_int_eq(pool_stop(&the_pool, SIGTERM, PATIENCE_S), 0);
    struct control_report report = await(fd);
    ck_assert_int_eq(report.result, CONTROL_FAILED);
    ck_assert_msg(strstr(report.text, "told to end"), "%s", report.text);
    client_close(&client_a);
    pool_forget(&the_pool);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_checked_fixture(tests, NULL, remove_copies);
    tcase_add_test(tests, every_process_is_replaced_and_what_runs_goes_on);
    tcase_add_test(tests, what_a_client_has_not_taken_is_waited_for_by_the_next_broker_too);
    tcase_add_test(tests, a_worker_program_that_does_not_come_up_is_taken_back);
    tcase_add_test(tests, a_broker_program_that_does_not_come_up_is_taken_back);
    tcase_add_test(tests, a_broker_program_that_comes_up_slowly_is_waited_for);
    tcase_add_test(tests, a_broker_program_that_hangs_is_taken_back);
    tcase_add_test(tests, a_killed_broker_whose_program_hangs_is_started_all_the_same);
    tcase_add_test(tests, a_worker_program_that_hangs_is_taken_back_at_once);
    tcase_add_test(tests, a_worker_program_that_loads_slowly_is_waited_for);
    tcase_add_test(tests, a_killed_broker_whose_program_was_spoiled_is_started_all_the_same);
    tcase_add_test(tests, what_is_no_request_or_comes_while_one_is_served_is_refused);
    tcase_add_test(tests, a_reload_ends_with_the_pool);
}

int main(void)
{
    return run_tests("broker process: reload", add);
}
