/* SPDX-License-Identifier: MIT */
/* What a request may ask for: every bound just met, and just passed with the reason. */

#include "engine/limits.h"
#include "tests/unit/run.h"
#include "tests/unit/engine/fake.h"
#include "model/model.h"

#include <math.h>
#include <string.h>

static const struct backend_info device = {.most_stop_ids = 3, .n_embedding = 4};
static const int32_t ids[] = {0, FAKE_VOCAB - 1, 5};
static const int32_t low[] = {0, -1}, high[] = {0, FAKE_VOCAB};

/* One that is all right: three ids and four more, in a context of ten. */
static struct engine_request good(void)
{
    return (struct engine_request){
        .prompt = ids, .n_prompt = 3, .max_tokens = 4, .sampling = SAMPLING_GREEDY};
}

/* The plainest request for an embedding. */
static struct engine_request embedding(void)
{
    return (struct engine_request){
        .prompt = ids, .n_prompt = 3, .embed = true, .uncached = true, .sampling = SAMPLING_GREEDY};
}

static void accepted_within(struct engine_request request, uint32_t n_context, uint32_t n_cache)
{
    struct error err = {0};
    int r = engine_check_request(&request, &fake_model, &device, n_context, n_cache, &err);
    ck_assert_msg(r == 0, "%d %s", r, err.text);
}

static void refused_within(struct engine_request request, uint32_t n_context, uint32_t n_cache, int code,
                           const char *says)
{
    struct error err = {0};
    ck_assert_int_eq(engine_check_request(&request, &fake_model, &device, n_context, n_cache, &err), code);
    ck_assert_str_eq(err.text, says);
}

static void accepted(struct engine_request request)
{
    accepted_within(request, 10, 10);
}

static void refused(struct engine_request request, const char *says)
{
    refused_within(request, 10, 10, ENGINE_E_INVALID, says);
}

/* good() with one member changed. */
#define WITH(...)                                                                                            \
    ({                                                                                                       \
        struct engine_request request = good();                                                              \
        __VA_ARGS__;                                                                                         \
        request;                                                                                             \
    })

START_TEST(prompt_and_answer_fit_context_and_cache)
{
    accepted_within(good(), 7, 7);
    refused_within(good(), 6, 7, ENGINE_E_TOO_LONG,
                   "prompt (3) + max_tokens (4) = 7 tokens; the context holds 6");
    refused_within(good(), 7, 6, ENGINE_E_TOO_LONG,
                   "prompt (3) + max_tokens (4) = 7 tokens; the KV cache holds 6");
    refused_within(WITH(request.max_tokens = UINT32_MAX), 7, 7, ENGINE_E_TOO_LONG,
                   "prompt (3) + max_tokens (4294967295) = 4294967298 tokens; the context holds 7");
    refused(WITH(request.n_prompt = 0), "the prompt is empty");
    refused(WITH(request.max_tokens = 0), "max_tokens is 0");
    accepted(WITH(request.max_tokens = 1));
}
END_TEST

START_TEST(ids_are_of_the_vocabulary)
{
    char says[128];
    snprintf(says, sizeof says, "prompt[1]: id -1 is outside the vocabulary of %d", FAKE_VOCAB);
    refused(WITH(request.prompt = low, request.n_prompt = 2), says);
    snprintf(says, sizeof says, "output[1]: id %d is outside the vocabulary of %d", FAKE_VOCAB, FAKE_VOCAB);
    refused(WITH(request.output = high, request.n_output = 2), says);
    snprintf(says, sizeof says, "stop_ids[1]: id %d is outside the vocabulary of %d", FAKE_VOCAB, FAKE_VOCAB);
    refused(WITH(request.stop_ids = high, request.n_stop_ids = 2), says);
    accepted(WITH(request.output = ids, request.n_output = 3));
    accepted(WITH(request.stop_ids = ids, request.n_stop_ids = 2)); /* and the model's own one */
    refused(WITH(request.stop_ids = ids, request.n_stop_ids = 3),
            "stop_ids: 3 plus the model's own 1 exceed the device's limit of 3");
}
END_TEST

START_TEST(some_id_can_be_sampled)
{
    static struct logit_bias every[FAKE_VOCAB + 1];
    for (int i = 0; i <= FAKE_VOCAB; i++)
        every[i] = (struct logit_bias){i % FAKE_VOCAB, -INFINITY};
    refused(WITH(request.sampling.logit_bias = (struct logit_bias_list){every, FAKE_VOCAB}),
            "logit_bias bans every token");
    refused(WITH(request.sampling.logit_bias = (struct logit_bias_list){every, FAKE_VOCAB + 1}),
            "logit_bias bans every token");
    every[0].id = 1; /* twice, and 0 once at the end */
    accepted(WITH(request.sampling.logit_bias = (struct logit_bias_list){every, FAKE_VOCAB}));
    every[0] = (struct logit_bias){0, -100};
    accepted(WITH(request.sampling.logit_bias = (struct logit_bias_list){every, FAKE_VOCAB}));
}
END_TEST

