/* SPDX-License-Identifier: MIT */
/* Death and return: what a pool does when its processes are killed, stopped or started anew. How a pool
 * starts is asked in test_start.c, how it ends in test_drain.c. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/child.h"
#include "tests/unit/run.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

static struct pool pool;

static void forget(void)
{
    pool_forget(&pool);
}

/* The status of the one worker with this name, waiting until it is in the state; fails after timeout_s. */
static struct quern_worker await_worker(struct quern *client, size_t index, const char *state,
                                        uint32_t incarnation, int timeout_s)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    const struct quern_status *status;
    struct quern_error err = {0};
    for (;;) {
        ck_assert_msg(quern_status(client, 60000, &status, &err) == 0, "%s", err.text);
        ck_assert_uint_gt(status->n_workers, index);
        const struct quern_worker *worker = &status->workers[index];
        if (strcmp(worker->state, state) == 0 && worker->incarnation >= incarnation)
            return *worker;
        ck_assert_msg(clock_ns() < until, "worker %zu is %s (incarnation %u), not %s, after %d s:\n%s", index,
                      worker->state, worker->incarnation, state, timeout_s, pool_log(&pool));
        quern_dispatch(client, 50, NULL);
    }
}

/* Tokens that take long enough to be disturbed in the middle of: a second and more, and 2.4 where not all is
 * slow, if workers take their time (paced/paced_device.c). Others would have to compute thousands. */
static uint32_t many_tokens(void)
{
    return test_is_scaled() ? 300 : 600;
}

#define PACED "tests/integration/paced"

/* As if nothing had happened. */
static void expect_equal(const struct answer *answer, const struct answer *undisturbed)
{
    ck_assert_msg(answer->reason != QUERN_ERROR, "%s: %s", answer->error, answer->error_text);
    ck_assert_int_eq(answer->reason, undisturbed->reason);
    ck_assert_uint_eq(answer->ids.len, undisturbed->ids.len);
    ck_assert_mem_eq(answer->ids.data, undisturbed->ids.data, undisturbed->ids.len * sizeof(int32_t));
    ck_assert_uint_eq(answer->text.len, undisturbed->text.len);
    ck_assert_mem_eq(answer->text.data, undisturbed->text.data, undisturbed->text.len);
}

