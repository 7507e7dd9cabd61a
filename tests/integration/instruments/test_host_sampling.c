/* SPDX-License-Identifier: MIT */
/* serve --host-sampling on whole pools: a GPU that samples wrongly is found out, and its pool answers as a
 * sound one. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#include <stdlib.h>
#include <string.h>

#define TOKENS     24
#define PATIENCE_S (test_is_scaled() ? 300 : 90)

static struct pool pool;
static struct quern *client;

static void tear_down(void)
{
    unsetenv("QUERN_EMU_SKIP");
    client = quern_free(client);
    pool_forget(&pool);
}

static void answer_of(struct answer *answer)
{
    const struct quern_request request = endless("to be compared", TOKENS);
    send_request(client, &request, answer);
    await_answers(client, answer, 1, PATIENCE_S);
    ck_assert_str_eq(answer->error, "");
    ck_assert_uint_eq(answer->ids.len, TOKENS);
}

static const struct quern_worker *look(void)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    ck_assert_msg(quern_status(client, 1000 * PATIENCE_S, &status, &err) == 0, "%s", err.text);
    return &status->workers[0];
}

START_TEST(on_the_processor_it_changes_nothing_and_says_so)
{
    struct answer answer = {0};
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", "--slots", "2", "--host-sampling",
               NULL);
    client = connect_to(pool.frontend);
    ck_assert(pool_says(&pool, "--host-sampling changes nothing on cpu", PATIENCE_S));
    answer_of(&answer);
    answer_deinit(&answer);
    ck_assert_uint_eq(look()->ids_compared, 0);
}
END_TEST

static void start_emulated(const char *option)
{
    setenv("QUERN_UNCHECKED", "1", 1); /* the gate would find it too */
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "128", option, NULL);
    client = connect_to(pool.frontend);
}

START_TEST(a_gpu_that_samples_wrongly_is_found_out_and_answers_are_right)
{
    struct answer sound = {0}, wrong = {0}, compared = {0};
    char text[1 << 14];
    start_emulated(NULL);
    answer_of(&sound);
    tear_down();

    setenv("QUERN_EMU_SKIP", "find_best:0", 1); /* greedy ids are those of the step before */
    start_emulated(NULL);
    answer_of(&wrong);
    tear_down();
    ck_assert_mem_ne(wrong.ids.data, sound.ids.data, TOKENS * sizeof *sound.ids.data);

    setenv("QUERN_EMU_SKIP", "find_best:0", 1);
    start_emulated("--host-sampling");
    answer_of(&compared);
    ck_assert_mem_eq(compared.ids.data, sound.ids.data, TOKENS * sizeof *sound.ids.data);
    ck_assert(pool_says(&pool, "host sampling: request ", PATIENCE_S));
    ck_assert(pool_says(&pool, "); the host's counts", PATIENCE_S));
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    while (look()->ids_compared < TOKENS) /* the board follows soon */
        ck_assert_msg(clock_ns() < until, "only %u ids were compared", (unsigned)look()->ids_compared);
    ck_assert_uint_eq(look()->ids_compared, TOKENS);
    ck_assert_uint_gt(look()->ids_different, 0);
    ck_assert_int_eq(run_program(text, sizeof text, "quern", "status", "--connect", pool.rundir, NULL), 0);
    ck_assert_msg(strstr(text, " of 24 tokens sampled differently by GPU and host\n"), "%s", text);
    answer_deinit(&sound);
    answer_deinit(&wrong);
    answer_deinit(&compared);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 4 * PATIENCE_S);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, on_the_processor_it_changes_nothing_and_says_so);
    if (EMULATED)
        tcase_add_test(tests, a_gpu_that_samples_wrongly_is_found_out_and_answers_are_right);
}

int main(void)
{
    return run_tests("host sampling", add);
}
