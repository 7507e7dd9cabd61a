/* SPDX-License-Identifier: MIT */
/* The receiving side of integration tests: see answer.h for the promises that it checks. */

#include "tests/integration/support/answer.h"

#include <check.h>
#include <stdio.h>

#include "common/clock.h"

void answer_collect(void *arg, const struct quern_output *output)
{
    struct answer *answer = arg;
    ck_assert_msg(answer->ends == 0, "an output came after the end");
    ck_assert_uint_eq(output->index, answer->ids.len);
    ck_assert_int_eq(ids_append(&answer->ids, output->ids, output->n_ids), 0);
    ck_assert_int_eq(buffer_append(&answer->text, output->text, output->text_len), 0);
    answer->outputs++;
    if (!output->end)
        return;
    const struct quern_end *end = output->end;
    answer->ends++;
    answer->reason = end->reason;
    answer->retry_after_ms = end->retry_after_ms;
    answer->prompt_tokens = end->prompt_tokens;
    answer->cached_tokens = end->cached_tokens;
    answer->output_tokens = end->output_tokens;
    answer->drafted_tokens = end->drafted_tokens;
    answer->accepted_tokens = end->accepted_tokens;
    answer->seed = end->seed;
    snprintf(answer->error, sizeof answer->error, "%s", end->error);
    snprintf(answer->error_text, sizeof answer->error_text, "%s", end->text);
    if (end->reason != QUERN_ERROR)
        ck_assert_uint_eq(end->output_tokens, answer->ids.len);
}

void answer_deinit(struct answer *answer)
{
    ids_deinit(&answer->ids);
    buffer_deinit(&answer->text);
    *answer = (struct answer){0};
}

struct quern *connect_to(const char *endpoint)
{
    struct quern *client = NULL;
    struct quern_error err = {0};
    ck_assert_msg(quern_connect(endpoint, 60000, &client, &err) == 0, "%s", err.text);
    return client;
}

static void dispatch_once(struct quern *client)
{
    struct quern_error err = {0};
    ck_assert_msg(quern_dispatch(client, 100, &err) >= 0, "%s", err.text);
}

void await_answers(struct quern *client, struct answer *answers, size_t n, int timeout_s)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    for (size_t i = 0; i < n; i++) {
        while (answers[i].ends == 0) {
            ck_assert_msg(clock_ns() < until, "answer %zu of %zu has no end after %d s (%zu ids)", i, n,
                          timeout_s, answers[i].ids.len);
            dispatch_once(client);
        }
    }
}

struct quern_request seeded(const char *prompt, uint32_t max_tokens)
{
    struct quern_request request;
    quern_request_init(&request);
    request.text = prompt;
    request.max_tokens = max_tokens;
    request.temperature = 1;
    request.has_seed = true;
    request.seed = 7;
    return request;
}

struct quern_request endless(const char *prompt, uint32_t max_tokens)
{
    struct quern_request request = seeded(prompt, max_tokens);
    request.temperature = 0;
    return request;
}

struct quern_id send_request(struct quern *client, const struct quern_request *request, struct answer *answer)
{
    struct quern_id id;
    struct quern_error err = {0};
    ck_assert_msg(quern_generate(client, request, answer_collect, answer, &id, &err) == 0, "%s", err.text);
    return id;
}

struct quern_id ask(struct quern *client, const char *prompt, uint32_t max_tokens, struct answer *answer)
{
    struct quern_request request = seeded(prompt, max_tokens);
    return send_request(client, &request, answer);
}

void await_ids(struct quern *client, struct answer *answer, size_t n, int timeout_s)
{
    uint64_t until = clock_ns() + (uint64_t)timeout_s * CLOCK_NS_PER_S;
    while (answer->ids.len < n) {
        ck_assert_msg(answer->ends == 0, "it ended (%s %s) with %zu ids", answer->error, answer->error_text,
                      answer->ids.len);
        ck_assert_msg(clock_ns() < until, "%zu of %zu ids after %d s", answer->ids.len, n, timeout_s);
        dispatch_once(client);
    }
}
