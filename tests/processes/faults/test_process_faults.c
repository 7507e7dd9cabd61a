/* SPDX-License-Identifier: MIT */
/* A pool in which one call fails, at one place after the other: its client gets every answer whole, or a
 * verdict by name, and nothing crashes. A broker may abort where a hash table cannot grow: the next one takes
 * over.
 *
 * A few places of each kind, spread over all that the scenario passes; with $QUERN_FAULTS_ALL each of them.
 */

#include "tests/integration/support/answer.h"
#include "tests/integration/hostile/door.h"
#include "tests/processes/faults/fault.h"
#include "tests/unit/run.h"

#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define PATIENCE_S 60
#define REQUESTS   4
#define TOKENS     30

static struct pool pool;
static char fired_file[RUNDIR_PATH_MAX + 16];
static int last_status; /* with which the last pool ended */

/* What else the pool is started with; zeroed: clients come by its run directory. */
static struct setup {
    bool tcp; /* with keys; clients come by it */
    int http; /* port; 0: none */
    const char *store;
} setup;
static struct door_keys keys;
static struct door alice, mallory; /* of the pool that runs: one who is let in, and one who is not */

static bool has_fired(void)
{
    return access(fired_file, F_OK) == 0;
}

static void arm(const char *role, enum fault_kind kind, unsigned n)
{
    char text[256];
    ck_assert_int_eq(rundir_temporary(pool.rundir, NULL), 0);
    snprintf(fired_file, sizeof fired_file, "%s.fired", pool.rundir);
    snprintf(text, sizeof text, "%s:%s:%u:%s", role, fault_kind_name(kind), n, fired_file);
    setenv("QUERN_FAULT", text, 1);
    pool.programs = "tests/processes/faults";
}

static const char *fake_model(void)
{
    static char path[RUNDIR_PATH_MAX + 16];
    snprintf(path, sizeof path, "%s/model", pool.rundir);
    FILE *file = fopen(path, "w");
    fputs("ok", file);
    fclose(file);
    return path;
}

/* The line that says so may be what could not be written. */
static bool serves_or_ended(int *ret_status)
{
    const char *frontend = pool.frontend + strlen("ipc://");
    for (uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S; clock_ns() < until; usleep(2000)) {
        if (pool_ended(&pool, ret_status))
            return false;
        if (access(frontend, F_OK) == 0)
            return true;
    }
    ck_abort_msg("it neither serves nor ended:\n%s", pool_log(&pool));
}

/* Answers of the fake worker: ids 0, 1, 2 … */
static void expect_whole_or_told(const struct answer *answer, const char *what)
{
    if (answer->reason == QUERN_ERROR) {
        ck_assert_msg(answer->error[0] && answer->error_text[0], "%s: an error without a word", what);
        return;
    }
    ck_assert_msg(answer->reason == QUERN_LENGTH && answer->ids.len == TOKENS,
                  "%s: %zu ids, ended by %d:\n%s", what, answer->ids.len, answer->reason, pool_log(&pool));
    for (int i = 0; i < TOKENS; i++)
        ck_assert_int_eq(answer->ids.data[i], i);
}

/* How many were answered. */
static uint64_t ask_for_all(struct quern *client, const char *what)
{
    struct quern_error err = {0};
    struct answer answers[REQUESTS] = {0};
    uint64_t whole = 0;
    for (int i = 0; i < REQUESTS; i++) {
        struct quern_request request = endless("count 30", TOKENS);
        ck_assert_int_eq(quern_generate(client, &request, answer_collect, &answers[i], NULL, &err), 0);
    }
    await_answers(client, answers, REQUESTS, PATIENCE_S);
    for (int i = 0; i < REQUESTS; i++) {
        expect_whole_or_told(&answers[i], what);
        whole += answers[i].reason != QUERN_ERROR;
        answer_deinit(&answers[i]);
    }
    return whole;
}

/* Another broker takes over, and what has ended is still known to whoever comes last. */
static void take_over(struct quern *client, uint64_t ended, const char *what)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    char next[sizeof fired_file + 8];
    snprintf(next, sizeof next, "%s.next", fired_file);
    fclose(fopen(next, "w"));
    ck_assert_int_eq(kill(pool_broker_pid(&pool), SIGKILL), 0);
    ended += ask_for_all(client, what);
    if (quern_status(client, PATIENCE_S * 1000, &status, &err) != 0) {
        ck_assert_msg(strstr(err.text, "not enough memory in the broker"), "%s: %s\n%s", what, err.text,
                      pool_log(&pool));
        unlink(next);
        return;
    }
    ck_assert_msg(status->ended >= ended, "%s: %llu of %llu are known:\n%s", what,
                  (unsigned long long)status->ended, (unsigned long long)ended, pool_log(&pool));
    unlink(next);
}

static bool is_over(void)
{
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)pool.broker, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

/* NULL: it ended instead. One that ends while it starts may have had its socket there: each attempt has more
 * time than the one before, and the first little. */