START_TEST(the_end_of_a_thought_can_be_sampled)
{
    static const int32_t end[] = {5, 6}, stop[] = {FAKE_END}, word[] = {2, 4, 6},
                         many[ENGINE_MOST_THOUGHT_END + 1];
    static const struct logit_bias never[] = {{6, -INFINITY}}, hardly[] = {{6, -100}};
    struct engine_thinking thinking = {.end = end, .n_end = 2, .again = end, .n_again = 2};
#define THINKING(...) WITH(request.thinking = &thinking; __VA_ARGS__)
    accepted(THINKING());
    accepted(THINKING(request.sampling.logit_bias = (struct logit_bias_list){hardly, 1}));
    refused(THINKING(request.sampling.logit_bias = (struct logit_bias_list){never, 1}),
            "thinking_budget: id 6, which ends a thought, is excluded by logit_bias or ignore_eos");
    refused(THINKING(request.sampling.bad_words = (struct id_sequences){word, 3, 1}),
            "thinking_budget: id 6, which ends a thought, is excluded by bad_words");
    accepted(THINKING(request.stop_ids = end, request.n_stop_ids = 1));
    refused(THINKING(request.stop_ids = end, request.n_stop_ids = 1, request.min_tokens = 2),
            "thinking_budget: id 5, which ends a thought, is excluded by stop_ids with min_tokens");
    thinking.again = stop;
    thinking.n_again = 1;
    refused(THINKING(), "thinking_budget: id 256, which ends a thought, is also an end id of the model, so "
                        "no answer could follow");
    thinking.again = high;
    refused(THINKING(thinking.n_again = 2),
            "thinking_budget: the end of a thought[1]: id 258 is outside the vocabulary of 258");
    thinking.again = many;
    refused(THINKING(thinking.n_again = 65),
            "thinking_budget: ids of a thought's end 65 is out of range 1..64");
    refused(THINKING(thinking.n_again = 0),
            "thinking_budget: ids of a thought's end 0 is out of range 1..64");
}
END_TEST

START_TEST(counts_have_bounds)
{
    static const struct bytes stops[] = {BYTES_LITERAL("a"), BYTES_LITERAL("")};
    static const int32_t made[ENGINE_MOST_SPELLED + 1];
    accepted(WITH(request.stop = stops, request.n_stop = 1));
    refused(WITH(request.stop = stops, request.n_stop = 2), "stop[1] is empty");
    accepted(WITH(request.spelled = made, request.n_spelled = ENGINE_MOST_SPELLED));
    refused(WITH(request.spelled = made, request.n_spelled = ENGINE_MOST_SPELLED + 1),
            "33 control tokens to write out as text; at most 32 are allowed");
    accepted(WITH(request.output = made, request.n_output = 4));
    refused(WITH(request.output = made, request.n_output = 5), "output has 5 ids, more than max_tokens (4)");
    accepted(WITH(request.priority = 1000));
    accepted(WITH(request.priority = -1000));
    refused(WITH(request.priority = 1001), "priority 1001 is out of range -1000..1000");
    refused(WITH(request.priority = -1001), "priority -1001 is out of range -1000..1000");
    accepted(WITH(request.min_tokens = 4));
    refused(WITH(request.min_tokens = 1, request.grammar = (struct grammar *)&request),
            "min_tokens: not supported together with a grammar");
    accepted(WITH(request.n_logprobs = 256));
    refused(WITH(request.n_logprobs = 257), "logprobs 257 is out of range 0..256");
}
END_TEST

START_TEST(an_embedding_goes_with_nothing_else)
{
    static const char says[] =
        "embed excludes tokens, stops, log probabilities, grammar, thinking_budget and cache";
    static const struct bytes stop[] = {BYTES_LITERAL("a")};
    accepted(embedding());
#define EMBEDDING(change)                                                                                    \
    ({                                                                                                       \
        struct engine_request request = embedding();                                                         \
        change;                                                                                              \
        request;                                                                                             \
    })
    refused(EMBEDDING(request.max_tokens = 1), says);
    refused(EMBEDDING(request.min_tokens = 1), says);
    refused(EMBEDDING((request.output = ids, request.n_output = 1)), says);
    refused(EMBEDDING(request.text_offset = 1), says);
    refused(EMBEDDING((request.stop = stop, request.n_stop = 1)), says);
    refused(EMBEDDING((request.stop_ids = ids, request.n_stop_ids = 1)), says);
    refused(EMBEDDING(request.n_logprobs = 1), says);
    refused(EMBEDDING(request.grammar = (struct grammar *)&request), says);
    refused(EMBEDDING(request.thinking = &(struct engine_thinking){0}), says);
    refused(EMBEDDING(request.uncached = false), says);
    struct error err = {0};
    const struct engine_request request = embedding();
    const struct backend_info none = {.most_stop_ids = 3};
    ck_assert_int_eq(engine_check_request(&request, &fake_model, &none, 10, 10, &err), ENGINE_E_INVALID);
    ck_assert_str_eq(err.text, "embed: this device cannot compute embeddings");
    const struct backend_info some = {.most_stop_ids = 3, .n_embedding = 8};
    struct model ranks = fake_model;
    ranks.params.pooling = POOLING_RANK;
    ck_assert_int_eq(engine_check_request(&request, &ranks, &some, 10, 10, &err), 0);
    struct engine_request text = request;
    text.embed = false;
    text.max_tokens = 1;
    ck_assert_int_eq(engine_check_request(&text, &ranks, &some, 10, 10, &err), ENGINE_E_INVALID);
    ck_assert_msg(strstr(err.text, "(pooling_type rank) and generates no text"), "%s", err.text);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, prompt_and_answer_fit_context_and_cache);
    tcase_add_test(tests, ids_are_of_the_vocabulary);
    tcase_add_test(tests, some_id_can_be_sampled);
    tcase_add_test(tests, the_end_of_a_thought_can_be_sampled);
    tcase_add_test(tests, counts_have_bounds);
    tcase_add_test(tests, an_embedding_goes_with_nothing_else);
}

int main(void)
{
    return run_tests("limits", add);
}
