/* SPDX-License-Identifier: MIT */
/* Pools of workers with emulated GPUs that have a clock, and so measure how their products are made: all of a
 * pool have the same choices, and what they answer does not hang on who measured. The clocks are so fast that
 * the time is soon over, for emulating products of many rows takes long. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "tests/unit/cpu/small_shapes.h"

#define WORKERS 2
#define TURNS   (test_is_scaled() ? WORKERS : 2 * WORKERS) /* of each kind; they take turns */

static struct pool pool;
static char path[] = "/tmp/quern-test-XXXXXX";
static char cache[RUNDIR_PATH_MAX + 1];

static void set_up(void)
{
    const struct synth_shape shape = thin_shape;
    struct error err;
    strcpy(path, "/tmp/quern-test-XXXXXX");
    close(mkstemp(path));
    ck_assert_msg(synth_write(&shape, mixture_by_name("Q8_0"), 5, path, &err) == 0, "%s", err.text);
    ck_assert_int_eq(rundir_temporary(cache, &err), 0);
    setenv("XDG_CACHE_HOME", cache, 1);
    setenv("QUERN_UNCHECKED", "1", 1); /* the gate has tests of its own */
}

static void tear_down(void)
{
    char command[RUNDIR_PATH_MAX + 32];
    pool_forget(&pool);
    unlink(path);
    snprintf(command, sizeof command, "rm -rf %s", cache);
    ck_assert_int_eq(system(command), 0);
}

/* How often the pool's log has the text. */
static int times_said(const char *text)
{
    int n = 0;
    for (const char *at = pool_log(&pool); (at = strstr(at, text)); at++)
        n++;
    return n;
}

static void await_said(const char *text, int n)
{
    for (int waits = 0; times_said(text) < n; waits++, usleep(50000))
        ck_assert_msg(waits < 2400, "%s, %d times: %s", text, n, pool_log(&pool));
}

/* A prompt of more rows than the library's fewest, read whole each time. */
static void ask_long(struct quern *client, struct answer *answer)
{
    char prompt[160] = "";
    const size_t len = test_is_scaled() ? 100 : sizeof prompt - 1;
    for (size_t i = 0; i < len; i++)
        prompt[i] = (char)(i % 7 == 3 ? ' ' : 'a' + i * i % 26);
    struct quern_request request = seeded(prompt, test_is_scaled() ? 3 : 12);
    request.cache_prompt = false;
    send_request(client, &request, answer);
    await_answers(client, answer, 1, 200);
    ck_assert_msg(answer->reason != QUERN_ERROR, "%s: %s", answer->error, answer->error_text);
    ck_assert_uint_gt(answer->prompt_tokens, 65);
}

static void ask_and_compare(struct quern *client, const struct answer *first)
{
    struct answer answer = {0};
    ask_long(client, &answer);
    ck_assert_uint_eq(answer.ids.len, first->ids.len);
    ck_assert_mem_eq(answer.ids.data, first->ids.data, first->ids.len * sizeof(int32_t));
    answer_deinit(&answer);
}

static void check_workers(struct quern *client)
{
    const struct quern_status *status;
    ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
    ck_assert_uint_eq(status->n_workers, WORKERS);
    for (size_t i = 0; i < WORKERS; i++) {
        const struct quern_worker *worker = &status->workers[i];
        ck_assert_msg(strstr(worker->choices, " launches of products timed in "), "%s", worker->choices);
        ck_assert_str_eq(worker->choices, status->workers[0].choices);
        ck_assert_msg(strstr(worker->arithmetic, " cublas="), "%s", worker->arithmetic);
        ck_assert_str_eq(worker->arithmetic, status->workers[0].arithmetic);
    }
}

/* Workers report what they have counted after the answer. */
static void await_library_products(struct quern *client)
{
    const uint64_t deadline = clock_ns() + 60 * CLOCK_NS_PER_S;
    uint64_t n = 0;
    while (n == 0 && clock_ns() < deadline) {
        const struct quern_status *status;
        ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
        for (size_t i = 0; i < status->n_workers; i++)
            n += status->workers[i].library_products;
        usleep(n == 0 ? 20000 : 0);
    }
    ck_assert_uint_gt(n, 0);
}

/* On two devices, so that the number of a GPU is seen to be no part of the arithmetic. */
START_TEST(workers_have_the_same_choices_and_answers_and_those_that_come_after_a_death_too)
{
    struct answer first = {0};
    pid_t pids[WORKERS];
    setenv("QUERN_EMU_DEVICES", "2", 1);
    setenv("QUERN_EMU_CLOCK", "multiply_wide=300,multiply_stream_k=300,multiply_thin=300", 1);
    pool_start(&pool, path, "--device", "emu", "--workers", "2", "--ctx", "256", "--slots", "2", "--cublas",
               "auto", NULL);
    struct quern *client = connect_to(pool.frontend);
    await_said(" launches of products timed in ", WORKERS);
    ck_assert_int_eq(times_said(", by another worker or an earlier start"), WORKERS - 1);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, WORKERS), WORKERS);
    ask_long(client, &first);
    for (int i = 0; i < TURNS; i++)
        ask_and_compare(client, &first);
    check_workers(client);
    await_library_products(client);
    for (int w = 0; w < (test_is_scaled() ? 1 : WORKERS); w++) {
        ck_assert_int_eq(kill(pids[w], SIGKILL), 0);
        ask_and_compare(client, &first);
        await_said(", by another worker or an earlier start", WORKERS + w);
    }
    for (int i = 0; i < TURNS; i++)
        ask_and_compare(client, &first);
    check_workers(client);
    answer_deinit(&first);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(status_and_inspect_show_what_was_measured)
{
    char out[32768];
    unsetenv("QUERN_EMU_DEVICES");
    setenv("QUERN_EMU_CLOCK", "multiply_wide=100,multiply_stream_k=900,multiply_thin=900", 1);
    pool_start(&pool, path, "--device", "emu", "--ctx", "64", "--slots", "2", NULL);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    ck_assert_msg(strstr(out, "\nworker-0: ") && strstr(out, " launches of products timed in ") &&
                      strstr(out, " choices differ from the rule, time ran out\n"),
                  "%s", out);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "status", "--json", "--connect", pool.rundir, NULL), 0);
    ck_assert_msg(strstr(out, "\"choices\""), "%s", out);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--device", "emu", NULL), 0);
    ck_assert_msg(strstr(out, "  measured             llama, 2 layers of 32, driver none, emulated: ") &&
                      strstr(out, "    Q8_0 32 × 32 with a bias + Q8_0 16 × 32 with a bias") &&
                      strstr(out, "      to   16 rows  wide ") && strstr(out, " by rule thin 16, "),
                  "%s", out);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--device", "emu", "--json", NULL), 0);
    ck_assert_msg(strstr(out, "\"launches\"") && strstr(out, "\"way\""), "%s", out);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "inspect", "--device", "cpu", NULL), 0);
    ck_assert_msg(!strstr(out, "measured"), "%s", out);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_set_timeout(tests, 380);
    tcase_add_test(tests, workers_have_the_same_choices_and_answers_and_those_that_come_after_a_death_too);
    tcase_add_test(tests, status_and_inspect_show_what_was_measured);
}

int main(void)
{
    return run_tests("device choices", add);
}
