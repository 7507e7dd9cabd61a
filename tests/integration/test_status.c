/* SPDX-License-Identifier: MIT */
/* Each field of status has the right value, from where it is known (the supervisor, the registration, the
 * board, the broker's counters) to `quern status`, as JSON and as text. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include "common/amount.h"
#include "proto/gauges.h"

#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct pool pool;
static char model[RUNDIR_PATH_MAX + 32], folder[RUNDIR_PATH_MAX + 1];
static char out[1 << 20];

/* A copy of the model, so that it can go. */
static void set_up(void)
{
    char command[8192];
    ck_assert_int_eq(rundir_temporary(folder, NULL), 0);
    snprintf(model, sizeof model, "%s/model.gguf", folder);
    snprintf(command, sizeof command, "cp '%s' '%s'", tiny_model(), model);
    ck_assert_int_eq(system(command), 0);
}

static void tear_down(void)
{
    pool_forget(&pool);
    rundir_remove(folder);
}

static json_t *status_now(void)
{
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "status", "--json", "--connect", pool.rundir, NULL), 0);
    json_t *json = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static json_int_t number(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    ck_assert_msg(json_is_integer(value), "%s is missing", name);
    return json_integer_value(value);
}

static const char *text(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    ck_assert_msg(json_is_string(value), "%s is missing", name);
    return json_string_value(value);
}

static double real(const json_t *json, const char *name)
{
    const json_t *value = json_object_get(json, name);
    ck_assert_msg(json_is_number(value), "%s is missing", name);
    return json_number_value(value);
}

static const json_t *worker(const json_t *status, size_t i)
{
    return json_array_get(json_object_get(status, "workers"), i);
}

/* Asks until worker i has that number; a report to the board and a heartbeat take their time. */
static json_t *await_number(size_t i, const char *name, json_int_t value)
{
    for (int round = 0; round < 1200; round++) {
        json_t *json = status_now();
        if (number(worker(json, i), name) == value)
            return json;
        json_decref(json);
        usleep(50000);
    }
    ck_abort_msg("%s of worker %zu never becomes %lld: %s", name, i, (long long)value, out);
    return NULL;
}

