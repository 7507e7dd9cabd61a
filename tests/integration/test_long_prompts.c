/* SPDX-License-Identifier: MIT */
/* Prompts of more than a message may have, through a whole pool whose context is two million tokens: ids and
 * texts, several outputs of one, and processes that are killed while the parts come or the answer is made.
 *
 * The model has no weights to speak of and its device computes nothing, so only what carries prompts takes
 * time. What its answers are depends on the prompt's length alone, so that is what is compared. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <zmq.h>

#include "common/clock.h"
#include "proto/message.h"

#define CONTEXT    (1 << 21)
#define IDS        1500000 /* of three bytes each: more than 4 MiB */
#define PATIENCE_S 120

static struct pool pool;
static struct quern *client;
static char model[RUNDIR_PATH_MAX + 32], dir[RUNDIR_PATH_MAX + 1];
static int32_t *ids; /* [CONTEXT] */
static char out[1 << 20];

static void set_up(void)
{
    environment_open(dir);
    snprintf(model, sizeof model, "%s/null.gguf", dir);
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "synth", "null", "F16", model, NULL), 0);
    ids = malloc(CONTEXT * sizeof *ids);
    ck_assert_ptr_nonnull(ids);
    for (int i = 0; i < CONTEXT; i++)
        ids[i] = 1000 + i % 25000;
}

static void tear_down(void)
{
    free(ids);
    environment_close(dir);
}

static void start(const char *workers)
{
    char context[16];
    snprintf(context, sizeof context, "%d", CONTEXT);
    pool_start(&pool, model, "--device", "null", "--override-kv", "llama.context_length=int:2097152", "--ctx",
               context, "--workers", workers, NULL);
    client = connect_to(pool.frontend);
}

