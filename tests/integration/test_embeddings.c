/* SPDX-License-Identifier: MIT */
/* Embeddings through a whole pool: from quern embed and libquern, with workers and brokers that are killed
 * meanwhile. Whatever happens, each request ends once, with the same bits. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"

#define PATIENCE_S   120
#define MOST_NUMBERS 4096
#define N            6 /* requests at once */

static struct pool pool;
static struct quern *client;
static char out[1 << 20], again[1 << 20];

static void start(const char *workers)
{
    pool_start(&pool, tiny_model(), "--workers", workers, NULL);
    client = connect_to(pool.frontend);
}

static void stop(void)
{
    quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

struct vector {
    float numbers[MOST_NUMBERS];
    size_t n;
    unsigned ends;
    enum quern_reason reason;
    char error[64];
    uint32_t prompt_tokens, output_tokens;
};

static void collect(void *arg, const struct quern_output *output)
{
    struct vector *vector = arg;
    ck_assert_uint_eq(vector->ends, 0);
    ck_assert_uint_eq(output->n_ids, 0);
    ck_assert_uint_eq(output->text_len, 0);
    ck_assert_ptr_nonnull(output->end);
    ck_assert_int_eq(output->embedding != NULL, output->end->reason == QUERN_STOP);
    ck_assert_uint_le(output->n_embedding, MOST_NUMBERS);
    if (output->embedding)
        memcpy(vector->numbers, output->embedding, output->n_embedding * sizeof(float));
    vector->n = output->n_embedding;
    vector->ends++;
    vector->reason = output->end->reason;
    snprintf(vector->error, sizeof vector->error, "%s", output->end->error);
    vector->prompt_tokens = output->end->prompt_tokens;
    vector->output_tokens = output->end->output_tokens;
}

static struct quern_request wanted(const char *text)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = text;
    request.embed = true;
    return request;
}

/* A text of its own for each, some of them longer than a step. */
static const char *text_of(int i)
{
    static char text[8192];
    size_t len = (size_t)snprintf(text, sizeof text, "%d", i);
    const int words = test_is_scaled() && i < N - 1 ? 1 + i * 5 : 1 + i * 40; /* the last stays longer */
    for (int n = 0; n < words; n++)
        len += (size_t)snprintf(text + len, sizeof text - len, " and %d", n * (i + 3));
    return text;
}

static struct quern_id send(int i, struct vector *vector)
{
    struct quern_error err;
    struct quern_id id;
    const struct quern_request request = wanted(text_of(i));
    *vector = (struct vector){0};
    ck_assert_msg(quern_generate(client, &request, collect, vector, &id, &err) == 0, "%s", err.text);
    return id;
}

static void await(const struct vector *vectors, int n)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (int i = 0; i < n; i++)
        while (vectors[i].ends == 0) {
            ck_assert_int_ge(quern_dispatch(client, 50, NULL), 0);
            ck_assert_msg(clock_ns() < until, "request %d did not end\n%s", i, pool_log(&pool));
        }
}

static void must_be_the_same(const struct vector *a, const struct vector *b)
{
    ck_assert_int_eq(a->reason, QUERN_STOP);
    ck_assert_int_eq(b->reason, QUERN_STOP);
    ck_assert_uint_gt(a->n, 0);
    ck_assert_uint_eq(a->n, b->n);
    ck_assert_mem_eq(a->numbers, b->numbers, a->n * sizeof(float));
}

static uint64_t n_moved(void)
{
    const struct quern_status *status;
    struct quern_error err;
    ck_assert_msg(quern_status(client, 20000, &status, &err) == 0, "%s", err.text);
    return status->moved;
}

/* Waits until so many have a worker, and no more than `queued` wait for one. */
static void await_running(uint32_t n, uint32_t queued)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    const struct quern_status *status;
    do {
        ck_assert_int_eq(quern_status(client, 20000, &status, NULL), 0);
        ck_assert(clock_ns() < until);
    } while (status->running < n || status->queued > queued);
}