START_TEST(an_idle_pool_shows_what_it_is_made_of)
{
    pid_t pids[2];
    char template[sizeof folder + 16];
    snprintf(template, sizeof template, "%s/template", folder);
    FILE *file = fopen(template, "w");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(
        fputs(
            "{{ tools | tojson if tools }}{% for m in messages %}{{ m.content }}{% for c in m.tool_calls or "
            "[] %}"
            "<tool_call>{\"name\": \"{{ c.function.name }}\", \"arguments\": {{ c.function.arguments | "
            "tojson }}}"
            "</tool_call>{% endfor %}\n{% endfor %}{{ '<think>' if enable_thinking else '<think></think>' }}",
            file),
        0);
    ck_assert_int_eq(fclose(file), 0);
    pool_start(&pool, model, "--workers", "2", "--slots", "3", "--kv-blocks", "300", "--ctx", "2048",
               "--chat-template", template, "--alias", "gpt-4o", "--alias", "llama", NULL);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);
    json_t *json = status_now();
    ck_assert_int_eq(number(json, "boot"), 1);
    ck_assert(json_is_false(json_object_get(json, "draining")));
    ck_assert_str_eq(text(json, "version"), QUERN_VERSION);
    ck_assert_int_eq(number(json, "sessions"), 1); /* the one that asks */
    const char *const zero[] = {"queued", "running", "admitted", "ended", "rejected", "moved", "tokens"};
    for (size_t i = 0; i < sizeof zero / sizeof *zero; i++)
        ck_assert_int_eq(number(json, zero[i]), 0);
    ck_assert_int_ge(number(json, "journal_bytes"), 0);
    ck_assert_int_eq(number(json, "supervisor_pid"), pool.supervisor);
    ck_assert_int_eq(number(json, "broker_pid"), pool_broker_pid(&pool));
    ck_assert_int_eq(number(json, "gateway_pid"), 0); /* it serves no HTTP */
    ck_assert_uint_eq(json_array_size(json_object_get(json, "workers")), 2);
    for (size_t i = 0; i < 2; i++) {
        const json_t *w = worker(json, i);
        char name[16];
        snprintf(name, sizeof name, "worker-%zu", i);
        ck_assert_str_eq(text(w, "name"), name);
        ck_assert_int_eq(strncmp(text(w, "device"), "cpu ", 4), 0);
        ck_assert_int_eq(strncmp(text(w, "model"), "tiny", 4), 0);
        const json_t *aliases = json_object_get(w, "aliases");
        ck_assert_uint_eq(json_array_size(aliases), 2);
        ck_assert_str_eq(json_string_value(json_array_get(aliases, 1)), "llama");
        ck_assert_str_eq(text(w, "state"), "ready");
        ck_assert_str_eq(text(w, "reason"), "");
        ck_assert(json_is_true(json_object_get(w, "chat")));
        ck_assert_str_eq(text(w, "tools"), "object"); /* as the template writes calls */
        ck_assert_ptr_nonnull(strstr(text(w, "dialect"), "<tool_call>"));
        ck_assert(json_is_true(json_object_get(w, "thinks")));
        ck_assert_int_eq(number(w, "context"), 2048);
        ck_assert_int_eq(number(w, "embedding"), 256);
        ck_assert_int_eq(number(w, "pid"), pids[i]);
        ck_assert_int_eq(number(w, "incarnation"), 1);
        ck_assert_int_eq(number(w, "slots"), 3);
        ck_assert_int_eq(number(w, "kv_free"), 300);
        ck_assert_int_eq(number(w, "kv_total"), 300);
        ck_assert_int_eq(number(w, "kv_block_bytes"), 2 * 2 * 2 * 64 * 32 * 2); /* layers, K and V, heads … */
        ck_assert_int_eq(number(w, "memory_kv"), 300 * number(w, "kv_block_bytes"));
        ck_assert_int_gt(number(w, "memory"), number(w, "memory_kv")); /* the weights too */
        ck_assert_int_eq(number(w, "memory_kv_held"), 0);
        ck_assert_int_eq(number(w, "memory_states"), 0); /* it has no recurrent layers */
        ck_assert_int_gt(number(w, "memory_weights"), 1000000);
        ck_assert_int_gt(number(w, "memory_workspace"), 0);
        ck_assert_int_le(number(w, "memory_weights") + number(w, "memory_workspace") + number(w, "memory_kv"),
                         number(w, "memory"));
        ck_assert_int_gt(number(w, "memory_resident"), 1000000);
        ck_assert_int_ge(number(w, "memory_resident_peak"), number(w, "memory_resident"));
        ck_assert_int_eq(number(w, "memory_peak"), number(w, "memory"));
        ck_assert_int_eq(number(w, "device_total"), 0); /* no GPU */
        /* The other gauges count what has happened, and nothing has. */
#define NAME_OF(type, name, ...) #name,
        const char *const gauges[] = {WORKER_GAUGES(NAME_OF) "restarts", "steps"};
        for (size_t j = 0; j < sizeof gauges / sizeof *gauges; j++)
            if (!strstr("kv_free kv_total kv_block_bytes memory_kv memory_weights memory_workspace "
                        "memory_resident memory_peak memory_resident_peak",
                        gauges[j]))
                ck_assert_int_eq(number(w, gauges[j]), 0);
        ck_assert_double_eq(real(w, "tokens_per_s"), 0);
        ck_assert_double_eq(real(w, "hit_rate"), 0);
    }
    json_decref(json);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* How many values a histogram of the first worker has seen. */
static json_int_t observed(const json_t *json, const char *name)
{
    const json_t *counts = json_object_get(json_object_get(worker(json, 0), name), "counts");
    json_int_t n = 0;
    ck_assert_uint_eq(json_array_size(counts), QUERN_HISTOGRAM_BOUNDS + 1);
    for (size_t i = 0; i <= QUERN_HISTOGRAM_BOUNDS; i++)
        n += json_integer_value(json_array_get(counts, i));
    return n;
}