static struct quern *connect_as(const struct door *door, const char *what)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (int ms = 200; !client && !is_over(); ms = ms < 8000 ? 2 * ms : ms) {
        ck_assert_msg(clock_ns() < until, "%s: no connection: %s\n%s", what, err.text, pool_log(&pool));
        if (door_connect(door, ms, &client, &err) != 0) {
            ck_assert_msg(err.text[0], "%s: no connection, and no word", what);
            usleep(1000);
        }
    }
    return client;
}

/* Whatever failed. */
static void expect_shut(const struct door *door, const char *what)
{
    struct quern *client = NULL;
    ck_assert_msg(door_connect(door, 300, &client, NULL) != 0, "%s: a stranger is let in", what);
}

/* The status of an answer by HTTP; 0: none came. */
static int ask_by_http(void)
{
    static const char request[] = "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                                  "Content-Length: 35\r\n\r\n{\"prompt\":\"count 3\",\"max_tokens\":3}";
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)setup.http)};
    const struct timeval patience = {.tv_sec = PATIENCE_S};
    char answer[4096];
    int status = 0, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t n = 0;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0)
        n = recv(fd, answer, sizeof answer - 1, 0);
    close(fd);
    answer[n > 0 ? n : 0] = 0;
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

/* Soon it does, whatever failed, while the pool is there. */
static void await_http(const char *what)
{
    uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    int status;
    while ((status = ask_by_http()) != 200 && !is_over()) {
        ck_assert_msg(clock_ns() < until, "%s: HTTP says %d:\n%s", what, status, pool_log(&pool));
        usleep(10000);
    }
}

static void use_pool(const char *role, const char *what)
{
    struct quern *client = connect_as(&alice, what);
    if (!client)
        return;
    if (setup.tcp)
        expect_shut(&mallory, what);
    if (setup.http)
        await_http(what);
    uint64_t ended = ask_for_all(client, what);
    if (strcmp(role, "next") == 0)
        take_over(client, ended, what);
    quern_free(client);
}

/* A pool as it is set up. */
static void spawn(void)
{
    char tcp[32], http[32], server[sizeof keys.folder + 16];
    const char *more[11] = {NULL};
    int n = 0;
    if (setup.tcp) {
        door_keys_make(&keys, pool.rundir);
        door_make(&alice, DOOR_KNOWN_KEY, &pool, &keys, "alice");
        door_make(&mallory, DOOR_UNKNOWN_KEY, &pool, &keys, "mallory");
        snprintf(tcp, sizeof tcp, "127.0.0.1:%d", keys.port);
        snprintf(server, sizeof server, "%s/server", keys.folder);
        more[n++] = "--tcp", more[n++] = tcp;
        more[n++] = "--curve-key", more[n++] = server;
        more[n++] = "--client-keys", more[n++] = keys.clients;
    }
    if (setup.http) {
        setup.http = pool_free_ports();
        snprintf(http, sizeof http, "127.0.0.1:%d", setup.http);
        more[n++] = "--http", more[n++] = http;
    }
    if (setup.store)
        more[n++] = "--prefix-store", more[n++] = setup.store;
    pool_spawn(&pool, fake_model(), "--workers", "2", more[0], more[1], more[2], more[3], more[4], more[5],
               more[6], more[7], more[8], more[9], NULL);
    if (!setup.tcp)
        door_make(&alice, DOOR_RUNDIR, &pool, &keys, "alice");
}

/* True when the n-th call of the kind was made. */
static bool run_with(const char *role, enum fault_kind kind, unsigned n)
{
    int status = 0;
    char what[64];
    const uint64_t start = clock_ns();
    snprintf(what, sizeof what, "%s, %s %u", role, fault_kind_name(kind), n);
    arm(role, kind, n);
    spawn();
    unsetenv("QUERN_FAULT");
    if (serves_or_ended(&status)) {
        use_pool(role, what);
        status = pool_stop(&pool, SIGTERM, PATIENCE_S);
    }
    const char *log = pool_log(&pool);
    ck_assert_msg(status == 0 || status == 1, "%s, %s %u: exit status %d:\n%s", role, fault_kind_name(kind),
                  n, status, log);
    ck_assert_msg(status == 0 || log[0], "%s: it ended without a word", what);
    ck_assert_msg(!strstr(log, "(Segmentation fault)") && !strstr(log, "(Bus error)"), "%s:\n%s", what, log);
    bool fired = has_fired();
    if (getenv("QUERN_FAULTS_TOLD"))
        fprintf(stderr, "%s: %s, %d after %.1f s\n%s", what, fired ? "fired" : "none", status,
                (double)(clock_ns() - start) / 1e9, log);
    last_status = status;
    unlink(fired_file);
    pool_forget(&pool);
    door_keys_remove(&keys);
    return fired;
}

