/* SPDX-License-Identifier: MIT */
/* Requests through a real pool: what streams, what ends, and with which reason. */

#include "tests/integration/support/answer.h"
#include "tests/integration/support/pool.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

static struct pool pool;

static void start(void)
{
    pool_start(&pool, tiny_model(), "--workers", "2", "--ctx", "4096", NULL);
}

static void stop(void)
{
    if (pool.broker > 0)
        ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

START_TEST(a_request_streams_its_tokens_and_ends_once)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    ask(client, "Once upon a time", 40, &answer);
    await_answers(client, &answer, 1, 60);
    ck_assert_uint_eq(answer.ends, 1);
    ck_assert_int_eq(answer.reason, QUERN_LENGTH);
    ck_assert_uint_eq(answer.ids.len, 40);
    ck_assert_uint_gt(answer.text.len, 0);
    ck_assert_uint_gt(answer.prompt_tokens, 1);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

START_TEST(answers_are_the_same_alone_and_among_others)
{
    enum { N = 24 };
    static const char *const prompts[] = {"red", "a green field and a river", "blue blue blue"};
    struct quern *client = connect_to(pool.frontend);
    struct answer alone[3] = {0}, among[N] = {0};
    for (int i = 0; i < 3; i++) {
        ask(client, prompts[i], 48, &alone[i]);
        await_answers(client, &alone[i], 1, 60);
    }
    for (int i = 0; i < N; i++)
        ask(client, prompts[i % 3], 48, &among[i]);
    await_answers(client, among, N, 60);
    for (int i = 0; i < N; i++) {
        ck_assert_uint_eq(among[i].ids.len, alone[i % 3].ids.len);
        ck_assert_mem_eq(among[i].ids.data, alone[i % 3].ids.data, among[i].ids.len * sizeof(int32_t));
        ck_assert_uint_eq(among[i].text.len, alone[i % 3].text.len);
        ck_assert_mem_eq(among[i].text.data, alone[i % 3].text.data, among[i].text.len);
        answer_deinit(&among[i]);
    }
    for (int i = 0; i < 3; i++)
        answer_deinit(&alone[i]);
    quern_free(client);
}
END_TEST

START_TEST(a_seed_repeats_an_answer_and_is_told_when_the_pool_chose_it)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer first = {0}, again = {0}, other = {0};
    struct quern_request request;
    struct quern_error err = {0};
    quern_request_init(&request);
    request.text = "roll the dice";
    request.max_tokens = 32;
    request.temperature = 1.5;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &first, &err), 0);
    request.has_seed = true;
    request.seed = first.seed;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &again, &err), 0);
    ck_assert_uint_eq(first.ids.len, again.ids.len);
    ck_assert_mem_eq(first.ids.data, again.ids.data, first.ids.len * sizeof(int32_t));
    request.seed = first.seed + 1;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &other, &err), 0);
    ck_assert_msg(other.ids.len != first.ids.len ||
                      memcmp(first.ids.data, other.ids.data, first.ids.len * sizeof(int32_t)) != 0,
                  "another seed gave the same answer");
    answer_deinit(&first);
    answer_deinit(&again);
    answer_deinit(&other);
    quern_free(client);
}
END_TEST

START_TEST(a_cancelled_request_ends_soon_and_its_blocks_come_back)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_error err = {0};
    struct quern_request request =
        endless("go on and on", 4000); /* on a busy machine the cancel comes late */
    struct quern_id id = send_request(client, &request, &answer);
    await_ids(client, &answer, 3, 60);
    ck_assert_int_eq(quern_cancel(client, id, &err), 0);
    await_answers(client, &answer, 1, 60);
    ck_assert_int_eq(answer.reason, QUERN_CANCELLED);
    ck_assert_uint_lt(answer.ids.len, 4000);

    const struct quern_status *status;
    bool all_free = false;
    for (int i = 0; i < 1200 && !all_free; i++) {
        ck_assert_msg(quern_status(client, 60000, &status, &err) == 0, "%s", err.text);
        all_free = status->running == 0;
        for (size_t w = 0; w < status->n_workers; w++)
            all_free = all_free && status->workers[w].kv_free == status->workers[w].kv_total &&
                       status->workers[w].kv_total > 0;
        quern_dispatch(client, 50, NULL);
    }
    ck_assert_msg(all_free, "blocks are still held after the cancel");
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

START_TEST(a_deadline_ends_a_request_with_its_own_reason)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer answer = {0};
    struct quern_request request = endless("hurry", 500);
    struct quern_error err = {0};
    request.deadline_ms = 1;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &answer, &err), 0);
    ck_assert_int_eq(answer.reason, QUERN_DEADLINE);
    ck_assert_uint_lt(answer.ids.len, 500);
    answer_deinit(&answer);
    quern_free(client);
}
END_TEST

START_TEST(a_stop_string_ends_the_text_before_it)
{
    struct quern *client = connect_to(pool.frontend);
    struct answer whole = {0}, cut = {0};
    struct quern_error err = {0};
    struct quern_request request = seeded("one two three", 48);
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &whole, &err), 0);
    /* Three plain characters from the second half: a random model also makes bytes that are no text. */
    size_t at = whole.text.len / 2;
    while (at + 3 < whole.text.len &&
           (whole.text.data[at] | whole.text.data[at + 1] | whole.text.data[at + 2]) >= 0x80)
        at++;
    ck_assert_uint_lt(at + 3, whole.text.len);
    char stop[4] = {0};
    memcpy(stop, whole.text.data + at, 3);
    const char *const stops[] = {stop};
    request.stop = stops;
    request.n_stop = 1;
    ck_assert_int_eq(quern_generate_wait(client, &request, answer_collect, &cut, &err), 0);
    ck_assert_int_eq(cut.reason, QUERN_STOP);
    ck_assert_uint_le(cut.text.len, at);
    ck_assert_mem_eq(cut.text.data, whole.text.data, cut.text.len);
    ck_assert_ptr_null(memmem(cut.text.data, cut.text.len, stop, strlen(stop)));
    answer_deinit(&whole);
    answer_deinit(&cut);
    quern_free(client);
}
END_TEST