/* One worker with KV blocks for one of these prompts at a time, and room for two sequences. */
START_TEST(a_busy_pool_shows_what_it_does)
{
    enum { MOST = 20, PROMPT_MOST = 700 };
    static int32_t prompts[MOST][PROMPT_MOST];
    const bool few = test_is_scaled();
    const int requests = few ? 10 : MOST, prompt = few ? 320 : PROMPT_MOST;
    const char *const blocks = few ? "16" : "35";
    const uint32_t output = few ? 150 : 400;
    pool_start(&pool, model, "--slots", "2", "--kv-blocks", blocks, NULL);
    struct quern *client = connect_to(pool.rundir);
    struct answer answers[MOST] = {0}, refused = {0};
    for (int i = 0; i < requests * prompt; i++)
        prompts[i / prompt][i % prompt] = 260 + (i / prompt + i % prompt) % 200; /* no two begin alike */
    struct quern_request request = endless(NULL, output), wrong = endless("x", 1);
    request.n_ids = (size_t)prompt;
    struct quern_logit_bias on = {77, 100}; /* never ends by itself */
    request.logit_bias = &on;
    request.n_logit_bias = 1;
    for (int i = 0; i < requests; i++) {
        request.ids = prompts[i];
        send_request(client, &request, &answers[i]);
    }
    wrong.model = "another";
    send_request(client, &wrong, &refused);
    await_answers(client, &refused, 1, 60);
    await_ids(client, &answers[0], 3, 60);
    json_t *json = await_number(0, "active", 1);
    /* Where one has just ended, the next one is still on its way to the worker. */
    for (int round = 0; round < 100 && number(worker(json, 0), "waiting") == 0; round++) {
        json_decref(json);
        json = await_number(0, "active", 1);
    }
    const json_t *w = worker(json, 0);
    ck_assert_int_eq(number(json, "sessions"), 2);
    ck_assert_int_eq(number(json, "admitted"), requests);
    ck_assert_int_eq(number(json, "rejected"), 1);
    ck_assert_int_eq(number(json, "running") + number(json, "queued"), requests - number(json, "ended"));
    ck_assert_int_gt(number(json, "queued"), 0);
    ck_assert_int_gt(number(json, "running"), 0);
    ck_assert_int_gt(number(json, "journal_bytes"), 0);
    ck_assert_int_eq(number(w, "active"), 1);
    ck_assert_int_gt(number(w, "waiting"), 0);
    ck_assert_int_lt(number(w, "kv_free"), atoi(blocks) * 4 / 7);
    ck_assert_int_eq(number(w, "kv_total"), atoi(blocks));
    ck_assert_int_gt(number(w, "steps"), 2);
    ck_assert_int_gt(number(w, "tokens"), 0);
    ck_assert_int_eq(number(w, "memory_kv_held"),
                     (number(w, "kv_total") - number(w, "kv_free")) * number(w, "kv_block_bytes"));
    ck_assert_int_lt(number(w, "memory_kv_held"), number(w, "memory_kv") + 1);
    ck_assert_int_ge(number(w, "memory_kv_held_peak"), number(w, "memory_kv_held"));
    ck_assert_int_gt(number(w, "memory_kv_held_peak"), 0);
    json_decref(json);
    await_ids(client, &answers[0], output / 2, 60);
    double rate = 0;
    for (int round = 0; round < 400 && rate == 0; round++) {
        json = status_now();
        rate = real(worker(json, 0), "tokens_per_s");
        json_decref(json);
    }
    ck_assert_double_gt(rate, 0);
    await_answers(client, answers, (size_t)requests, 240);
    json = await_number(0, "tokens", requests * output);
    ck_assert_int_eq(number(json, "ended"), requests);
    ck_assert_int_eq(number(json, "running"), 0);
    ck_assert_int_eq(number(json, "queued"), 0);
    ck_assert_int_eq(number(json, "tokens"), requests * output);
    ck_assert_int_eq(observed(json, "step_decode") + observed(json, "step_prefill") +
                         observed(json, "step_mixed"),
                     number(worker(json, 0), "steps"));
    ck_assert_int_eq(observed(json, "step_rows"), number(worker(json, 0), "steps"));
    ck_assert_int_eq(observed(json, "computed_rows"), number(worker(json, 0), "steps"));
    ck_assert_int_eq(observed(json, "first_token") + observed(json, "token_gap"), requests * output);
    json_decref(json);
    for (int i = 0; i < requests; i++)
        answer_deinit(&answers[i]);
    answer_deinit(&refused);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* Whether the text has the word, standing alone. */
static void check_shown(const char *format, ...)
{
    char word[128];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(word, sizeof word, format, arguments);
    va_end(arguments);
    size_t len = strlen(word);
    for (const char *at = out; (at = strstr(at, word)); at++)
        if ((at == out || strchr(" \n", at[-1])) && strchr(" \n,;:", at[len]))
            return;
    ck_abort_msg("\"%s\" is not in:\n%s", word, out);
}

/* Prompts of 320 ids are ten blocks, and there is room for four of them. The second comes again and is found,
 * but for the id that gives its logits; the last ones push out what was there. */
START_TEST(a_pool_shows_what_its_caches_find_keep_and_give_up)
{
    enum { PROMPT = 320, CACHED = PROMPT - 1 };
    static const int order[] = {0, 1, 1, 2, 3, 4, 5};
    int32_t prompt[PROMPT];
    pool_start(&pool, model, "--slots", "2", "--kv-blocks", "44", NULL);
    struct quern *client = connect_to(pool.rundir);
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        struct answer answer = {0};
        struct quern_request request = endless(NULL, 1);
        for (int j = 0; j < PROMPT; j++)
            prompt[j] = 260 + (order[i] + j) % 200;
        request.ids = prompt;
        request.n_ids = PROMPT;
        send_request(client, &request, &answer);
        await_answers(client, &answer, 1, 60);
        ck_assert_uint_eq(answer.cached_tokens, i == 2 ? CACHED : 0);
        answer_deinit(&answer);
    }
    json_t *json = await_number(0, "tokens", 7);
    const json_t *w = worker(json, 0);
    ck_assert_int_eq(number(w, "cache_hits"), CACHED);
    ck_assert_int_eq(number(w, "prefill_tokens"), 7 * PROMPT - CACHED);
    ck_assert_int_ge(number(w, "evictions"), 6 * PROMPT / 32 - 44);
    ck_assert_int_eq(number(w, "kv_cached") + number(w, "evictions"), 6 * PROMPT / 32);
    ck_assert_double_eq_tol(real(w, "hit_rate"), (double)CACHED / (7 * PROMPT), 1e-4);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    check_shown("%d prompt tokens computed", 7 * PROMPT - CACHED);
    check_shown("%d found in caches", CACHED);
    const uint64_t block = (uint64_t)number(w, "kv_block_bytes");
    check_shown("KV caches of %s, %s of them kept for prompts", amount_of_bytes(44 * block).text,
                amount_of_bytes((uint64_t)number(w, "kv_cached") * block).text);
    check_shown("14%%"); /* 319 of 2,240 */
    check_shown("%d", (int)number(w, "kv_cached"));
    check_shown("%d", (int)number(w, "evictions"));
    json_decref(json);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

/* A request whose worker dies goes on at the next one, which finds the prompt in the pool's store. */
START_TEST(a_move_and_what_came_back_from_the_store_are_counted)
{
    enum { PROMPT = 320 };
    const uint32_t output = test_is_scaled() ? 400 : 3000; /* it runs still when its worker is killed */
    int32_t prompt[PROMPT];
    pid_t pid;
    pool_start(&pool, model, "--prefix-store", "8", NULL);
    ck_assert_int_eq(pool_worker_pids(&pool, &pid, 1), 1);
    struct quern *client = connect_to(pool.rundir);
    struct answer answer = {0};
    struct quern_request request = endless(NULL, output);
    for (int i = 0; i < PROMPT; i++)
        prompt[i] = 260 + i % 200;
    request.ids = prompt;
    request.n_ids = PROMPT;
    send_request(client, &request, &answer);
    await_ids(client, &answer, 100, 60);
    kill(pid, SIGKILL);
    await_answers(client, &answer, 1, 60);
    json_t *json = await_number(0, "restarts", 1);
    for (int round = 0; round < 1200 && number(worker(json, 0), "restores") < PROMPT / 32; round++) {
        json_decref(json); /* the board has not told yet */
        usleep(50000);
        json = status_now();
    }
    json_int_t restores = number(worker(json, 0), "restores");
    ck_assert_int_eq(number(json, "moved"), 1);
    ck_assert_int_ge(restores, PROMPT / 32);
    json_decref(json);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    check_shown("1 moved");
    check_shown("%d", (int)restores);
    answer_deinit(&answer);
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(the_text_says_the_same_as_the_json)
{
    pool_start(&pool, model, "--slots", "3", "--kv-blocks", "300", NULL);
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "-n", "9",
                                     "--logit-bias", "77:100", "x", NULL),
                         0);
    json_t *json = await_number(0, "tokens", 18);
    const json_t *w = worker(json, 0);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    check_shown("%s", text(json, "version"));
    check_shown("boot %d", 1);
    ck_assert_ptr_nonnull(strstr(out, "1 session"));
    check_shown("0 queued");
    check_shown("0 running");
    check_shown("2 admitted");
    check_shown("2 ended");
    check_shown("0 refused");
    check_shown("18 tokens");
    check_shown("%s", text(w, "name"));
    check_shown("%s", text(w, "state"));
    check_shown("%d", (int)number(w, "pid"));
    check_shown("%d/%d", (int)number(w, "active"), (int)number(w, "slots"));
    check_shown("%d/%d", (int)number(w, "kv_free"), (int)number(w, "kv_total"));
    check_shown("%d", 18);
    check_shown("%s", text(w, "model"));
    check_shown("%s", text(w, "device"));
    json_decref(json);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
}
END_TEST

