/* SPDX-License-Identifier: MIT */
/* The broker as a process, when something runs out: descriptors, patience, room in the run directory. */

#include "tests/unit/broker/client.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zmq.h>

#include "broker/intake.h"
#include "common/clock.h"
#include "supervisor/restart.h"
#include "tests/integration/zmtp.h"

/* Sets a process's soft limit of open files; returns the one before. */
static rlim_t limit_files(pid_t pid, rlim_t files)
{
    struct rlimit limit;
    ck_assert_int_eq(prlimit(pid, RLIMIT_NOFILE, NULL, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = files;
    ck_assert_int_eq(prlimit(pid, RLIMIT_NOFILE, &limit, NULL), 0);
    return before;
}

/* A connection that never says a word. */
static int connect_mutely(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", the_pool.rundir, name);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

START_TEST(more_connections_than_descriptors_end_neither_the_broker_nor_its_sessions)
{
    enum { CONNECTIONS = 400 };
    int fds[CONNECTIONS];
    uint64_t count;
    open_pool(NULL);
    limit_files(pool_broker_pid(&the_pool), 256);
    for (int i = 0; i < CONNECTIONS; i++)
        fds[i] = connect_mutely(i % 2 ? "frontend" : "stream");
    /* A worker that dies meanwhile is started again: it has descriptors of the reserve. */
    client_generate(&client_a, 'd', "die", NULL);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_ERROR);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    for (int i = 0; i < CONNECTIONS; i++)
        close(fds[i]);
    client_open(&client_b, &the_pool, 'b'); /* there is room again */
    client_close(&client_b);
    close_pool();
}
END_TEST

/* In a child: its limit cannot be raised again. */
START_TEST(a_low_limit_of_files_is_said_at_the_start)
{
    pid_t pid = fork();
    if (pid == 0) {
        const struct rlimit low = {256, 256};
        setrlimit(RLIMIT_NOFILE, &low);
        pool_start(&the_pool, fake_model(&the_pool, "ok"), NULL);
        bool said = pool_says(&the_pool, "room for 96 clients", PATIENCE_S) &&
                    pool_says(&the_pool, "the limit of open files is low", PATIENCE_S);
        bool ended = pool_stop(&the_pool, SIGTERM, PATIENCE_S) == 0;
        pool_forget(&the_pool);
        _exit(said && ended ? 0 : 1);
    }
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

START_TEST(a_worker_that_cannot_be_started_for_want_of_descriptors_is_tried_until_it_can)
{
    enum { MORE_THAN_A_CRASH_LOOP = RESTART_MAX_DEATHS + 1 };
    uint64_t count;
    open_pool(NULL);
    rlim_t before = limit_files(the_pool.broker, 8);
    client_generate(&client_a, 'd', "once 9", NULL); /* its worker dies, and it waits for the next */
    for (int failures = 0; failures < MORE_THAN_A_CRASH_LOOP;) {
        struct message ping = {.kind = MESSAGE_PING};
        client_send(&client_a, &ping);
        client_expect(&client_a, MESSAGE_PONG);
        usleep(100000);
        failures = 0;
        for (const char *text = pool_log(&the_pool); (text = strstr(text, "Too many open files")); text++)
            failures++;
    }
    limit_files(the_pool.broker, before);
    ck_assert_int_eq(client_read(&client_a, 'd', &count, NULL), END_LENGTH);
    ck_assert_uint_eq(count, 9);
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close_pool();
}
END_TEST

static void write_file(const char *path)
{
    FILE *file = fopen(path, "w");
    ck_assert_ptr_nonnull(file);
    fputs("mine", file);
    fclose(file);
}

START_TEST(files_that_are_no_sockets_are_left_where_they_are)
{
    char notes[RUNDIR_PATH_MAX + 32], frontend[RUNDIR_PATH_MAX + 32];
    const char *model = fake_model(&the_pool, "ok");
    snprintf(notes, sizeof notes, "%s/worker-notes.txt", the_pool.rundir);
    snprintf(frontend, sizeof frontend, "%s/frontend", the_pool.rundir);
    write_file(notes);
    write_file(frontend);
    ck_assert_int_eq(pool_fails(&the_pool, PATIENCE_S, model, NULL), 1);
    ck_assert_msg(strstr(pool_log(&the_pool), "frontend is in the way"), "%s", pool_log(&the_pool));
    ck_assert_int_eq(access(frontend, F_OK), 0);
    unlink(frontend);
    open_pool(NULL);
    client_close(&client_a);
    ck_assert_int_eq(pool_stop(&the_pool, SIGTERM, PATIENCE_S), 0);
    ck_assert_int_eq(access(frontend, F_OK), -1);
    ck_assert_int_eq(access(notes, F_OK), 0);
    pool_forget(&the_pool);
}
END_TEST

static void expect_socket(const struct pool *pool, const char *name, bool there)
{
    char path[RUNDIR_PATH_MAX + 32];
    snprintf(path, sizeof path, "%s/%s", pool->rundir, name);
    ck_assert_msg((access(path, F_OK) == 0) == there, "%s", path);
}

START_TEST(a_pool_whose_directory_was_moved_leaves_the_sockets_of_the_next_alone)
{
    static const char *const names[] = {"frontend", "backend", "stream", "worker-0-1-1"};
    struct pool moved = {0};
    open_pool(NULL);
    client_close(&client_a);
    moved = the_pool;
    snprintf(moved.rundir, sizeof moved.rundir, "%.*s-moved", RUNDIR_PATH_MAX - 8, the_pool.rundir);
    ck_assert_int_eq(rename(the_pool.rundir, moved.rundir), 0);
    ck_assert_int_eq(mkdir(the_pool.rundir, 0700), 0);
    snprintf(the_pool.log, sizeof the_pool.log, "%s.next", the_pool.rundir);
    open_pool(NULL);
    ck_assert_int_eq(pool_stop(&moved, SIGTERM, PATIENCE_S), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        expect_socket(&moved, names[i], false);
        expect_socket(&the_pool, names[i], true);
    }
    client_open(&client_b, &the_pool, 'b');
    client_close(&client_b);
    close_pool();
    pool_forget(&moved);
}
END_TEST

/* Established connections to this port of 127.0.0.1 whose server asks, when they are silent, whether the
 * client is there: the kernel shows its timer as "02". */
static int watched_connections(unsigned port)
{
    char line[256];
    unsigned local, state, timer;
    int n = 0;
    FILE *table = fopen("/proc/net/tcp", "r");
    ck_assert_ptr_nonnull(table);
    while (fgets(line, sizeof line, table))
        if (sscanf(line, " %*u: %*x:%x %*x:%*x %x %*x:%*x %x", &local, &state, &timer) == 3 &&
            local == port && state == 1)
            n += timer == 2;
    fclose(table);
    return n;
}

START_TEST(a_client_that_vanished_from_the_network_does_not_keep_its_descriptors)
{
    const unsigned port = (unsigned)pool_free_ports();
    char address[64], endpoint[64];
    snprintf(address, sizeof address, "127.0.0.1:%u", port);
    open_pool("--tcp", address, NULL);
    client_connect(&client_b, &the_pool);
    for (unsigned i = 0; i < 2; i++) {
        snprintf(endpoint, sizeof endpoint, "tcp://127.0.0.1:%u", port + i);
        ck_assert_int_eq(zmq_connect(i ? client_b.stream : client_b.control, endpoint), 0);
    }
    for (int i = 0; i < 600 && (!watched_connections(port) || !watched_connections(port + 1)); i++)
        usleep(50000);
    ck_assert_int_eq(watched_connections(port), 1);
    ck_assert_int_eq(watched_connections(port + 1), 1);
    client_close(&client_b);
    close_pool();
}
END_TEST

/* Whether the other end has closed. */
static bool is_closed(int fd)
{
    char bytes[64];
    ssize_t n;
    while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
        ;
    return n == 0 || errno == ECONNRESET;
}

START_TEST(who_does_not_say_who_it_is_is_closed_in_time)
{
    static const char greeting[64] = {'\xff', 0, 0, 0, 0, 0, 0, 0, 0, 0x7f, 3, 0, 'N', 'U', 'L', 'L'};
    enum { MUTE = 4, LEAST_MS = 5000 };
    int fds[MUTE + 2];
    bool open = true;
    open_pool(NULL);
    uint64_t begun = clock_ns();
    for (int i = 0; i < MUTE + 2; i++)
        fds[i] = connect_mutely(i % 2 ? "frontend" : "stream");
    for (size_t sent = 0; open; sent++) { /* the last two say it so slowly that it comes to the same */
        struct message ping = {.kind = MESSAGE_PING};
        for (int i = MUTE; i < MUTE + 2 && sent < sizeof greeting; i++)
            (void)!send(fds[i], greeting + sent, 1, MSG_NOSIGNAL);
        client_send(&client_a, &ping); /* which is there all the time */
        client_expect(&client_a, MESSAGE_PONG);
        usleep(500000);
        open = false;
        for (int i = 0; i < MUTE + 2; i++)
            open |= !is_closed(fds[i]);
        ck_assert_uint_lt((clock_ns() - begun) / CLOCK_NS_PER_S, PATIENCE_S);
    }
    ck_assert_uint_ge((clock_ns() - begun) / CLOCK_NS_PER_MS, LEAST_MS); /* and not for another reason */
    for (int i = 0; i < MUTE + 2; i++)
        close(fds[i]);
    close_pool();
}
END_TEST

/* A connection is there for a session. */
START_TEST(who_has_no_session_is_closed_in_time_and_who_has_one_is_not)
{
    enum { LEAST_S = INTAKE_UNUSED_S - 10 };
    open_pool(NULL);
    int fds[] = {zmtp_open(the_pool.rundir, "frontend", "DEALER"),
                 zmtp_open(the_pool.rundir, "stream", "SUB")};
    uint64_t begun = clock_ns(), count;
    for (bool open = true; open;) {
        struct message ping = {.kind = MESSAGE_PING};
        client_send(&client_a, &ping);
        client_expect(&client_a, MESSAGE_PONG);
        usleep(500000);
        open = !zmtp_closes(fds[0], 0) || !zmtp_closes(fds[1], 0);
        ck_assert_uint_lt((clock_ns() - begun) / CLOCK_NS_PER_S, INTAKE_UNUSED_S + PATIENCE_S);
    }
    ck_assert_uint_ge((clock_ns() - begun) / CLOCK_NS_PER_S, LEAST_S);
    ck_assert(pool_says(&the_pool, "closed 2 connections for what they did (2 in all)", PATIENCE_S));
    client_generate(&client_a, 'r', "count 10", NULL);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    close(fds[0]);
    close(fds[1]);
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 180);
    tcase_add_test(tests, more_connections_than_descriptors_end_neither_the_broker_nor_its_sessions);
    tcase_add_test(tests, a_low_limit_of_files_is_said_at_the_start);
    tcase_add_test(tests, a_worker_that_cannot_be_started_for_want_of_descriptors_is_tried_until_it_can);
    tcase_add_test(tests, who_does_not_say_who_it_is_is_closed_in_time);
    tcase_add_test(tests, who_has_no_session_is_closed_in_time_and_who_has_one_is_not);
    tcase_add_test(tests, files_that_are_no_sockets_are_left_where_they_are);
    tcase_add_test(tests, a_pool_whose_directory_was_moved_leaves_the_sockets_of_the_next_alone);
    tcase_add_test(tests, a_client_that_vanished_from_the_network_does_not_keep_its_descriptors);
}

int main(void)
{
    return run_tests("broker process: limits", add);
}