START_TEST(requests_of_a_killed_worker_go_on_elsewhere_and_it_comes_back)
{
    enum { N = 8 };
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.frontend);
    pid_t pids[2];
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);

    struct answer answers[N] = {0};
    struct quern_request requests[N];
    for (int i = 0; i < N; i++) {
        requests[i] =
            i % 2 ? seeded("a long way to go", many_tokens()) : endless("a long way to go", many_tokens());
        requests[i].seed = (uint64_t)i + 1;
        send_request(client, &requests[i], &answers[i]);
    }
    for (int i = 0; i < N; i += 2)
        await_ids(client, &answers[i], 2, 60);
    ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
    await_answers(client, answers, N, 120);
    struct answer undisturbed[N] = {0};
    for (int i = 0; i < N; i++)
        send_request(client, &requests[i], &undisturbed[i]);
    await_answers(client, undisturbed, N, 120);
    for (int i = 0; i < N; i++) { /* the same answer, whoever made which part of it */
        expect_equal(&answers[i], &undisturbed[i]);
        answer_deinit(&undisturbed[i]);
        answer_deinit(&answers[i]);
    }
    const struct quern_status *status;
    ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
    ck_assert_uint_gt(status->moved, 0); /* load is spread, so each worker had some */
    /* The other hands some over, too, if it has no room for all that has come to it. */
    ck_assert_ptr_null(strstr(pool_log(&pool), "moving 8 requests of worker-0"));

    struct quern_worker back = await_worker(client, 0, "ready", 2, 60);
    ck_assert_uint_eq(back.restarts, 1);
    ck_assert_uint_ne(back.pid, (uint32_t)pids[0]);
    struct answer again = {0};
    for (int i = 0; i < 4; i++) {
        ask(client, "back to work", 8, &again);
        await_answers(client, &again, 1, 60);
        ck_assert_msg(again.reason != QUERN_ERROR, "%s: %s", again.error, again.error_text);
        answer_deinit(&again);
    }
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* Kills the broker `kills` times while requests run, and compares with the same requests undisturbed. */
START_TEST(a_killed_broker_loses_no_token_and_makes_none_twice)
{
    enum { N = 16, KILLS = 3 };
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", "--slots", "4", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer undisturbed[N] = {0}, answers[N] = {0};
    struct quern_request requests[N];
    pid_t before[2], after[2], broker = pool_broker_pid(&pool);
    ck_assert_int_eq(pool_worker_pids(&pool, before, 2), 2);
    for (int i = 0; i < N; i++) { /* half of them wait for a slot */
        requests[i] = i % 2 ? seeded("it goes on", many_tokens()) : endless("it goes on", many_tokens());
        requests[i].seed = (uint64_t)i + 1;
        send_request(client, &requests[i], &undisturbed[i]);
    }
    await_answers(client, undisturbed, N, 120);
    for (int i = 0; i < N; i++)
        send_request(client, &requests[i], &answers[i]);
    for (int i = 0; i < KILLS; i++) {
        struct answer *next = answers;
        while (next < answers + N - 1 && next->ends > 0)
            next++;
        uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
        for (size_t more = next->ids.len + 3; next->ends == 0 && next->ids.len < more && clock_ns() < until;)
            quern_dispatch(client, 50, NULL); /* on a fast machine they may all have ended: no harm */
        ck_assert_int_eq(kill(broker, SIGKILL), 0);
        uint64_t killed = clock_ns();
        size_t had = next->ids.len;
        while (next->ends == 0 && next->ids.len == had && clock_ns() - killed < 60 * CLOCK_NS_PER_S)
            quern_dispatch(client, 50, NULL);
        printf("next id %.0f ms after the broker was killed\n", (double)(clock_ns() - killed) / 1e6);
        for (pid_t again = broker; again == broker || again == 0;)
            again = pool_broker_pid(&pool);
        broker = pool_broker_pid(&pool);
    }
    await_answers(client, answers, N, 120);
    for (int i = 0; i < N; i++) {
        expect_equal(&answers[i], &undisturbed[i]);
        answer_deinit(&undisturbed[i]);
        answer_deinit(&answers[i]);
    }
    ck_assert_int_eq(pool_worker_pids(&pool, after, 2), 2);
    ck_assert_mem_eq(before, after, sizeof before);
    const struct quern_status *status;
    ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
    ck_assert_uint_ge(status->ended, N); /* counted on over all of it, as far as it is kept */
    ck_assert_uint_eq(status->admitted, status->ended);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

static pid_t start_reload(void)
{
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern"));
    pid_t pid = fork_child();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl(program, "quern", "reload", "--rundir", pool.rundir, NULL);
        _exit(127);
    }
    return pid;
}

