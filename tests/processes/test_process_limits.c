/* SPDX-License-Identifier: MIT */
/* The broker as a process, when something runs out: descriptors, room in the run directory. */

#include "tests/processes/client.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

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

#include "supervisor/children/restart.h"

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
    pid_t pid = fork_child();
    if (pid == 0) {
        const struct rlimit low = {256, 256};
        setrlimit(RLIMIT_NOFILE, &low);
        pool_start(&the_pool, fake_model(&the_pool, "ok"), NULL);
        bool said = pool_says(&the_pool, "room for 96 clients", PATIENCE_S) &&
                    pool_says(&the_pool, "because of the limit of open files", PATIENCE_S);
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

static char model_name[32];

static void of_model(struct generation *generation)
{
    generation->model = bytes_of_string(model_name);
}

static void of_model_kept(struct generation *generation)
{
    of_model(generation);
    generation->on_disconnect = DISCONNECT_KEEP;
    generation->keep_s = 600;
}

/* While it is not known what a worker will serve, all of them may be right. */
START_TEST(models_that_are_made_up_hold_up_none_that_is_served)
{
    enum { MADE_UP = 150 };
    uint64_t count;
    pool_spawn(&the_pool, fake_model(&the_pool, "lone"), "--workers", "2", "--drain-seconds", "1", NULL);
    client_open(&client_a, &the_pool, 'a');
    client_open(&client_b, &the_pool, 'b');
    strcpy(model_name, "fake");
    client_generate(&client_a, 'q', "count 1", of_model); /* waits until one has come */
    ck_assert_int_eq(client_read(&client_a, 'q', &count, NULL), END_LENGTH);
    for (unsigned i = 0; i < MADE_UP; i++) {
        snprintf(model_name, sizeof model_name, "made-up-%u", i);
        client_generate(&client_b, (uint8_t)(i + 1), "count 1", of_model_kept);
        client_expect(&client_b, MESSAGE_ACCEPTED);
    }
    strcpy(model_name, "fake");
    client_generate(&client_a, 'r', "count 10", of_model);
    ck_assert_int_eq(client_read(&client_a, 'r', &count, NULL), END_LENGTH);
    strcpy(model_name, "not known yet");
    client_generate(&client_a, 's', "count 10", of_model);
    client_expect(&client_a, MESSAGE_ACCEPTED);
    ck_assert_uint_eq(client_status(&client_a).status_ok.queued, MADE_UP + 1);
    client_close(&client_b);
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
    ck_assert_msg(strstr(pool_log(&the_pool), "frontend exists and is not a socket"), "%s",
                  pool_log(&the_pool));
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
    static const char *const names[] = {"frontend", "stream", "link-0-1-1", "worker-0-1-1"};
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

/* While something that was sent is not acknowledged, another timer runs. */
static void await_watched_connection(unsigned port)
{
    int n;
    for (int i = 0; (n = watched_connections(port)) != 1 && i < PATIENCE_S * 20; i++)
        usleep(50000);
    ck_assert_int_eq(n, 1);
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
    await_watched_connection(port);
    await_watched_connection(port + 1);
    client_close(&client_b);
    close_pool();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 180);
    tcase_add_test(tests, more_connections_than_descriptors_end_neither_the_broker_nor_its_sessions);
    tcase_add_test(tests, a_low_limit_of_files_is_said_at_the_start);
    tcase_add_test(tests, a_worker_that_cannot_be_started_for_want_of_descriptors_is_tried_until_it_can);
    tcase_add_test(tests, models_that_are_made_up_hold_up_none_that_is_served);
    tcase_add_test(tests, files_that_are_no_sockets_are_left_where_they_are);
    tcase_add_test(tests, a_pool_whose_directory_was_moved_leaves_the_sockets_of_the_next_alone);
    tcase_add_test(tests, a_client_that_vanished_from_the_network_does_not_keep_its_descriptors);
}

int main(void)
{
    return run_tests("broker process: limits", add);
}