static void stop(void)
{
    client = quern_free(client);
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

/* Another beginning for each, so that nothing is cached. */
static struct quern_request wanted(int which, size_t n)
{
    struct quern_request request;
    quern_request_init(&request);
    ids[0] = which + 1;
    request.ids = ids;
    request.n_ids = n;
    request.max_tokens = 20;
    request.has_seed = true;
    request.seed = 5;
    return request;
}

static void check(const struct answer *answer, size_t n)
{
    ck_assert_uint_eq(answer->ends, 1);
    ck_assert_msg(answer->reason == QUERN_LENGTH, "%s: %s", answer->error, answer->error_text);
    ck_assert_uint_eq(answer->prompt_tokens, n);
    ck_assert_uint_eq(answer->ids.len, 20);
}

static void check_all(struct answer *answers, size_t n)
{
    await_answers(client, answers, n, PATIENCE_S);
    for (size_t i = 0; i < n; i++) {
        check(&answers[i], IDS);
        answer_deinit(&answers[i]);
    }
}

START_TEST(ids_by_the_hundred_thousand_and_texts_of_megabytes_are_answered)
{
    struct answer answers[4] = {0};
    start("1");
    for (int i = 0; i < 3; i++) {
        const struct quern_request request = wanted(i, IDS + (size_t)i * 200000);
        send_request(client, &request, &answers[i]);
    }
    const size_t len = 4400000;
    char *text = malloc(len + 1);
    ck_assert_ptr_nonnull(text);
    for (size_t i = 0; i < len; i++)
        text[i] = "the word "[i % 9];
    text[len] = 0;
    struct quern_request request = wanted(0, 0);
    request.ids = NULL;
    request.n_ids = 0;
    request.text = text;
    send_request(client, &request, &answers[3]);
    await_answers(client, answers, 4, PATIENCE_S);
    for (int i = 0; i < 3; i++)
        check(&answers[i], IDS + (size_t)i * 200000);
    /* How many tokens that is is the tokenizer's matter: the answer is one, or the refusal names the context.
     */
    ck_assert_uint_eq(answers[3].ends, 1);
    ck_assert_msg(answers[3].reason == QUERN_LENGTH || strstr(answers[3].error_text, "2097152") != NULL, "%s",
                  answers[3].error_text);
    for (int i = 0; i < 4; i++)
        answer_deinit(&answers[i]);
    free(text);
    stop();
}
END_TEST

START_TEST(outputs_of_one_long_prompt_share_its_copy)
{
    enum { N = 4 };
    struct answer answers[N] = {0};
    struct quern_encoded *encoded;
    start("1");
    struct quern_request request = wanted(0, IDS);
    request.cache_prompt = false;
    ck_assert_int_eq(quern_encode(client, &request, &encoded, NULL), 0);
    ck_assert_uint_gt(quern_encoded_bytes(encoded), IDS * 3);
    for (uint64_t i = 0; i < N; i++)
        ck_assert_int_eq(quern_generate_encoded(client, encoded, &i, answer_collect, &answers[i], NULL, NULL),
                         0);
    quern_encoded_free(encoded);
    check_all(answers, N);
    stop();
}
END_TEST

START_TEST(what_is_beyond_the_limit_is_refused_with_its_name)
{
    struct quern_error err;
    struct answer answer = {0};
    start("1");
    struct quern_request request = wanted(0, CONTEXT);
    request.max_tokens = 1;
    send_request(client, &request, &answer); /* fits the limit, and not the context */
    await_answers(client, &answer, 1, PATIENCE_S);
    ck_assert_str_eq(answer.error, "too_long");
    ck_assert_ptr_nonnull(strstr(answer.error_text, "2097152"));
    answer_deinit(&answer);
    char *text = malloc((16 << 20) + 1);
    ck_assert_ptr_nonnull(text);
    memset(text, 'x', 16 << 20);
    text[16 << 20] = 0;
    request.ids = NULL;
    request.text = text;
    ck_assert_int_eq(quern_generate(client, &request, answer_collect, &answer, NULL, &err), -EMSGSIZE);
    ck_assert_str_eq(err.text, "the message has 16.0 MiB; the pool accepts 16 MiB");
    free(text);
    stop();
}
END_TEST

/* Whatever has come of it, the next broker gets all of it, from this client. */
START_TEST(brokers_are_killed_between_the_parts)
{
    enum { ROUNDS = 5 };
    start("2");
    for (int round = 0; round < ROUNDS; round++) {
        struct answer answers[3] = {0};
        for (int i = 0; i < 3; i++) {
            const struct quern_request request = wanted(10 + 3 * round + i, IDS);
            send_request(client, &request, &answers[i]);
        }
        const uint64_t until = clock_ns() + (uint64_t)round * 10 * CLOCK_NS_PER_MS;
        do
            ck_assert_int_ge(quern_dispatch(client, 0, NULL), 0);
        while (clock_ns() < until);
        const pid_t broker = pool_broker_pid(&pool);
        if (broker > 0)
            kill(broker, SIGKILL);
        check_all(answers, 3);
    }
    stop();
}
END_TEST

START_TEST(a_worker_that_dies_leaves_a_long_prompt_to_another)
{
    struct answer answer = {0};
    start("2");
    struct quern_request request = wanted(90, IDS);
    request.max_tokens = 400000;
    send_request(client, &request, &answer);
    await_ids(client, &answer, 1000, PATIENCE_S);
    pid_t workers[2];
    ck_assert_int_eq(pool_worker_pids(&pool, workers, 2), 2);
    kill(workers[0], SIGKILL); /* one of them has it */
    await_ids(client, &answer, answer.ids.len + 1000, PATIENCE_S);
    ck_assert_int_eq(pool_worker_pids(&pool, workers, 2) >= 1, 1);
    if (workers[1])
        kill(workers[1], SIGKILL);
    await_ids(client, &answer, answer.ids.len + 1000, PATIENCE_S);
    await_answers(client, &answer, 1, PATIENCE_S);
    ck_assert_msg(answer.reason == QUERN_LENGTH, "%s: %s", answer.error, answer.error_text);
    ck_assert_uint_eq(answer.ids.len, 400000);
    ck_assert_uint_eq(answer.prompt_tokens, IDS);
    answer_deinit(&answer);
    stop();
}
END_TEST

/* ---- clients that do not finish ---- */

/* Sends the first part of a request that is said to have so many bytes; the socket. */
static void *begin_and_leave_it(void *context, uint8_t name, uint32_t total)
{
    static uint8_t bytes[1 << 20];
    const int none = 0;
    void *socket = zmq_socket(context, ZMQ_DEALER);
    ck_assert_ptr_nonnull(socket);
    zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof none);
    ck_assert_int_eq(zmq_connect(socket, pool.frontend), 0);
    struct message messages[2] = {{.kind = MESSAGE_HELLO}, {.kind = MESSAGE_GENERATE_PART}};
    messages[0].hello.proto = (struct version_range){PROTO_VERSION_MIN, PROTO_VERSION_MAX};
    messages[0].hello.session = (struct id128){{name, 1}};
    messages[1].generate_part.id = (struct id128){{name}};
    messages[1].generate_part.total = total;
    messages[1].generate_part.data = (struct bytes){bytes, sizeof bytes};
    for (int i = 0; i < 2; i++) {
        struct buffer wire = {0};
        ck_assert_int_eq(message_encode(&messages[i], &wire), 0);
        ck_assert_int_eq(zmq_send(socket, wire.data, wire.len, 0), (int)wire.len);
        buffer_deinit(&wire);
    }
    return socket;
}

