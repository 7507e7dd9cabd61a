/* SPDX-License-Identifier: MIT */
/* What quern trace shows of real pools under load: each step once, each stage of each request in its order,
 * and who asks for one request gets that one. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include "common/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS   12
#define MOST       64 /* requests that a trace may show */
#define WORKERS    2
#define PATIENCE_S (test_is_scaled() ? 300 : 90)

static struct pool pool;
static struct quern *client;
static const char *const stages[] = {"admitted",      "tokenized",   "slot",        "prefix",
                                     "prefill_begin", "prefill_end", "first_token", "end"};
enum { STAGES = sizeof stages / sizeof *stages };

/* What was told of a request. */
struct told {
    char id[33];
    int next; /* of the stages */
    uint64_t at_us, output;
};

static struct seen {
    uint64_t steps, ids, padding, timed;
    uint64_t from[WORKERS], last_step[WORKERS];
    struct told requests[MOST];
    int n, ended;
} seen;

static void tear_down(void)
{
    client = quern_free(client);
    pool_forget(&pool);
}

static void take_mark(const struct quern_trace_record *record)
{
    int i = 0;
    while (i < seen.n && strcmp(seen.requests[i].id, record->id) != 0)
        i++;
    ck_assert_int_lt(i, MOST);
    struct told *told = &seen.requests[i];
    seen.n += i == seen.n;
    snprintf(told->id, sizeof told->id, "%s", record->id);
    ck_assert_int_lt(told->next, STAGES);
    ck_assert_str_eq(record->what, stages[told->next]);
    ck_assert_uint_ge(record->at_us, told->at_us);
    told->next++;
    told->at_us = record->at_us;
    if (told->next < STAGES)
        return;
    ck_assert_str_eq(record->reason, "length");
    told->output = record->n;
    seen.ended++;
}

static void take_step(int worker, const struct quern_trace_record *record)
{
    ck_assert_uint_eq(record->n, seen.last_step[worker] + 1);
    ck_assert_uint_gt(record->decode_rows + record->prefill_rows, 0);
    ck_assert_uint_gt(record->total_us, 0);
    seen.last_step[worker] = record->n;
    seen.steps++;
    seen.ids += record->ids;
    seen.padding += record->padding_rows;
    if (record->layers_us == 0)
        return;
    seen.timed++; /* each is rounded down */
    ck_assert_uint_le(record->embed_us + record->layers_us + record->sample_us, record->total_us);
}

/* Asks each worker for what is new. */
static void watch(void)
{
    for (int i = 0; i < WORKERS; i++) {
        char name[32];
        const struct quern_trace *told;
        struct quern_error err = {0};
        snprintf(name, sizeof name, "worker-%d", i);
        ck_assert_msg(quern_trace(client, name, seen.from[i], 1000 * PATIENCE_S, &told, &err) == 0, "%s",
                      err.text);
        ck_assert_uint_eq(told->lost, 0);
        seen.from[i] = told->next;
        for (size_t j = 0; j < told->n; j++)
            if (strcmp(told->records[j].what, "step") == 0)
                take_step(i, &told->records[j]);
            else
                take_mark(&told->records[j]);
    }
}

/* Requests of different lengths at once; the trace is read while they run. */
static void load(void)
{
    static struct answer answers[REQUESTS];
    uint64_t tokens = 0;
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    memset(&seen, 0, sizeof seen);
    memset(answers, 0, sizeof answers);
    client = connect_to(pool.frontend);
    watch();
    for (int i = 0; i < REQUESTS; i++) {
        char prompt[64];
        snprintf(prompt, sizeof prompt, "%d times %d is%s", i, 7 * i,
                 test_is_scaled() ? "" : " what the wind told the wheat");
        const uint32_t n = (test_is_scaled() ? 3 : 10) + (uint32_t)i;
        const struct quern_request request = endless(prompt, n);
        send_request(client, &request, &answers[i]);
        tokens += n;
    }
    while (seen.ended < REQUESTS) {
        ck_assert_msg(clock_ns() < until, "%d of %d have ended", seen.ended, REQUESTS);
        watch();
    }
    await_answers(client, answers, REQUESTS, PATIENCE_S);
    watch(); /* the step of the last id may be noted after its end */
    uint64_t output = 0;
    for (int i = 0; i < REQUESTS; i++) {
        output += seen.requests[i].output;
        answer_deinit(&answers[i]);
    }
    ck_assert_int_eq(seen.n, REQUESTS);
    ck_assert_uint_eq(output, tokens);
    ck_assert_uint_eq(seen.ids, tokens);
}

START_TEST(on_the_processor_steps_have_times)
{
    pool_start(&pool, tiny_model(), "--device", "cpu", "--workers", "2", "--threads", "1", "--slots", "4",
               NULL);
    load();
    ck_assert_uint_gt(seen.timed, 0);
    ck_assert_uint_eq(seen.padding, 0);
}
END_TEST

