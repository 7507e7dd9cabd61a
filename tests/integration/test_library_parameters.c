/* SPDX-License-Identifier: MIT */
/* Parameters that libquern alone can set, or that need several requests at once, through a real pool. Those
 * of the command line are in test_parameters.c. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 12 /* ids of a short answer */

static struct pool pool;

static void set_up(void)
{
    pool_start(&pool, tiny_model(), "--slots", "1", NULL);
}

static void tear_down(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

/* Counted as output, twenty in the prompt would take forty off its logit, and the other id came first. */
START_TEST(the_prompt_does_not_count_as_output)
{
    struct quern *client = connect_to(pool.rundir);
    struct answer answer = {0};
    const struct quern_logit_bias biases[] = {{77, 100}, {78, 90}};
    int32_t prompt[20];
    struct quern_request request = endless(NULL, N);
    for (int i = 0; i < 20; i++)
        prompt[i] = 77;
    request.ids = prompt;
    request.n_ids = 20;
    request.logit_bias = biases;
    request.n_logit_bias = 2;
    request.frequency_penalty = 2;
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_int_eq(answer.ids.data[0], 77);
    int seen = 0; /* both come once what was made of the first counts */
    for (size_t i = 0; i < answer.ids.len; i++)
        seen |= answer.ids.data[i] == 78 ? 2 : answer.ids.data[i] == 77 ? 1 : 4;
    ck_assert_int_eq(seen, 3);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

/* The broker gives a worker a few more than it has slots, and those go as they came. */
START_TEST(of_those_that_wait_the_higher_priority_goes_first)
{
    enum { LOW = 12, HIGH = LOW + 1, ALL };
    struct quern *client = connect_to(pool.rundir);
    struct answer answers[ALL] = {0};
    const struct quern_logit_bias on = {77, 100}; /* never ends by itself */
    struct quern_request running = endless("x", 1500), low = endless("y", 100), high = endless("z", 4);
    running.logit_bias = low.logit_bias = high.logit_bias = &on;
    running.n_logit_bias = low.n_logit_bias = high.n_logit_bias = 1;
    low.priority = -8;
    high.priority = 8;
    send_request(client, &running, &answers[0]);
    await_ids(client, &answers[0], 1, 60);
    for (int i = 1; i <= LOW; i++)
        send_request(client, &low, &answers[i]);
    send_request(client, &high, &answers[HIGH]);
    await_answers(client, &answers[HIGH], 1, 60);
    ck_assert_uint_eq(answers[LOW].ends, 0);
    await_answers(client, answers, ALL, 60);
    for (int i = 0; i < ALL; i++)
        answer_deinit(&answers[i]);
    quern_free(client);
}
END_TEST

START_TEST(another_model_is_refused_by_name)
{
    struct quern *client = connect_to(pool.rundir);
    struct answer answer = {0}, right = {0};
    struct quern_request request = endless("x", 4);
    size_t n;
    request.model = "another";
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_int_eq(answer.reason, QUERN_ERROR);
    ck_assert_ptr_nonnull(strstr(answer.error_text, "another"));
    request.model = quern_models(client, &n)[0].name;
    send_request(client, &request, &right);
    await_answers(client, &right, 1, 60);
    ck_assert_int_eq(right.reason, QUERN_LENGTH);
    answer_deinit(&answer);
    answer_deinit(&right);
    quern_free(client);
}
END_TEST

START_TEST(control_tokens_in_a_text_count_unless_told_otherwise)
{
    struct quern *client = connect_to(pool.rundir);
    struct answer answers[2] = {0};
    struct quern_request request = endless("<s></s><s></s>", 2);
    send_request(client, &request, &answers[0]);
    request.special = false;
    send_request(client, &request, &answers[1]);
    await_answers(client, answers, 2, 60);
    ck_assert_uint_eq(answers[0].prompt_tokens, 4); /* <s> stands there already */
    ck_assert_uint_gt(answers[1].prompt_tokens, 4);
    answer_deinit(&answers[0]);
    answer_deinit(&answers[1]);
    quern_free(client);
}
END_TEST

/* Tokens of a prompt of 100 ids that were found. */
static uint32_t found(struct quern *client, int32_t first, const char *salt, bool cache_prompt)
{
    struct answer answer = {0};
    int32_t prompt[100];
    struct quern_request request = endless(NULL, 1);
    for (int i = 0; i < 100; i++)
        prompt[i] = 260 + (first + i) % 200;
    request.ids = prompt;
    request.n_ids = 100;
    request.cache_salt = salt;
    request.cache_prompt = cache_prompt;
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_int_eq(answer.reason, QUERN_LENGTH);
    uint32_t cached = answer.cached_tokens;
    answer_deinit(&answer);
    return cached;
}

/* The k-th of a few kinds of requests. */
static struct quern_request kind_of(uint32_t k)
{
    static const char *const prompts[] = {"one", "two", "three", "four"};
    struct quern_request request = endless(prompts[k], 6);
    request.temperature = k % 2 ? 1 : 0;
    request.seed = k;
    return request;
}

START_TEST(hundreds_of_slots_answer_as_one_does)
{
    enum { KINDS = 4, ALL = 400 };
    struct pool wide = {0};
    static struct answer alone[KINDS], together[ALL];
    pool_start(&wide, tiny_model(), "--slots", "512", "--kv-blocks", "600", NULL);
    struct quern *client = connect_to(wide.rundir), *one = connect_to(pool.rundir);
    for (uint32_t k = 0; k < KINDS; k++) {
        struct quern_request request = kind_of(k);
        send_request(one, &request, &alone[k]);
    }
    await_answers(one, alone, KINDS, 60);
    for (uint32_t i = 0; i < ALL; i++) {
        struct quern_request request = kind_of(i % KINDS);
        send_request(client, &request, &together[i]);
    }
    await_answers(client, together, ALL, 120);
    for (uint32_t i = 0; i < ALL; i++) {
        ck_assert_uint_eq(together[i].ids.len, 6);
        ck_assert_mem_eq(together[i].ids.data, alone[i % KINDS].ids.data, 6 * sizeof(int32_t));
        answer_deinit(&together[i]);
    }
    for (uint32_t k = 0; k < KINDS; k++)
        answer_deinit(&alone[k]);
    quern_free(client);
    quern_free(one);
    ck_assert_int_eq(pool_stop(&wide, SIGTERM, 60), 0);
    pool_forget(&wide);
}
END_TEST

START_TEST(an_overridden_context_is_the_pools)
{
    struct pool longer = {0};
    pool_start(&longer, tiny_model(), "--rope-scaling", "yarn", "--rope-scale", "2", "--kv-blocks", "300",
               NULL);
    struct quern *client = connect_to(longer.rundir), *plain = connect_to(pool.rundir);
    size_t n;
    const struct quern_model *model = quern_models(client, &n), *other = quern_models(plain, &n);
    ck_assert_uint_eq(model->context, 8192);
    ck_assert_uint_eq(other->context, 4096);
    ck_assert_mem_ne(model->digest, other->digest, sizeof model->digest);
    struct answer answer = {0};
    struct quern_request request = endless("Hi", 5);
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_uint_eq(answer.ids.len, 5);
    answer_deinit(&answer);
    quern_free(client);
    quern_free(plain);
    ck_assert_int_eq(pool_stop(&longer, SIGTERM, 60), 0);
    pool_forget(&longer);
}
END_TEST

START_TEST(what_is_not_to_be_cached_is_neither_looked_up_nor_kept)
{
    struct quern *client = connect_to(pool.rundir);
    ck_assert_uint_eq(found(client, 1, NULL, true), 0);
    ck_assert_uint_eq(found(client, 1, NULL, true), 96);
    ck_assert_uint_eq(found(client, 1, NULL, false), 0);
    ck_assert_uint_eq(found(client, 2, NULL, false), 0);
    ck_assert_uint_eq(found(client, 2, NULL, true), 0);
    ck_assert_uint_eq(found(client, 2, NULL, true), 96);
    quern_free(client);
}
END_TEST

START_TEST(prefixes_are_shared_with_requests_of_the_same_salt)
{
    struct quern *client = connect_to(pool.rundir);
    ck_assert_uint_eq(found(client, 3, "one", true), 0);
    ck_assert_uint_eq(found(client, 3, "other", true), 0);
    ck_assert_uint_eq(found(client, 3, NULL, true), 0);
    ck_assert_uint_eq(found(client, 3, "one", true), 96);
    quern_free(client);
}
END_TEST

/* Every number that libquern can set by name, set from text and read back by the same name. */
START_TEST(a_number_is_set_by_its_name)
{
    struct quern_request request;
    struct quern_parameter parameter;
    struct quern_error err = {0};
    quern_request_init(&request);
    size_t n = 0;
    for (; quern_parameter(n, &parameter); n++) {
        ck_assert_ptr_nonnull(parameter.help);
        ck_assert_msg(quern_request_set(&request, parameter.name, "1", &err) == 0, "%s", err.text);
        ck_assert_int_eq(quern_request_set(&request, parameter.name, "one", &err), -EINVAL);
        ck_assert_msg(strncmp(err.text, parameter.name, strlen(parameter.name)) == 0, "%s", err.text);
    }
    ck_assert_uint_gt(n, 10);
    ck_assert(request.has_seed && request.seed == 1 && request.max_tokens == 1 && request.top_k == 1);
    ck_assert(request.logprobs == 1 && request.priority == 1 && request.deadline_ms == 1 &&
              request.keep_s == 1);
    ck_assert_double_eq(request.temperature + request.top_p + request.min_p + request.repetition_penalty +
                            request.presence_penalty + request.frequency_penalty,
                        6);
    ck_assert_int_eq(quern_request_set(&request, "text", "1", &err), -ENOENT);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_unchecked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, the_prompt_does_not_count_as_output);
    tcase_add_test(tests, of_those_that_wait_the_higher_priority_goes_first);
    tcase_add_test(tests, another_model_is_refused_by_name);
    tcase_add_test(tests, control_tokens_in_a_text_count_unless_told_otherwise);
    tcase_add_test(tests, hundreds_of_slots_answer_as_one_does);
    tcase_add_test(tests, an_overridden_context_is_the_pools);
    tcase_add_test(tests, what_is_not_to_be_cached_is_neither_looked_up_nor_kept);
    tcase_add_test(tests, prefixes_are_shared_with_requests_of_the_same_salt);
    tcase_add_test(tests, a_number_is_set_by_its_name);
}

int main(void)
{
    return run_tests("library parameters", add);
}