/* Requests come all the time; those that are answered are asked again. */
START_TEST(a_reload_under_load_is_noticed_by_no_client)
{
    enum { N = 12 };
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", "--slots", "4", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer undisturbed[N] = {0}, answers[N] = {0};
    struct quern_request requests[N];
    pid_t before[2], after[2], broker = pool_broker_pid(&pool);
    ck_assert_int_eq(pool_worker_pids(&pool, before, 2), 2);
    for (int i = 0; i < N; i++) { /* long and short ones; some wait for a slot */
        uint32_t most = i < 6 ? many_tokens() : 20;
        requests[i] = i % 2 ? seeded("it goes on", most) : endless("it goes on", most);
        requests[i].seed = (uint64_t)i + 1;
        send_request(client, &requests[i], &undisturbed[i]);
    }
    await_answers(client, undisturbed, N, 120);
    for (int i = 0; i < N; i++)
        send_request(client, &requests[i], &answers[i]);
    await_ids(client, &answers[0], 2, 60);
    await_ids(client, &answers[1], 2, 60);
    int status;
    pid_t reload = start_reload();
    while (waitpid(reload, &status, WNOHANG) == 0) {
        quern_dispatch(client, 20, NULL);
        for (int i = 0; i < N; i++) {
            if (answers[i].ends == 0)
                continue;
            expect_equal(&answers[i], &undisturbed[i]);
            answer_deinit(&answers[i]);
            answers[i] = (struct answer){0};
            send_request(client, &requests[i], &answers[i]);
        }
    }
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", pool_log(&pool));
    await_answers(client, answers, N, 120);
    for (int i = 0; i < N; i++) {
        expect_equal(&answers[i], &undisturbed[i]);
        answer_deinit(&answers[i]);
        answer_deinit(&undisturbed[i]);
    }
    ck_assert_int_eq(pool_worker_pids(&pool, after, 2), 2);
    for (int i = 0; i < 2; i++)
        ck_assert_int_ne(before[i], after[i]);
    ck_assert_int_ne(pool_broker_pid(&pool), broker);
    ck_assert(!strstr(pool_log(&pool), "died"));
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* Tokens of a prompt of 700 that were found; the ids of its answer. */
static uint32_t ask_again(struct quern *client, int32_t ret_ids[8])
{
    static int32_t prompt[700];
    struct answer answer = {0};
    struct quern_request request = endless(NULL, 8);
    for (int i = 0; i < 700; i++)
        prompt[i] = 260 + i % 200;
    request.ids = prompt;
    request.n_ids = 700;
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_uint_eq(answer.ids.len, 8);
    memcpy(ret_ids, answer.ids.data, 8 * sizeof *ret_ids);
    uint32_t cached = answer.cached_tokens;
    answer_deinit(&answer);
    return cached;
}

START_TEST(a_worker_that_is_started_again_finds_what_was_computed_before_it)
{
    int32_t before[8], after[8];
    pid_t pid;
    pool_start(&pool, tiny_model(), "--prefix-store", "8", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.rundir);
    ck_assert_uint_eq(ask_again(client, before), 0);
    ck_assert_uint_eq(ask_again(client, after), 699); /* blocks are copied in passing: by now they were */
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 1);
    kill(pid, SIGKILL);
    struct quern_worker worker = await_worker(client, 0, "ready", 2, 60);
    ck_assert_uint_eq(worker.restores, 0);
    ck_assert_uint_eq(ask_again(client, after), 672); /* the store has whole ones */
    ck_assert_mem_eq(before, after, sizeof before);
    /* Each says what the workers have together. */
    ck_assert_msg(pool_says(&pool, "; shared weights of ", 60), "%s", pool_log(&pool));
    ck_assert_msg(pool_says(&pool, "; prefix store of 8 MiB", 60), "%s", pool_log(&pool));
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* Both at once: it is the broker of then that finds the worker dead. */
START_TEST(a_stopped_worker_and_a_stopped_broker_are_noticed_by_their_lack_of_progress)
{
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "1", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.frontend);
    pid_t pid;
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 1);
    struct answer answer = {0};
    struct quern_request request = endless("about to freeze", many_tokens());
    send_request(client, &request, &answer);
    await_ids(client, &answer, 2, 60);
    pid_t broker = pool_broker_pid(&pool);
    ck_assert_int_eq(kill(pid, SIGSTOP), 0);
    ck_assert_int_eq(kill(broker, SIGSTOP), 0);
    await_answers(client, &answer, 1, 60);
    ck_assert_int_ne(pool_broker_pid(&pool), broker);
    ck_assert(pool_says(&pool, "the broker stalled and was killed: restarting it", 0));
    ck_assert_msg(answer.reason == QUERN_LENGTH, "%s: %s", answer.error, answer.error_text);
    ck_assert_uint_eq(answer.ids.len, many_tokens()); /* the worker that was started in its place went on */
    answer_deinit(&answer);
    await_worker(client, 0, "ready", 2, 60);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_worker_that_is_told_to_end_finishes_what_it_began_and_no_request_is_lost)
{
    enum { N = 60 };
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", "--slots", "2", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answers[N] = {0};
    pid_t pids[2];
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);
    for (int i = 0; i < N; i++)
        ask(client, "who answers this?", i < 4 ? many_tokens() : 20, &answers[i]);
    for (int i = 0; i < 4; i++)
        await_ids(client, &answers[i], 2, 60);
    ck_assert_int_eq(kill(pids[0], SIGTERM), 0);
    await_answers(client, answers, N, 120);
    for (int i = 0; i < N; i++) {
        ck_assert_msg(answers[i].reason != QUERN_ERROR, "%s: %s", answers[i].error, answers[i].error_text);
        answer_deinit(&answers[i]);
    }
    await_worker(client, 0, "ready", 2, 60);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* Keeps every client's session alive for some seconds. */