/* Waits until nobody waits for a worker any more: each has one. */
static void await_assigned(uint32_t n)
{
    await_running(n, 0);
}

START_TEST(an_embedding_has_length_one_and_means_its_text)
{
    static struct vector vectors[3];
    double squares = 0, product = 0;
    size_t n;
    start("1");
    const struct quern_model *models = quern_models(client, &n);
    ck_assert_uint_eq(n, 1);
    send(1, &vectors[0]);
    send(1, &vectors[1]);
    send(2, &vectors[2]);
    await(vectors, 3);
    must_be_the_same(&vectors[0], &vectors[1]);
    ck_assert_uint_eq(vectors[0].n, models[0].embedding);
    ck_assert_uint_gt(vectors[0].prompt_tokens, 0);
    ck_assert_uint_eq(vectors[0].output_tokens, 0);
    for (size_t i = 0; i < vectors[0].n; i++) {
        squares += (double)vectors[0].numbers[i] * (double)vectors[0].numbers[i];
        product += (double)vectors[0].numbers[i] * (double)vectors[2].numbers[i];
    }
    ck_assert_double_eq_tol(squares, 1, 1e-5);
    ck_assert_double_lt(product, 0.9999);
    stop();
}
END_TEST

START_TEST(the_call_that_waits_brings_the_same_and_says_what_went_wrong)
{
    static struct vector vector;
    struct quern_error err = {.text = ""};
    struct quern_end end;
    const float *numbers;
    size_t n;
    start("1");
    send(1, &vector);
    await(&vector, 1);
    struct quern_request request = wanted(text_of(1));
    request.embed = false; /* the call sets it */
    ck_assert_msg(quern_embed_wait(client, &request, &numbers, &n, &end, &err) == 0, "%s", err.text);
    ck_assert_uint_eq(n, vector.n);
    ck_assert_mem_eq(numbers, vector.numbers, n * sizeof(float));
    ck_assert_uint_eq(end.prompt_tokens, vector.prompt_tokens);
    request.model = "none";
    ck_assert_int_eq(quern_embed_wait(client, &request, &numbers, &n, NULL, &err), -EREMOTEIO);
    ck_assert_ptr_nonnull(strstr(err.text, "no_worker"));
    request.model = NULL;
    request.max_tokens = 5;
    ck_assert_int_eq(quern_embed_wait(client, &request, &numbers, &n, NULL, &err), -EINVAL);
    ck_assert_ptr_nonnull(strstr(err.text, "max_tokens"));
    stop();
}
END_TEST

START_TEST(the_command_prints_it_as_lines_and_as_json)
{
    static struct vector vector;
    start("1");
    send(1, &vector);
    await(&vector, 1);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "embed", "--connect", pool.rundir, text_of(1), NULL), 0);
    char *line = strtok(out, "\n");
    for (size_t i = 0; i < vector.n; i++, line = strtok(NULL, "\n")) {
        ck_assert_ptr_nonnull(line);
        ck_assert_float_eq(strtof(line, NULL), vector.numbers[i]);
    }
    ck_assert_ptr_null(line);
    ck_assert_int_eq(run_program(again, sizeof again, "quern", "embed", "--connect", pool.rundir, "--json",
                                 text_of(1), NULL),
                     0);
    json_t *json = json_loads(again, 0, NULL), *numbers = json_object_get(json, "embedding");
    ck_assert_uint_eq(json_array_size(numbers), vector.n);
    for (size_t i = 0; i < vector.n; i++)
        ck_assert_float_eq((float)json_real_value(json_array_get(numbers, i)), vector.numbers[i]);
    ck_assert_int_eq(json_integer_value(json_object_get(json, "prompt_tokens")), vector.prompt_tokens);
    json_decref(json);
    stop();
}
END_TEST

