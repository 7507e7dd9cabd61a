/* SPDX-License-Identifier: MIT */
/* How a pool ends: told to finish, told twice, or killed. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/clock.h"

static struct pool pool;

static void forget(void)
{
    pool_forget(&pool);
}

START_TEST(ctrl_c_finishes_what_runs_refuses_what_comes_and_leaves_nobody)
{
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer running = {0}, late = {0};
    pid_t pids[2];
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);
    const uint32_t output = test_is_scaled() ? 300 : 2000;
    struct quern_request request = endless("let me finish", output);
    send_request(client, &request, &running);
    await_ids(client, &running, 2, 60);
    for (int i = 0; i < 2; i++) /* or the pool may have ended before the late one is asked */
        ck_assert_int_eq(kill(pids[i], SIGSTOP), 0);
    ck_assert_int_eq(kill(pool.broker, SIGINT), 0);
    ck_assert(pool_says(&pool, "draining", 60));
    ask(client, "too late", 4, &late);
    await_answers(client, &late, 1, 60);
    for (int i = 0; i < 2; i++)
        kill(pids[i], SIGCONT);
    ck_assert_str_eq(late.error, "draining");
    await_answers(client, &running, 1, 60);
    ck_assert_int_eq(running.reason, QUERN_LENGTH);
    ck_assert_uint_eq(running.ids.len, output);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, 0, 60), 0);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 0);
    answer_deinit(&running);
    answer_deinit(&late);
}
END_TEST

/* A worker prepares the first two prompts at once, so the second may begin before the first. */
static void await_ids_of_any(struct quern *client, const struct answer *answers, int n_answers, size_t n)
{
    const uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
    for (bool some = false; !some;) {
        ck_assert_msg(clock_ns() < until, "no answer has %zu ids\n%s", n, pool_log(&pool));
        ck_assert_int_ge(quern_dispatch(client, 100, NULL), 0);
        for (int i = 0; i < n_answers; i++)
            some = some || answers[i].ids.len >= n;
    }
}

START_TEST(a_draining_pool_waits_no_longer_than_it_was_told)
{
    enum { N = 40 }; /* one after the other: far more than a second's work */
    pool_start(&pool, tiny_model(), "--slots", "1", "--ctx", "4096", "--drain-seconds", "1", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answers[N] = {0};
    struct quern_request request = endless("a long way to go", 4000);
    pid_t pid;
    for (int i = 0; i < N; i++)
        send_request(client, &request, &answers[i]);
    await_ids_of_any(client, answers, N, 2);
    ck_assert_int_eq(kill(pool.broker, SIGTERM), 0);
    await_answers(client, answers, N, 60);
    ck_assert_str_eq(answers[N - 1].error, "draining");
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, 0, 30), 0); /* unless told otherwise it would be 60 s */
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 0);
    for (int i = 0; i < N; i++)
        answer_deinit(&answers[i]);
}
END_TEST

START_TEST(a_second_signal_ends_at_once)
{
    pool_start(&pool, tiny_model(), "--workers", "1", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer running = {0};
    pid_t pid;
    struct quern_request request = endless("no time", 4000);
    send_request(client, &request, &running);
    await_ids(client, &running, 2, 60);
    ck_assert_int_eq(kill(pool.broker, SIGTERM), 0);
    ck_assert(pool_says(&pool, "draining", 60));
    pool_stop(&pool, SIGTERM, 30); /* a drain has 60 s */
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 0);
    answer_deinit(&running);
    quern_free(client);
}
END_TEST

/* Waits until nobody of the pool is there, and judges how long that takes since its supervisor was killed. */
static void expect_nobody_soon(uint64_t from)
{
    uint64_t most = 30 * CLOCK_NS_PER_S; /* an orphan would stay for 60 s */
    pid_t pids[2];
    while (pool_worker_pids(&pool, pids, 2) + pool_gateway_pids(&pool, pids, 2) + pool_broker_pid(&pool) >
           0) {
        ck_assert_msg(clock_ns() - from < most, "workers %d, gateways %d, broker %d",
                      pool_worker_pids(&pool, pids, 2), pool_gateway_pids(&pool, pids, 2),
                      pool_broker_pid(&pool));
        usleep(10000);
    }
    printf("nobody is left after %.2f s\n", (double)(clock_ns() - from) / CLOCK_NS_PER_S);
}

/* A stream of the pool's gateway that has begun to tell. */
static int begin_stream(void)
{
    static const char says[] = "ready: http://127.0.0.1:";
    static const char body[] =
        "{\"prompt\": \"a\", \"max_tokens\": 4000, \"temperature\": 0, \"stream\": true}";
    char request[512], head[16];
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert(pool_says(&pool, says, 60));
    address.sin_port = htons((uint16_t)atoi(strstr(pool_log(&pool), says) + strlen(says)));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    int len = snprintf(request, sizeof request,
                       "POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    ck_assert_int_eq(send(fd, request, (size_t)len, MSG_NOSIGNAL), len);
    ck_assert_int_gt(recv(fd, head, sizeof head, 0), 12);
    ck_assert_mem_eq(head, "HTTP/1.1 200", 12);
    return fd;
}

/* Requests that run included, and their gateway: nobody is left who would take their tokens. */
START_TEST(a_killed_supervisor_takes_everybody_along_at_once)
{
    bool has_gateway = access(build_path("quern-gateway"), X_OK) == 0;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", has_gateway ? "--http" : NULL,
               "127.0.0.1:0", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_request request = endless("until the end", 4000);
    int stream = has_gateway ? begin_stream() : -1;
    pid_t gateway;
    send_request(client, &request, &answer);
    await_ids(client, &answer, 2, 60);
    ck_assert_int_gt(pool_broker_pid(&pool), 0);
    ck_assert_int_eq(pool_gateway_pids(&pool, &gateway, 1), has_gateway);
    uint64_t killed_ns = clock_ns();
    ck_assert_int_eq(pool_stop(&pool, SIGKILL, 60), 128 + SIGKILL);
    await_answers(client, &answer, 1, 60);
    ck_assert_str_eq(answer.error, "draining");
    expect_nobody_soon(killed_ns);
    close(stream);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

/* The broker cannot pass it on: the workers hear of it from the kernel. */
START_TEST(workers_outlive_neither_supervisor_nor_broker)
{
    pool_start(&pool, tiny_model(), "--workers", "2", NULL);
    pid_t broker = pool_broker_pid(&pool);
    ck_assert_int_eq(kill(broker, SIGSTOP), 0);
    ck_assert_int_eq(pool_stop(&pool, SIGKILL, 60), 128 + SIGKILL);
    uint64_t killed_ns = clock_ns();
    ck_assert_int_eq(kill(broker, SIGKILL), 0);
    expect_nobody_soon(killed_ns);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, ctrl_c_finishes_what_runs_refuses_what_comes_and_leaves_nobody);
    tcase_add_test(tests, a_draining_pool_waits_no_longer_than_it_was_told);
    tcase_add_test(tests, a_second_signal_ends_at_once);
    tcase_add_test(tests, a_killed_supervisor_takes_everybody_along_at_once);
    tcase_add_test(tests, workers_outlive_neither_supervisor_nor_broker);
}

int main(void)
{
    return run_tests("drain", add);
}