static void dispatch_all(struct quern **clients, int n, int seconds)
{
    uint64_t until = clock_ns() + (uint64_t)seconds * CLOCK_NS_PER_S;
    while (clock_ns() < until)
        for (int i = 0; i < n; i++)
            quern_dispatch(clients[i], 10, NULL);
}

/* Longer than a lease and than the patience with a silent worker: what was silent was the broker. */
START_TEST(a_broker_that_stood_still_blames_nobody)
{
    enum { N = 16 };
    pool.programs = PACED;
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", NULL);
    struct quern *clients[N];
    struct answer answers[N] = {0};
    struct quern_request request = endless("hold on a moment", many_tokens());
    for (int i = 0; i < N; i++) {
        clients[i] = connect_to(pool.frontend);
        send_request(clients[i], &request, &answers[i]);
        await_ids(clients[i], &answers[i], 2, 60);
    }
    pid_t broker = pool_broker_pid(&pool);
    ck_assert_int_eq(kill(broker, SIGSTOP), 0);
    ck_assert_int_eq(kill(pool.broker, SIGSTOP), 0);
    dispatch_all(clients, N, 11);
    ck_assert_int_eq(kill(pool.broker, SIGCONT), 0);
    ck_assert_int_eq(kill(broker, SIGCONT), 0);
    for (int i = 0; i < N; i++) {
        /* All of them, or those that wait for their turn would lose their leases. */
        for (int s = 0; s < 120 && answers[i].ends == 0; s++)
            dispatch_all(clients, N, 1);
        ck_assert_uint_eq(answers[i].ends, 1);
        ck_assert_msg(answers[i].reason == QUERN_LENGTH, "%s: %s", answers[i].error, answers[i].error_text);
        ck_assert_uint_eq(answers[i].ids.len, many_tokens());
        answer_deinit(&answers[i]);
    }
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(await_worker(clients[0], i, "ready", 1, 60).restarts, 0);
    for (int i = 0; i < N; i++)
        quern_free(clients[i]);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

static const struct quern_status *status_of(struct quern *client)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    ck_assert_msg(quern_status(client, 60000, &status, &err) == 0, "%s", err.text);
    return status;
}

#define LONG_RUN                                                                                             \
    "run", "--connect", pool.rundir, "--raw", "--ids", "--seed", "7", "-n",                                  \
        test_is_scaled() ? "1000" : "3000", "wait for me", NULL

static pid_t start_long_run(int *ret_out)
{
    int out[2];
    char program[4096];
    snprintf(program, sizeof program, "%s", build_path("quern"));
    ck_assert_int_eq(pipe2(out, O_CLOEXEC), 0);
    pid_t pid = fork_child();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(out[1], STDOUT_FILENO);
        execl(program, "quern", LONG_RUN);
        _exit(127);
    }
    close(out[1]);
    *ret_out = out[0];
    return pid;
}

/* Longer than a lease, shorter than the grace; the worker stands still too, or the request would have ended
 * before its client is missed, but not for so long that it is taken for dead. */