START_TEST(a_kept_request_is_taken_over_by_another_session)
{
    struct quern *first = connect_to(pool.frontend), *second = connect_to(pool.frontend);
    struct answer before = {0}, after = {0}, reference = {0};
    struct quern_error err = {0};
    struct quern_request request = seeded("hand me over", 400);
    request.keep_s = 30;
    struct quern_id id = send_request(first, &request, &before);
    await_ids(first, &before, 5, 60);
    struct quern_id session = quern_session(first);
    first = quern_free(first);
    ck_assert_msg(quern_attach(second, session, id, answer_collect, &after, &err) == 0, "%s", err.text);
    await_answers(second, &after, 1, 60);
    ck_assert_msg(after.reason != QUERN_ERROR, "%s: %s", after.error, after.error_text);
    ck_assert_uint_ge(after.ids.len, before.ids.len);
    ck_assert_mem_eq(before.ids.data, after.ids.data, before.ids.len * sizeof(int32_t));
    ask(second, "hand me over", 400, &reference);
    await_answers(second, &reference, 1, 60);
    ck_assert_uint_eq(reference.ids.len, after.ids.len);
    ck_assert_mem_eq(reference.ids.data, after.ids.data, after.ids.len * sizeof(int32_t));
    answer_deinit(&before);
    answer_deinit(&after);
    answer_deinit(&reference);
    quern_free(second);
}
END_TEST

struct logprob_check {
    struct answer answer;
    size_t rows;
};

static void check_logprobs(void *arg, const struct quern_output *output)
{
    struct logprob_check *check = arg;
    answer_collect(&check->answer, output);
    for (size_t i = 0; i < output->n_ids; i++) {
        ck_assert_uint_eq(output->n_logprobs, 3);
        const struct quern_logprob *row = output->logprobs + i * 3;
        ck_assert_int_eq(row[0].id, output->ids[i]);
        ck_assert(row[1].logprob >= row[2].logprob && row[1].logprob >= row[0].logprob &&
                  row[1].logprob <= 0);
        check->rows++;
    }
}

START_TEST(logprobs_come_with_every_id_and_name_it_first)
{
    struct quern *client = connect_to(pool.frontend);
    struct quern_request request;
    struct quern_error err = {0};
    struct logprob_check check = {0};
    quern_request_init(&request);
    request.text = "likely";
    request.max_tokens = 8;
    request.temperature = 1;
    request.top_k = 40;
    request.top_p = 0.95;
    request.min_p = 0.05;
    request.has_seed = true; /* another one may end the answer early */
    request.seed = 1;
    request.logprobs = 3;
    ck_assert_int_eq(quern_generate_wait(client, &request, check_logprobs, &check, &err), 0);
    ck_assert_uint_eq(check.rows, 8);
    answer_deinit(&check.answer);
    quern_free(client);
}
END_TEST

START_TEST(the_pool_tokenizes_for_its_clients)
{
    struct quern *client = connect_to(pool.frontend);
    struct quern_error err = {0};
    const int32_t *ids;
    size_t n = 0;
    ck_assert_msg(quern_tokenize(client, &(struct quern_text){.text = "hello world", .len = 11}, 5000, &ids,
                                 &n, &err) == 0,
                  "%s", err.text);
    ck_assert_uint_gt(n, 0);
    int32_t back[64];
    const char *text;
    size_t len;
    ck_assert_uint_lt(n, 64);
    memcpy(back, ids, n * sizeof *ids);
    ck_assert_msg(
        quern_detokenize(client, &(struct quern_ids){.ids = back, .n = n}, 5000, &text, &len, &err) == 0,
        "%s", err.text);
    ck_assert_str_eq(text, "hello world");
    ck_assert_uint_eq(len, strlen(text));
    ck_assert_int_eq(quern_detokenize(client, &(struct quern_ids){.ids = back, .n = n, .special = true}, 5000,
                                      &text, &len, &err),
                     0);
    ck_assert_str_eq(text, "<s> hello world");
    back[0] = INT32_MAX;
    ck_assert_int_eq(
        quern_detokenize(client, &(struct quern_ids){.ids = back, .n = n}, 5000, &text, &len, &err),
        -EREMOTEIO);
    ck_assert_ptr_nonnull(strstr(err.text, "id 2147483647 is outside the vocabulary"));
    ck_assert_int_eq(
        quern_detokenize(client, &(struct quern_ids){.ids = back, .n = 0}, 5000, &text, &len, &err), 0);
    ck_assert_uint_eq(len, 0);
    quern_free(client);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, start, stop);
    tcase_add_test(tests, a_request_streams_its_tokens_and_ends_once);
    tcase_add_test(tests, answers_are_the_same_alone_and_among_others);
    tcase_add_test(tests, a_seed_repeats_an_answer_and_is_told_when_the_pool_chose_it);
    tcase_add_test(tests, a_cancelled_request_ends_soon_and_its_blocks_come_back);
    tcase_add_test(tests, a_deadline_ends_a_request_with_its_own_reason);
    tcase_add_test(tests, a_stop_string_ends_the_text_before_it);
    tcase_add_test(tests, a_kept_request_is_taken_over_by_another_session);
    tcase_add_test(tests, logprobs_come_with_every_id_and_name_it_first);
    tcase_add_test(tests, the_pool_tokenizes_for_its_clients);
}

int main(void)
{
    return run_tests("streaming", add);
}