START_TEST(the_command_takes_ids_and_writes_floats)
{
    static float numbers[MOST_NUMBERS + 1];
    char line[1024];
    start("1");
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "embed", "--connect", pool.rundir, "--tokens",
                                 "5,6, 7,300", NULL),
                     0);
    snprintf(line, sizeof line, "'%s' embed --connect '%s' --raw -t 5,6,7,300", build_path("quern"),
             pool.rundir);
    FILE *pipe = popen(line, "r");
    ck_assert_ptr_nonnull(pipe);
    const size_t n = fread(numbers, sizeof *numbers, MOST_NUMBERS + 1, pipe);
    ck_assert_int_eq(pclose(pipe), 0);
    ck_assert_uint_gt(n, 0);
    char *at = strtok(out, "\n");
    for (size_t i = 0; i < n; i++, at = strtok(NULL, "\n")) {
        ck_assert_ptr_nonnull(at);
        ck_assert_float_eq(strtof(at, NULL), numbers[i]);
    }
    ck_assert_ptr_null(at);
    ck_assert_int_eq(
        run_program(again, sizeof again, "quern", "embed", "--connect", pool.rundir, "-t", "5,6,7,301", NULL),
        0);
    ck_assert_str_ne(strtok(again, "\n"), out);
    static const char *const wrong[] = {"--tokens=5,x", "--tokens=,", "--tokens=5,",
                                        "--tokens=", "--tokens=-1"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_int_eq(run_program(out, sizeof out, "quern", "embed", wrong[i], NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "embed", "-t", "5", "a text", NULL), 2);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "embed", "--json", "--raw", "a text", NULL), 2);
    ck_assert_int_eq(
        run_program(out, sizeof out, "quern", "embed", "--connect", pool.rundir, "-t", "99999999", NULL), 1);
    stop();
}
END_TEST

START_TEST(a_worker_that_is_killed_takes_no_embedding_along)
{
    static struct vector before[N], after[N];
    pid_t workers[2];
    start("2");
    for (int i = 0; i < N; i++)
        send(i, &before[i]);
    await(before, N);
    ck_assert_int_eq(pool_worker_pids(&pool, workers, 2), 2);
    for (int i = 0; i < 2; i++)
        kill(workers[i], SIGSTOP);
    for (int i = 0; i < N; i++)
        send(i, &after[i]);
    await_assigned(N); /* to both, which do not move */
    kill(workers[0], SIGKILL);
    kill(workers[1], SIGCONT);
    await(after, N);
    ck_assert_uint_gt(n_moved(), 0);
    for (int i = 0; i < N; i++)
        must_be_the_same(&before[i], &after[i]);
    stop();
}
END_TEST

START_TEST(a_broker_that_is_killed_takes_no_embedding_along)
{
    static struct vector before[N], after[N];
    pid_t worker;
    start("1");
    for (int i = 0; i < N; i++)
        send(i, &before[i]);
    await(before, N);
    ck_assert_int_eq(pool_worker_pids(&pool, &worker, 1), 1);
    kill(worker, SIGSTOP);
    for (int i = 0; i < N; i++)
        send(i, &after[i]);
    await_assigned(N);
    kill(pool_broker_pid(&pool), SIGKILL);
    kill(worker, SIGCONT);
    await(after, N);
    for (int i = 0; i < N; i++)
        must_be_the_same(&before[i], &after[i]);
    stop();
}
END_TEST

START_TEST(a_cancel_and_a_deadline_end_it_without_one)
{
    static struct vector cancelled, late;
    struct quern_error err;
    pid_t worker;
    start("1");
    ck_assert_int_eq(pool_worker_pids(&pool, &worker, 1), 1);
    kill(worker, SIGSTOP);
    const struct quern_id id = send(3, &cancelled);
    struct quern_request request = wanted(text_of(4));
    request.deadline_ms = 50;
    ck_assert_int_eq(quern_generate(client, &request, collect, &late, NULL, &err), 0);
    await_assigned(1);
    ck_assert_int_eq(quern_cancel(client, id, &err), 0);
    await(&cancelled, 1); /* by the broker, who waits no longer for the worker */
    await(&late, 1);
    kill(worker, SIGCONT);
    ck_assert_int_eq(late.reason, QUERN_DEADLINE);
    ck_assert_int_eq(cancelled.reason, QUERN_CANCELLED);
    stop();
}
END_TEST