START_TEST(a_client_that_is_stopped_for_longer_than_its_lease_loses_nothing)
{
    static char text[65536], undisturbed[65536];
    size_t len = 0;
    int out, status;
    pid_t worker;
    pool_start(&pool, tiny_model(), "--workers", "1", "--ctx", "4096", NULL);
    ck_assert_int_eq(pool_worker_pids(&pool, &worker, 1), 1);
    ck_assert_int_eq(run_program(undisturbed, sizeof undisturbed, "quern", LONG_RUN), 0);
    ck_assert_uint_gt(strlen(undisturbed), 1000);
    pid_t run = start_long_run(&out);
    ck_assert_int_eq(read(out, text, 1), 1);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    ck_assert_int_eq(kill(run, SIGSTOP), 0);
    struct quern *watcher = connect_to(pool.frontend);
    uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
    while (status_of(watcher)->sessions > 1 &&
           clock_ns() < until) /* the other's lease is over: its own is left */
        quern_dispatch(watcher, 50, NULL);
    const uint64_t tokens = status_of(watcher)->tokens;
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    while (status_of(watcher)->tokens < tokens + 100 && clock_ns() < until) /* which the client misses */
        quern_dispatch(watcher, 50, NULL);
    ck_assert_uint_lt(clock_ns(), until);
    quern_free(watcher);
    ck_assert_int_eq(kill(run, SIGCONT), 0);
    for (ssize_t n = 1; n > 0; n = read(out, text + len, sizeof text - 1 - len))
        len += (size_t)n;
    text[len] = 0;
    ck_assert_int_eq(waitpid(run, &status, 0), run);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "%s", pool_log(&pool));
    ck_assert_str_eq(text, undisturbed);
    close(out);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_killed_broker_is_started_again_and_finds_its_workers)
{
    pool_start(&pool, tiny_model(), "--workers", "2", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    pid_t before[2], after[2], broker = pool_broker_pid(&pool);
    ck_assert_int_eq(pool_worker_pids(&pool, before, 2), 2);
    ck_assert_int_eq(kill(broker, SIGKILL), 0);
    ask(client, "is anybody there?", 20, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_msg(answer.reason == QUERN_LENGTH, "%s: %s", answer.error, answer.error_text);
    ck_assert_int_ne(pool_broker_pid(&pool), broker);
    ck_assert_int_eq(pool_worker_pids(&pool, after, 2), 2);
    ck_assert_mem_eq(before, after, sizeof before);
    for (size_t i = 0; i < 2; i++)
        ck_assert_uint_eq(await_worker(client, i, "ready", 1, 60).restarts, 0);
    answer_deinit(&answer);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_model_file_that_is_truncated_or_overwritten_disturbs_nobody_who_serves)
{
    char dir[RUNDIR_PATH_MAX + 1], model[RUNDIR_PATH_MAX + 20], out[256];
    ck_assert_int_eq(rundir_temporary(dir, NULL), 0);
    snprintf(model, sizeof model, "%s/model.gguf", dir);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "tiny", "Q8_0", model, NULL), 0);
    pool_start(&pool, model, "--workers", "1", "--ctx", "4096", NULL);
    struct quern *client = connect_to(pool.frontend);
    struct answer answers[3] = {0};
    pid_t before, after;
    ck_assert_int_eq(pool_worker_pids(&pool, &before, 1), 1);
    struct quern_request request = endless("as it was before", 300);
    send_request(client, &request, &answers[0]);
    await_answers(client, answers, 1, 60);
    send_request(client, &request, &answers[1]);
    await_ids(client, &answers[1], 2, 60);
    ck_assert_int_eq(truncate(model, 100), 0);
    await_answers(client, answers, 2, 60);
    ck_assert_int_eq(truncate(model, 1 << 20), 0); /* all zeros where it is read */
    send_request(client, &request, &answers[2]);
    await_answers(client, answers, 3, 60);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(answers[i].reason, QUERN_LENGTH);
        ck_assert_uint_eq(answers[i].ids.len, 300);
        ck_assert_mem_eq(answers[i].ids.data, answers[0].ids.data, 300 * sizeof(int32_t));
    }
    for (int i = 0; i < 3; i++)
        answer_deinit(&answers[i]);
    ck_assert_int_eq(pool_worker_pids(&pool, &after, 1), 1);
    ck_assert_int_eq(before, after);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    rundir_remove(dir);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_add_test(tests, requests_of_a_killed_worker_go_on_elsewhere_and_it_comes_back);
    tcase_add_test(tests, a_killed_broker_loses_no_token_and_makes_none_twice);
    tcase_add_test(tests, a_reload_under_load_is_noticed_by_no_client);
    tcase_add_test(tests, a_worker_that_is_started_again_finds_what_was_computed_before_it);
    tcase_add_test(tests, a_stopped_worker_and_a_stopped_broker_are_noticed_by_their_lack_of_progress);
    tcase_add_test(tests, a_worker_that_is_told_to_end_finishes_what_it_began_and_no_request_is_lost);
    tcase_add_test(tests, a_broker_that_stood_still_blames_nobody);
    tcase_add_test(tests, a_client_that_is_stopped_for_longer_than_its_lease_loses_nothing);
    tcase_add_test(tests, a_killed_broker_is_started_again_and_finds_its_workers);
    tcase_add_test(tests, a_model_file_that_is_truncated_or_overwritten_disturbs_nobody_who_serves);
}

int main(void)
{
    return run_tests("supervision", add);
}
