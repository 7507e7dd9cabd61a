/* SPDX-License-Identifier: MIT */
/* quern trim on pools that serve: memory goes, is said to have gone, and answers stay the same. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define TOKENS     (test_is_scaled() ? 16u : 60u)
#define PROMPT     700
#define PATIENCE_S (test_is_scaled() ? 300 : 90)

static struct pool pool;
static struct quern *client;
static int32_t prompt[PROMPT];
static uint64_t run;

static void set_up(void)
{
    for (int32_t i = 0; i < PROMPT; i++)
        prompt[i] = 260 + i % 200;
    run = 0;
}

static void tear_down(void)
{
    client = quern_free(client);
    pool_forget(&pool);
}

static const struct quern_trim *trim(bool prefixes)
{
    const struct quern_trim *given;
    struct quern_error err = {0};
    ck_assert_msg(quern_trim(client, "worker-0", ++run, prefixes, 1000 * PATIENCE_S, &given, &err) == 0, "%s",
                  err.text);
    return given;
}

static uint64_t bytes_of(const struct quern_trim *given, const char *kind)
{
    for (size_t i = 0; i < given->n; i++)
        if (strcmp(given->given[i].kind, kind) == 0)
            return given->given[i].bytes;
    return 0;
}

static const struct quern_worker *look(void)
{
    const struct quern_status *status;
    struct quern_error err = {0};
    ck_assert_msg(quern_status(client, 1000 * PATIENCE_S, &status, &err) == 0, "%s", err.text);
    return &status->workers[0];
}

static void send_prompt(struct answer *answer, uint32_t n_ids)
{
    struct quern_request request = endless(NULL, TOKENS);
    request.ids = prompt;
    request.n_ids = n_ids;
    send_request(client, &request, answer);
}

static void answer_of(struct answer *answer, uint32_t n_ids)
{
    send_prompt(answer, n_ids);
    await_answers(client, answer, 1, PATIENCE_S);
    ck_assert_str_eq(answer->error, "");
}

/* Trims all the time while an answer is made. */
static void trim_while_it_serves(const struct answer *expected, uint32_t n_ids)
{
    struct answer answer = {0};
    int trims = 0;
    send_prompt(&answer, n_ids);
    await_ids(client, &answer, 1, PATIENCE_S);
    for (; answer.ends == 0; trims++)
        trim(trims % 2 > 0);
    ck_assert_int_ge(trims, 1);
    ck_assert_uint_eq(answer.ids.len, expected->ids.len);
    ck_assert_mem_eq(answer.ids.data, expected->ids.data, answer.ids.len * sizeof *answer.ids.data);
    answer_deinit(&answer);
}

START_TEST(on_the_processor_pages_go_and_come_back)
{
    struct answer answer = {0}, again = {0};
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", "--slots", "2", NULL);
    client = connect_to(pool.frontend);
    answer_of(&answer, PROMPT);
    const uint64_t block = look()->kv_block_bytes, kept = PROMPT / 32;
    const struct quern_trim *given = trim(false);
    ck_assert_uint_gt(bytes_of(given, "workspace"), 0);
    ck_assert_uint_eq(given->blocks, 0);
    ck_assert_uint_gt(given->resident_after, 0);
    ck_assert_uint_eq(given->device_free_after, 0);
    /* The cache kept its blocks, so they are found; then they go too. */
    answer_of(&again, PROMPT);
    ck_assert_mem_eq(again.ids.data, answer.ids.data, answer.ids.len * sizeof *answer.ids.data);
    given = trim(true);
    ck_assert_uint_ge(given->blocks, kept);
    ck_assert_uint_ge(bytes_of(given, "kv"), (kept - 1) * block);
    ck_assert_uint_lt(given->resident_after, given->resident_before);
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    while (look()->cache_hits == 0) /* the board follows soon */
        ck_assert_msg(clock_ns() < until, "the second prompt found nothing");
    given = trim(true); /* there is nothing left */
    ck_assert_uint_eq(bytes_of(given, "kv") + bytes_of(given, "workspace") + given->blocks, 0);
    trim_while_it_serves(&answer, PROMPT);
    ck_assert_uint_gt(look()->memory_resident, 0);
    answer_deinit(&answer);
    answer_deinit(&again);
}
END_TEST

/* Invariant: what is left to compute of a prompt depends on what a trim has dropped. What only large products
 * of the library need is left to tests/unit/cuda/test_give_back.c. */
START_TEST(on_an_emulated_device_the_gauges_show_it)
{
    const uint32_t n_ids = test_is_scaled() ? 20 : 60;
    struct answer answer = {0};
    setenv("QUERN_EMU_DEVICES", "1", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", "--ctx", "128", "--invariant", NULL);
    client = connect_to(pool.frontend);
    answer_of(&answer, n_ids);
    const struct quern_worker before = *look();
    const struct quern_trim *given = trim(false);
    const uint64_t staging = bytes_of(given, "staging");
    ck_assert_uint_gt(staging, 0);
    ck_assert_uint_gt(given->device_free_after, 0);
    ck_assert_uint_eq(given->device_free_after, given->device_free_before);
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    while (look()->memory_staging == before.memory_staging) /* the board follows soon */
        ck_assert_msg(clock_ns() < until, "the gauges stand still");
    ck_assert_uint_eq(look()->memory_staging, before.memory_staging - staging);
    ck_assert_uint_eq(bytes_of(trim(true), "staging"), 0); /* nothing has needed it since */
    trim_while_it_serves(&answer, n_ids);
    answer_deinit(&answer);
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

START_TEST(the_command_says_what_went_and_of_whom)
{
    char text[1 << 14];
    struct answer answer = {0};
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", "--workers", "2", NULL);
    client = connect_to(pool.frontend);
    answer_of(&answer, PROMPT);
    answer_deinit(&answer);
    ck_assert_int_eq(
        run_program(text, sizeof text, "quern", "trim", "--prefixes", "--connect", pool.rundir, NULL), 0);
    ck_assert_msg(strstr(text, "worker-0: its process held ") &&
                      strstr(text, "worker-1: its process held ") && strstr(text, "  workspace   ") &&
                      strstr(text, "  prefixes    "),
                  "%s", text);
    ck_assert_int_eq(
        run_program(text, sizeof text, "quern", "trim", "worker-1", "--json", "--connect", pool.rundir, NULL),
        0);
    json_t *json = json_loads(text, 0, NULL);
    ck_assert_msg(json != NULL, "%s", text);
    ck_assert_str_eq(json_string_value(json_object_get(json, "worker")), "worker-1");
    ck_assert(json_is_object(json_object_get(json, "given")));
    json_decref(json);
    ck_assert_int_eq(
        run_program(text, sizeof text, "quern", "trim", "worker-7", "--connect", pool.rundir, NULL), 1);
    const struct quern_trim *given;
    struct quern_error err = {0};
    ck_assert_int_eq(quern_trim(client, "worker-7", 1, false, 1000 * PATIENCE_S, &given, &err), -EREMOTEIO);
    ck_assert_str_eq(err.text, "bad_request: no worker \"worker-7\" in this pool");
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 380);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, on_the_processor_pages_go_and_come_back);
    if (EMULATED)
        tcase_add_test(tests, on_an_emulated_device_the_gauges_show_it);
    tcase_add_test(tests, the_command_says_what_went_and_of_whom);
}

int main(void)
{
    setenv("QUERN_UNCHECKED", "1", 0); /* the gate has tests of its own */
    return run_tests("trim", add);
}