static void run_kind(const char *role, enum fault_kind kind, unsigned few)
{
    unsigned step = 1, n = 0;
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    for (unsigned k = 1; run_with(role, kind, k); k += step, n++)
        if (!all && n > 0 && (test_is_scaled() || n % few == 0))
            step *= test_is_scaled() ? 5 : 3;
    ck_assert_uint_gt(n, 0);
}

static void forget(void)
{
    pool_forget(&pool);
    door_keys_remove(&keys);
    unlink(fired_file);
    setup = (struct setup){0};
}

START_TEST(the_broker_lacks_memory)
{
    run_kind("broker", FAULT_MEMORY, 2);
}
END_TEST

START_TEST(a_broker_that_takes_over_lacks_memory)
{
    run_kind("next", FAULT_MEMORY, 5);
}
END_TEST

START_TEST(the_broker_lacks_descriptors_and_mappings)
{
    run_kind("broker", FAULT_DESCRIPTORS, 2);
    run_kind("broker", FAULT_MAPPING, 2);
}
END_TEST

START_TEST(the_broker_lacks_space)
{
    run_kind("broker", FAULT_SPACE, 2);
    run_kind("broker", FAULT_SHORT, 2);
}
END_TEST

/* Bounds and rights rest on what they are told when they are made: a context, three sockets with five options
 * and more each, three endpoints. */
START_TEST(a_broker_whose_sockets_are_not_as_they_should_be_does_not_serve)
{
    for (unsigned n = 1; n <= 21; n += test_is_scaled() ? 4 : 2) {
        ck_assert(run_with("broker", FAULT_SOCKETS, n));
        ck_assert_msg(last_status == 1, "it serves without its %uth call", n);
    }
}
END_TEST

START_TEST(the_brokers_sockets_fail)
{
    run_kind("broker", FAULT_SOCKETS, 2);
    run_kind("broker", FAULT_SENDING, 2);
    run_kind("broker", FAULT_RECEIVING, 1);
}
END_TEST

START_TEST(the_supervisor_lacks_whatever_it_asks_for)
{
    run_kind("supervisor", FAULT_MEMORY, 2);
    run_kind("supervisor", FAULT_DESCRIPTORS, 2);
    run_kind("supervisor", FAULT_SPACE, 2);
    run_kind("supervisor", FAULT_MAPPING, 2);
    run_kind("supervisor", FAULT_SHORT, 2);
    run_kind("supervisor", FAULT_THREADS, 2);
}
END_TEST

/* Fewer places than above: those before are the same. */
START_TEST(a_broker_on_the_network_lacks_whatever_it_asks_for)
{
    setup.tcp = true;
    run_kind("broker", FAULT_MEMORY, 1);
    run_kind("broker", FAULT_DESCRIPTORS, 1);
    run_kind("broker", FAULT_SENDING, 1);
    run_kind("next", FAULT_DESCRIPTORS, 1);
}
END_TEST

/* That it asks for keys, and whose, it says to its sockets by calls of these, behind those above: one that is
 * lost must not open the door, which is tried each time. */
START_TEST(a_broker_that_cannot_ask_for_keys_lets_nobody_in)
{
    bool all = getenv("QUERN_FAULTS_ALL") != NULL;
    setup.tcp = true;
    for (unsigned n = 22; run_with("broker", FAULT_SOCKETS, n); n += all ? 1 : 29)
        ;
    ck_assert_int_eq(last_status, 0);
}
END_TEST

START_TEST(a_supervisor_with_a_gateway_and_a_prefix_store_lacks_whatever_it_asks_for)
{
    setup.http = 1;
    setup.store = "16";
    run_kind("supervisor", FAULT_MEMORY, 1);
    run_kind("supervisor", FAULT_DESCRIPTORS, 2);
    run_kind("supervisor", FAULT_SPACE, 2);
    run_kind("supervisor", FAULT_MAPPING, 1);
    run_kind("supervisor", FAULT_THREADS, 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 600);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, the_broker_lacks_memory);
    tcase_add_test(tests, a_broker_that_takes_over_lacks_memory);
    tcase_add_test(tests, the_broker_lacks_descriptors_and_mappings);
    tcase_add_test(tests, the_broker_lacks_space);
    tcase_add_test(tests, the_brokers_sockets_fail);
    tcase_add_test(tests, a_broker_whose_sockets_are_not_as_they_should_be_does_not_serve);
    tcase_add_test(tests, the_supervisor_lacks_whatever_it_asks_for);
    tcase_add_test(tests, a_broker_on_the_network_lacks_whatever_it_asks_for);
    tcase_add_test(tests, a_broker_that_cannot_ask_for_keys_lets_nobody_in);
    if (access(build_path("tests/processes/faults/quern-gateway"), X_OK) == 0)
        tcase_add_test(tests, a_supervisor_with_a_gateway_and_a_prefix_store_lacks_whatever_it_asks_for);
}

int main(void)
{
    return run_tests("faults", add);
}
