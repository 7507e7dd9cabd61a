/* SPDX-License-Identifier: MIT */
/* Whole pools of workers with emulated GPUs, which are killed: sequences with states, with borrowed keys and
 * values and with experts go on elsewhere, and prefixes are found again. In small what test_supervision.c
 * asks of pools on the CPU. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/cpu/small_shapes.h"

#define TOKENS  60
#define MODELS  3
#define WORKERS 2

static struct pool pool;
static char path[] = "/tmp/quern-test-XXXXXX";

static void forget(void)
{
    pool_forget(&pool);
    unlink(path);
}

/* A recurrent layer and one that attends; layers that borrow, with something of each token for each; experts
 * beside a plain half. */
static struct synth_shape shape_of(int nth)
{
    struct synth_shape shape = thin_shape;
    shape.architecture = nth == 0 ? "qwen35" : "gemma4";
    shape.biases = false;
    shape.n_context = 512;
    if (nth == 0) {
        shape.delta = (struct delta_net){1, 2, 16, 16, 4, false};
        shape.attention_interval = 2;
        return shape;
    }
    shape.window = 48;
    shape.window_period = 2;
    if (nth == 1) {
        shape.n_layers = 4;
        shape.n_borrowing_layers = 2;
        shape.n_layer_embd = 16;
    } else {
        shape.n_experts = 4;
        shape.n_experts_used = 2;
        shape.n_expert_ff = 32;
    }
    return shape;
}

static struct quern *start(int nth)
{
    const struct synth_shape shape = shape_of(nth);
    struct error err;
    close(mkstemp(path));
    ck_assert_msg(synth_write(&shape, mixture_by_name("Q8_0"), 5, path, &err) == 0, "%s", err.text);
    setenv("QUERN_UNCHECKED", "1", 1); /* the gate has tests of its own */
    pool_start(&pool, path, "--device", "emu", "--workers", "2", "--ctx", "512", "--slots", "2",
               "--prefix-store", "4", "--invariant", NULL);
    return connect_to(pool.frontend);
}

static void expect_equal(const struct answer *answer, const struct answer *undisturbed)
{
    ck_assert_msg(answer->reason != QUERN_ERROR, "%s: %s", answer->error, answer->error_text);
    ck_assert_int_eq(answer->reason, undisturbed->reason);
    ck_assert_uint_eq(answer->ids.len, undisturbed->ids.len);
    ck_assert_mem_eq(answer->ids.data, undisturbed->ids.data, undisturbed->ids.len * sizeof(int32_t));
}

static struct quern_request request_of(int i)
{
    struct quern_request request = i % 2 ? seeded("a long way to go, and further", TOKENS)
                                         : endless("a long way to go, and further", TOKENS);
    request.seed = (uint64_t)i + 1;
    return request;
}

START_TEST(sequences_of_a_killed_worker_go_on_on_another_device)
{
    enum { N = 4 };
    struct quern *client = start(_i);
    struct answer answers[N] = {0}, undisturbed[N] = {0};
    const struct quern_status *status;
    pid_t pids[WORKERS];
    ck_assert_int_eq(pool_worker_pids(&pool, pids, WORKERS), WORKERS);
    for (int i = 0; i < N; i++) {
        const struct quern_request request = request_of(i);
        send_request(client, &request, &answers[i]);
    }
    for (int i = 0; i < N; i += 2)
        await_ids(client, &answers[i], 2, 120);
    ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
    await_answers(client, answers, N, 200);
    for (int i = 0; i < N; i++) {
        const struct quern_request request = request_of(i);
        send_request(client, &request, &undisturbed[i]);
    }
    await_answers(client, undisturbed, N, 200);
    for (int i = 0; i < N; i++) {
        expect_equal(&answers[i], &undisturbed[i]);
        answer_deinit(&answers[i]);
        answer_deinit(&undisturbed[i]);
    }
    ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
    ck_assert_uint_gt(status->moved, 0); /* load is spread, so each worker had some */
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* What is asked for the nth time; the answer is the first one's. */
static uint32_t ask_again(struct quern *client, struct answer *first)
{
    char prompt[160];
    struct answer answer = {0};
    memset(prompt, 'a', sizeof prompt - 1);
    prompt[sizeof prompt - 1] = 0;
    for (size_t i = 0; i < sizeof prompt - 1; i += 7)
        prompt[i] = (char)('b' + i % 23);
    ask(client, prompt, 8, &answer);
    await_answers(client, &answer, 1, 200);
    const uint32_t cached = answer.cached_tokens;
    if (first->ends == 0) {
        *first = answer;
        ck_assert_msg(answer.reason != QUERN_ERROR, "%s: %s", answer.error, answer.error_text);
        return cached;
    }
    expect_equal(&answer, first);
    answer_deinit(&answer);
    return cached;
}

START_TEST(a_prefix_is_found_by_workers_that_never_read_it)
{
    struct quern *client = start(_i);
    struct answer first = {0};
    pid_t pids[WORKERS];
    ck_assert_uint_eq(ask_again(client, &first), 0);
    /* It is too short to be kept with the worker that read it: the two take turns. What one has read comes
     * into the store behind its last step, so the other may be too early once, and has it then. */
    for (int found = 0, asked = 0; found < WORKERS; asked++) {
        ck_assert_int_lt(asked, 3 * WORKERS);
        found = ask_again(client, &first) > first.prompt_tokens / 2 ? found + 1 : 0;
    }
    ck_assert_int_eq(pool_worker_pids(&pool, pids, WORKERS), WORKERS);
    for (int w = 0; w < WORKERS; w++)
        ck_assert_int_eq(kill(pids[w], SIGKILL), 0);
    ck_assert_uint_gt(ask_again(client, &first), first.prompt_tokens / 2);
    answer_deinit(&first);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_set_timeout(tests, 380);
    tcase_add_loop_test(tests, sequences_of_a_killed_worker_go_on_on_another_device, 0, MODELS);
    tcase_add_loop_test(tests, a_prefix_is_found_by_workers_that_never_read_it, 0, MODELS);
}

int main(void)
{
    return run_tests("device moves", add);
}