/* Many who begin and never finish: others go on, and when they are gone all of their room is free again. */
START_TEST(a_flood_of_unfinished_prompts_harms_nobody_else)
{
    enum { FLOOD = 40 };
    void *context = zmq_ctx_new(), *sockets[FLOOD];
    start("1");
    for (int i = 0; i < FLOOD; i++)
        sockets[i] = begin_and_leave_it(context, (uint8_t)(i + 1), 8 << 20);
    usleep(200000);
    /* Each of n has a part in n + 1 of what is left, so a long one may have to wait, and says so; a short one
     * need not. */
    struct answer answers[2] = {0};
    struct quern_request request = wanted(0, 1000);
    send_request(client, &request, &answers[0]);
    request = wanted(1, IDS);
    send_request(client, &request, &answers[1]);
    await_answers(client, answers, 2, PATIENCE_S);
    check(&answers[0], 1000);
    ck_assert_msg(answers[1].reason == QUERN_LENGTH || strcmp(answers[1].error, "overloaded") == 0, "%s",
                  answers[1].error);
    ck_assert(answers[1].reason == QUERN_LENGTH || answers[1].retry_after_ms > 0);
    for (int i = 0; i < 2; i++)
        answer_deinit(&answers[i]);
    for (int i = 0; i < FLOOD; i++)
        zmq_close(sockets[i]);
    zmq_ctx_term(context);
    /* Silent clients are gone after a lease. */
    const uint64_t until = clock_ns() + PATIENCE_S * CLOCK_NS_PER_S;
    for (bool there = false; !there;) {
        struct answer answer = {0};
        request = wanted(2, IDS);
        send_request(client, &request, &answer);
        await_answers(client, &answer, 1, PATIENCE_S);
        there = answer.reason == QUERN_LENGTH;
        answer_deinit(&answer);
        ck_assert_msg(clock_ns() < until, "no room comes back");
        usleep(there ? 0 : 200000);
    }
    stop();
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 300);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, ids_by_the_hundred_thousand_and_texts_of_megabytes_are_answered);
    tcase_add_test(tests, outputs_of_one_long_prompt_share_its_copy);
    tcase_add_test(tests, what_is_beyond_the_limit_is_refused_with_its_name);
    tcase_add_test(tests, brokers_are_killed_between_the_parts);
    tcase_add_test(tests, a_worker_that_dies_leaves_a_long_prompt_to_another);
    tcase_add_test(tests, a_flood_of_unfinished_prompts_harms_nobody_else);
}

int main(void)
{
    return run_tests("long prompts", add);
}