/* Tokens of prompts that the worker has computed or found, once they are so many at least. More of them than
 * the requests have says that some were preempted, and began anew. */
static uint64_t taken_in(uint64_t least)
{
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    const struct quern_status *status;
    for (uint64_t n = 0;;) {
        ck_assert_int_eq(quern_status(client, 60000, &status, NULL), 0);
        n = status->workers[0].prefill_tokens + status->workers[0].cache_hits;
        if (n >= least)
            return n;
        ck_assert_msg(clock_ns() < until, "%zu tokens of %zu\n%s", (size_t)n, (size_t)least, pool_log(&pool));
        quern_dispatch(client, 50, NULL);
    }
}

/* Long ones beside tokens, in a cache that cannot hold all: whoever is preempted begins anew. */
START_TEST(beside_others_in_a_small_cache_the_bits_are_the_same)
{
    static struct vector alone[N], beside[N];
    /* Of each, eight blocks or ten: all of them never fit into 40. */
    const uint32_t tokens = test_is_scaled() ? 240 : 300;
    static struct answer answers[N];
    uint64_t prompts = 0;
    pid_t worker;
    start("1");
    for (int i = 0; i < N; i++) {
        send(i, &alone[i]);
        await(&alone[i], 1);
        prompts += alone[i].prompt_tokens;
    }
    ck_assert_uint_eq(taken_in(prompts), prompts);
    stop();
    pool_start(&pool, tiny_model(), "--slots", "8", "--kv-blocks", "40", NULL);
    client = connect_to(pool.frontend);
    ck_assert_int_eq(pool_worker_pids(&pool, &worker, 1), 1);
    kill(worker, SIGSTOP); /* until there is more than it can hold, so that all of that begins at once */
    for (int i = 0; i < N; i++) {
        const struct quern_request request = endless("x", tokens);
        send_request(client, &request, &answers[i]);
    }
    for (int i = 0; i < N; i++)
        send(i, &beside[i]);
    await_running(N + 2, N);
    kill(worker, SIGCONT);
    await(beside, N);
    await_answers(client, answers, N, PATIENCE_S);
    for (int i = 0; i < N; i++) {
        must_be_the_same(&alone[i], &beside[i]);
        ck_assert_uint_eq(answers[i].ids.len, tokens);
        prompts += answers[i].prompt_tokens;
        answer_deinit(&answers[i]);
    }
    taken_in(prompts + 1); /* there was a preemption */
    stop();
}
END_TEST

#if EMULATED
START_TEST(a_device_that_makes_none_says_so_before_anything_is_done)
{
    static struct vector vector;
    size_t n;
    pool_start(&pool, tiny_model(), "--device", "emu", "--slots", "2", NULL);
    client = connect_to(pool.frontend);
    ck_assert_uint_eq(quern_models(client, &n)[0].embedding, 0);
    send(1, &vector);
    await(&vector, 1);
    ck_assert_int_eq(vector.reason, QUERN_ERROR);
    ck_assert_str_eq(vector.error, "unsupported");
    stop();
}
END_TEST
#endif

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 300);
    tcase_add_test(tests, an_embedding_has_length_one_and_means_its_text);
    tcase_add_test(tests, the_call_that_waits_brings_the_same_and_says_what_went_wrong);
    tcase_add_test(tests, the_command_prints_it_as_lines_and_as_json);
    tcase_add_test(tests, the_command_takes_ids_and_writes_floats);
    tcase_add_test(tests, a_worker_that_is_killed_takes_no_embedding_along);
    tcase_add_test(tests, a_broker_that_is_killed_takes_no_embedding_along);
    tcase_add_test(tests, a_cancel_and_a_deadline_end_it_without_one);
    tcase_add_test(tests, beside_others_in_a_small_cache_the_bits_are_the_same);
#if EMULATED
    tcase_add_test(tests, a_device_that_makes_none_says_so_before_anything_is_done);
#endif
}

int main(void)
{
    return run_tests("embeddings", add);
}