START_TEST(a_worker_that_died_and_one_that_failed_are_told)
{
    pid_t pids[2];
    pool_start(&pool, model, "--workers", "2", NULL);
    ck_assert_int_eq(pool_worker_pids(&pool, pids, 2), 2);
    kill(pids[0], SIGKILL);
    json_t *json = await_number(0, "restarts", 1);
    ck_assert_int_eq(number(worker(json, 0), "incarnation"), 2);
    ck_assert_int_eq(number(worker(json, 1), "restarts"), 0);
    for (int round = 0; round < 600 && strcmp(text(worker(json, 0), "state"), "ready") != 0; round++) {
        json_decref(json);
        usleep(50000);
        json = status_now();
    }
    ck_assert_str_eq(text(worker(json, 0), "state"), "ready"); /* it has opened the model */
    json_decref(json);
    ck_assert_int_eq(unlink(model), 0); /* permanent, for whoever starts from now on */
    kill(pids[1], SIGKILL);
    const char *state = "";
    for (int round = 0; round < 600 && strcmp(state, "failed") != 0; round++) {
        usleep(50000);
        json = status_now();
        state = strcmp(text(worker(json, 1), "state"), "failed") == 0 ? "failed" : "";
        if (!state[0])
            json_decref(json);
    }
    ck_assert_str_eq(state, "failed");
    ck_assert_ptr_nonnull(strstr(text(worker(json, 1), "reason"), "model.gguf"));
    ck_assert_int_eq(number(worker(json, 1), "pid"), 0);
    json_decref(json);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "failed"));
    ck_assert_ptr_nonnull(strstr(out, "model.gguf"));
    pool_stop(&pool, SIGTERM, 60);
}
END_TEST