/* A worker that died counts its records anew. */
static void check_restart(void)
{
    pid_t pids[WORKERS];
    const struct quern_trace *told;
    struct quern_error err;
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    ck_assert_int_eq(pool_worker_pids(&pool, pids, WORKERS), WORKERS);
    ck_assert_int_eq(kill(pids[0], SIGKILL), 0);
    while (quern_trace(client, "worker-0", seen.from[0], 5000, &told, &err) < 0 || told->incarnation == 1)
        ck_assert_msg(clock_ns() < until, "%s", err.text);
    ck_assert_uint_eq(told->incarnation, 2);
    ck_assert_uint_eq(told->next, 1);
}

/* The histogram of computed rows has those of the steps, and padding: a worker that rests reports its
 * counters a moment later than its histograms. */
static void check_computed_rows(void)
{
    const struct quern_status *status;
    struct quern_error err;
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    size_t agreeing = 0;
    while (agreeing < WORKERS) {
        ck_assert_msg(clock_ns() < until, "the rows of %zu of %d workers add up", agreeing, WORKERS);
        ck_assert_msg(quern_status(client, PATIENCE_S * 1000, &status, &err) == 0, "%s", err.text);
        ck_assert_uint_eq(status->n_workers, WORKERS);
        agreeing = 0;
        for (size_t i = 0; i < status->n_workers; i++) {
            const struct quern_worker *worker = &status->workers[i];
            const double computed = worker->step_rows.sum + (double)worker->padding_rows;
            ck_assert_double_gt(worker->step_rows.sum, 0);
            agreeing += worker->computed_rows.sum == computed;
        }
    }
}

START_TEST(two_emulated_devices_tell_their_steps_and_rows_for_nothing)
{
    setenv("QUERN_EMU_DEVICES", "2", 1);
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "8", "--ctx", "128", NULL);
    load();
    ck_assert_uint_gt(seen.padding, 0); /* six at once, in a bucket of eight */
    check_computed_rows();
    check_restart();
    unsetenv("QUERN_EMU_DEVICES");
}
END_TEST

/* Runs requests of this name until the command has ended, which one of them makes it do. */
static void feed(const char *name, FILE *out, char *text, size_t size)
{
    size_t n = 0;
    const uint64_t until = clock_ns() + (uint64_t)PATIENCE_S * CLOCK_NS_PER_S;
    for (bool ended = false; !ended;) {
        ck_assert_msg(clock_ns() < until, "%.*s", (int)n, text);
        struct answer answer = {0};
        struct quern_request request = endless("Once upon a time", 20);
        request.request_id = name;
        send_request(client, &request, &answer);
        await_answers(client, &answer, 1, PATIENCE_S);
        answer_deinit(&answer);
        const ssize_t got = read(fileno(out), text + n, size - 1 - n);
        ck_assert(got >= 0 || errno == EAGAIN);
        ended = got == 0;
        n += got > 0 ? (size_t)got : 0;
    }
    text[n] = 0;
}

START_TEST(one_request_is_followed_to_its_end)
{
    char command[2048], text[1 << 16];
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", NULL);
    client = connect_to(pool.frontend);
    snprintf(command, sizeof command, "'%s' trace --json --request wanted --connect '%s'",
             build_path("quern"), pool.rundir);
    FILE *out = popen(command, "re");
    ck_assert_ptr_nonnull(out);
    ck_assert_int_eq(fcntl(fileno(out), F_SETFL, O_NONBLOCK), 0);
    feed("wanted", out, text, sizeof text);
    ck_assert_int_eq(pclose(out), 0);
    char last[32] = "";
    json_t *json = NULL;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        json_decref(json);
        json = json_loads(line, 0, NULL);
        ck_assert_msg(json != NULL, "%s", line);
        if (!last[0])
            ck_assert_str_eq(json_string_value(json_object_get(json, "request_id")), "wanted");
        ck_assert_str_ne(last, "end"); /* nothing follows it */
        snprintf(last, sizeof last, "%s", json_string_value(json_object_get(json, "what")));
    }
    ck_assert_str_eq(last, "end");
    ck_assert_int_eq(json_integer_value(json_object_get(json, "n")), 20);
    json_decref(json);
}
END_TEST

START_TEST(a_worker_that_there_is_not_ends_the_command)
{
    char out[4096];
    pool_start(&pool, tiny_model(), "--device", "cpu", "--threads", "1", NULL);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "trace", "worker-7", "--connect", pool.rundir, NULL), 1);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "trace", "--seconds", "1", "--connect", pool.rundir, NULL), 0);
    ck_assert_ptr_nonnull(strstr(out, "LAYERS ms"));
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 380);
    tcase_add_checked_fixture(tests, NULL, tear_down);
    tcase_add_test(tests, on_the_processor_steps_have_times);
    if (EMULATED)
        tcase_add_test(tests, two_emulated_devices_tell_their_steps_and_rows_for_nothing);
    tcase_add_test(tests, one_request_is_followed_to_its_end);
    tcase_add_test(tests, a_worker_that_there_is_not_ends_the_command);
}

int main(void)
{
    setenv("QUERN_UNCHECKED", "1", 0); /* the gate has tests of its own */
    return run_tests("trace", add);
}
