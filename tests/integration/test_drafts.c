/* SPDX-License-Identifier: MIT */
/* A pool that makes drafts gives the ids of one that makes none: with a dense model, with one that has states
 * and with one that has sinks and experts, several requests at once, greedy and sampled, and when a worker
 * dies in the middle. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cpu/small_shapes.h"

#define TOKENS   160
#define MODELS   3
#define WORKERS  2
#define REQUESTS 6

static struct pool pool;
static char path[] = "/tmp/quern-test-XXXXXX";

static void forget(void)
{
    pool_forget(&pool);
    unlink(path);
}

static struct synth_shape shape_of(int nth)
{
    struct synth_shape shape = thin_shape;
    shape.n_context = 512;
    if (nth == 1) {
        shape.architecture = "qwen35";
        shape.delta = (struct delta_net){1, 2, 16, 16, 4, false};
        shape.attention_interval = 2;
    } else if (nth == 2) {
        shape.architecture = "gpt-oss";
        shape.biases = false;
        shape.window = 48;
        shape.n_experts = 4;
        shape.n_experts_used = 2;
        shape.n_expert_ff = 32;
    }
    return shape;
}

/* With few blocks, so that sequences are preempted too. */
static struct quern *start(const char *draft)
{
    pool_start(&pool, path, "--device", "cpu", "--workers", "2", "--threads", "1", "--ctx", "512", "--slots",
               "3", "--kv-blocks", "20", draft ? "--draft" : NULL, draft, NULL);
    return connect_to(pool.frontend);
}

/* Answers of few different ids, so that all that is drafted is right now and then. */
static struct quern_request request_of(int i)
{
    static const char *const prompts[] = {"a long way to go, a long way to go", "round and round"};
    static const struct quern_logit_bias likely[] = {{70, 90}, {71, 90}, {72, 90}};
    struct quern_request request =
        i % 3 == 2 ? seeded(prompts[i % 2], TOKENS) : endless(prompts[i % 2], TOKENS);
    request.seed = (uint64_t)i + 1;
    request.ignore_eos = true;
    request.logit_bias = likely;
    request.n_logit_bias = sizeof likely / sizeof *likely;
    return request;
}

static void send_all(struct quern *client, struct answer *answers)
{
    for (int i = 0; i < REQUESTS; i++) {
        const struct quern_request request = request_of(i);
        send_request(client, &request, &answers[i]);
    }
}

static void expect_equal(const struct answer *answer, const struct answer *expected)
{
    ck_assert_msg(answer->reason != QUERN_ERROR, "%s: %s", answer->error, answer->error_text);
    ck_assert_int_eq(answer->reason, expected->reason);
    ck_assert_uint_eq(answer->ids.len, expected->ids.len);
    ck_assert_mem_eq(answer->ids.data, expected->ids.data, expected->ids.len * sizeof(int32_t));
}

/* No more than were drafted, and than ids that did not come from a step of their own. */
static void expect_counts(const struct answer *answer, bool drafts)
{
    if (!drafts)
        ck_assert_uint_eq(answer->drafted_tokens, 0);
    ck_assert_uint_le(answer->accepted_tokens, answer->drafted_tokens);
    ck_assert_uint_lt(answer->accepted_tokens, answer->output_tokens);
}

/* Of all workers, by the status, which follows soon. */
static void await_drafts(struct quern *client)
{
    const uint64_t until = clock_ns() + 60 * CLOCK_NS_PER_S;
    for (;;) {
        const struct quern_status *status;
        uint64_t drafted = 0, accepted = 0;
        ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
        for (size_t i = 0; i < status->n_workers; i++) {
            drafted += status->workers[i].drafted;
            accepted += status->workers[i].accepted;
        }
        if (accepted > 0 && accepted < drafted)
            return;
        ck_assert_msg(clock_ns() < until, "%llu of %llu drafted ids accepted", (unsigned long long)accepted,
                      (unsigned long long)drafted);
    }
}

START_TEST(drafts_change_no_id)
{
    const struct synth_shape shape = shape_of(_i);
    struct answer expected[REQUESTS] = {0}, answers[REQUESTS] = {0};
    struct error err;
    pid_t pids[WORKERS];
    close(mkstemp(path));
    ck_assert_msg(synth_write(&shape, mixture_by_name("Q8_0"), 5, path, &err) == 0, "%s", err.text);
    struct quern *client = start(NULL);
    send_all(client, expected);
    await_answers(client, expected, REQUESTS, 200);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);

    client = start("6");
    ck_assert_int_eq(pool_worker_pids(&pool, pids, WORKERS), WORKERS);
    send_all(client, answers);
    for (int i = 0; i < REQUESTS; i += 2)
        await_ids(client, &answers[i], 20, 120);
    ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
    await_answers(client, answers, REQUESTS, 200);
    await_drafts(client);
    uint32_t n_accepted = 0, n_rejected = 0;
    for (int i = 0; i < REQUESTS; i++) {
        expect_counts(&expected[i], false);
        expect_counts(&answers[i], true);
        n_accepted += answers[i].accepted_tokens;
        n_rejected += answers[i].drafted_tokens - answers[i].accepted_tokens;
        ck_assert_uint_eq(expected[i].ids.len, TOKENS);
        expect_equal(&answers[i], &expected[i]);
        answer_deinit(&answers[i]);
        answer_deinit(&expected[i]);
    }
    ck_assert_uint_gt(n_accepted, 0);
    ck_assert_uint_gt(n_rejected, 0);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    unlink(path);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, NULL, forget);
    tcase_set_timeout(tests, 600);
    tcase_add_loop_test(tests, drafts_change_no_id, 0, MODELS);
}

int main(void)
{
    return run_tests("drafts", add);
}