START_TEST(a_pool_that_drains_says_so)
{
    pool_start(&pool, model, NULL);
    struct quern *client = connect_to(pool.rundir);
    struct answer answer = {0};
    struct quern_request request = endless("x", 3000);
    const struct quern_id id = send_request(client, &request, &answer);
    await_ids(client, &answer, 1, 60);
    kill(pool.broker, SIGTERM);
    ck_assert(pool_says(&pool, "drain", 60));
    json_t *json = status_now();
    ck_assert(json_is_true(json_object_get(json, "draining")));
    ck_assert_str_eq(text(worker(json, 0), "state"), "draining");
    json_decref(json);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "status", "--connect", pool.rundir, NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "draining"));
    ck_assert_int_eq(quern_cancel(client, id, NULL), 0); /* it has run for long enough */
    await_answers(client, &answer, 1, 60);
    answer_deinit(&answer);
    quern_free(client);
    pool_stop(&pool, SIGTERM, 60);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, an_idle_pool_shows_what_it_is_made_of);
    tcase_add_test(tests, a_busy_pool_shows_what_it_does);
    tcase_add_test(tests, a_pool_shows_what_its_caches_find_keep_and_give_up);
    tcase_add_test(tests, a_move_and_what_came_back_from_the_store_are_counted);
    tcase_add_test(tests, the_text_says_the_same_as_the_json);
    tcase_add_test(tests, a_worker_that_died_and_one_that_failed_are_told);
    tcase_add_test(tests, a_pool_that_drains_says_so);
}

int main(void)
{
    return run_tests("status", add);
}
