/* SPDX-License-Identifier: MIT */
/* Each parameter of a request has its effect, from the command line or libquern through the broker and a
 * worker to the sampler: a parameter that is lost on the way fails a test here. */

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

#define N 12 /* ids of a short answer */

static struct pool pool;
static char out[1 << 20];

static void set_up(void)
{
    pool_start(&pool, tiny_model(), "--slots", "1", NULL);
}

static void tear_down(void)
{
    ck_assert_int_eq(pool_stop(&pool, SIGTERM, 60), 0);
    pool_forget(&pool);
}

/* What `quern run --json` printed; the caller's to decref. */
#define RUN(...)                                                                                             \
    json_of(run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "--raw", "--json",        \
                        __VA_ARGS__, "x", NULL))
/* The same when only its ids matter. */
#define IDS(...) take_ids(RUN("-n", "12", __VA_ARGS__))
/* Exit status and output of one that is refused. */
#define REFUSED(...)                                                                                         \
    run_program(out, sizeof out, "quern", "run", "--connect", pool.rundir, "--raw", "--json", __VA_ARGS__,   \
                "x", NULL)

struct outcome {
    size_t n;
    int32_t ids[64];
};

static json_t *json_of(int status)
{
    ck_assert_int_eq(status, 0);
    json_t *json = json_loads(out, 0, NULL);
    ck_assert_ptr_nonnull(json);
    return json;
}

static struct outcome take_ids(json_t *json)
{
    struct outcome outcome = {0};
    json_t *ids = json_object_get(json, "ids");
    outcome.n = json_array_size(ids);
    ck_assert_uint_le(outcome.n, 64);
    for (size_t i = 0; i < outcome.n; i++)
        outcome.ids[i] = (int32_t)json_integer_value(json_array_get(ids, i));
    json_decref(json);
    return outcome;
}

static bool same(struct outcome a, struct outcome b)
{
    return a.n == b.n && memcmp(a.ids, b.ids, a.n * sizeof *a.ids) == 0;
}

START_TEST(max_tokens_is_how_many_are_made)
{
    json_t *json = RUN("-n", "5", "--temp", "0");
    ck_assert_str_eq(json_string_value(json_object_get(json, "reason")), "length");
    ck_assert_uint_eq(take_ids(json).n, 5);
}
END_TEST

/* How many tokens a prompt of 40 ids gets in a context of 64; 0 and ret_error: it was refused. */
static uint32_t made_of(struct quern *client, uint32_t max_tokens, bool fit_context, char ret_error[64])
{
    struct answer answer = {0};
    int32_t prompt[40];
    struct quern_request request = endless(NULL, max_tokens);
    for (int i = 0; i < 40; i++)
        prompt[i] = 260 + i;
    request.ids = prompt;
    request.n_ids = 40;
    request.fit_context = fit_context;
    send_request(client, &request, &answer);
    await_answers(client, &answer, 1, 60);
    const uint32_t made = answer.output_tokens;
    snprintf(ret_error, 64, "%s", answer.error);
    answer_deinit(&answer);
    return made;
}

START_TEST(fit_context_lowers_max_tokens_to_what_the_prompt_leaves)
{
    struct pool small = {0};
    pool_start(&small, tiny_model(), "--kv-blocks", "2", NULL); /* fewer tokens than the model's context */
    struct quern *client = connect_to(small.rundir);
    char error[64];
    size_t n;
    ck_assert_uint_eq(quern_models(client, &n)[0].context, 64);
    ck_assert_uint_eq(made_of(client, 10, true, error), 10);
    ck_assert_uint_eq(made_of(client, 24, false, error), 24);
    ck_assert_uint_eq(made_of(client, 25, true, error), 24);
    ck_assert_uint_eq(made_of(client, INT32_MAX, true, error), 24);
    ck_assert_uint_eq(made_of(client, 0, false, error), 24);
    ck_assert_uint_eq(made_of(client, 25, false, error), 0);
    ck_assert_str_eq(error, "too_long");
    ck_assert_uint_eq(made_of(client, INT32_MAX, false, error), 0);
    ck_assert_str_eq(error, "too_long");
    quern_free(client);
    ck_assert_int_eq(pool_stop(&small, SIGTERM, 60), 0);
    pool_forget(&small);
}
END_TEST

START_TEST(temperature_0_is_greedy_and_a_high_one_is_not)
{
    struct outcome greedy = IDS("--temp", "0", "--seed", "1");
    ck_assert(same(greedy, IDS("--temp", "0", "--seed", "2")));
    struct outcome hot = IDS("--temp", "50", "--seed", "1");
    ck_assert(!same(greedy, hot));
    ck_assert(!same(hot, IDS("--temp", "1", "--seed", "1")));
}
END_TEST

START_TEST(a_seed_repeats_an_answer_and_another_one_changes_it)
{
    struct outcome one = IDS("--temp", "50", "--seed", "18446744073709551615");
    ck_assert(same(one, IDS("--temp", "50", "--seed", "18446744073709551615")));
    ck_assert(!same(one, IDS("--temp", "50", "--seed", "1")));
    json_t *json = RUN("-n", "1", "--seed", "18446744073709551615");
    ck_assert_str_eq(json_string_value(json_object_get(json, "seed")), "18446744073709551615");
    json_decref(json);
}
END_TEST

/* With every filter off and a high temperature anything may come; each filter at its narrowest leaves the one
 * id that greedy takes. */
#define HOT "--temp", "5", "--seed", "1"
START_TEST(each_filter_at_its_narrowest_leaves_the_likeliest_alone)
{
    struct outcome greedy = IDS("--temp", "0");
    ck_assert(!same(greedy, IDS(HOT, "--top-k", "0", "--top-p", "1", "--min-p", "0")));
    ck_assert(same(greedy, IDS(HOT, "--top-k", "1", "--top-p", "1", "--min-p", "0")));
    ck_assert(same(greedy, IDS(HOT, "--top-k", "0", "--top-p", "0", "--min-p", "0")));
    ck_assert(same(greedy, IDS(HOT, "--top-k", "0", "--top-p", "1", "--min-p", "1")));
    /* Two ids left are not one. */
    struct outcome two = IDS(HOT, "--top-k", "2", "--top-p", "1", "--min-p", "0");
    ck_assert(!same(greedy, two));
}
END_TEST

/* A greedy answer with log probabilities of the whole vocabulary of likely ids: they are those before
 * penalties, so that what the penalties must have chosen can be computed here. */
static void check_penalties(json_t *json, double repetition, double presence, double frequency)
{
    json_t *ids = json_object_get(json, "ids"), *rows = json_object_get(json, "logprobs");
    unsigned differ = 0;
    for (size_t i = 0; i < json_array_size(ids); i++) {
        json_int_t chosen = json_integer_value(json_array_get(ids, i)), best = -1;
        double highest = -INFINITY;
        json_t *row = json_array_get(rows, i);
        for (size_t j = 1; j < json_array_size(row); j++) {
            json_t *entry = json_array_get(row, j);
            json_int_t id = json_integer_value(json_object_get(entry, "id"));
            unsigned count = 0;
            for (size_t k = 0; k < i; k++)
                count += json_integer_value(json_array_get(ids, k)) == id;
            double score = json_real_value(json_object_get(entry, "logprob"));
            score -= count > 0 ? presence + frequency * count : 0;
            if (count > 0 && repetition > 1)
                continue; /* a hundredth of a logit is never the highest here */
            if (score > highest) {
                highest = score;
                best = id;
            }
        }
        ck_assert_msg(chosen == best, "id %zu is %d, not %d", i, (int)chosen, (int)best);
        differ += chosen != json_integer_value(json_object_get(json_array_get(row, 1), "id"));
    }
    ck_assert_uint_eq(json_array_size(ids), N);
    ck_assert_uint_gt(differ, 0); /* it made a difference */
    json_decref(json);
}

START_TEST(penalties_take_off_what_the_protocol_says)
{
    check_penalties(RUN("-n", "12", "--temp", "0", "--logprobs", "20", "--presence-penalty", "0.4"), 1, 0.4,
                    0);
    check_penalties(RUN("-n", "12", "--temp", "0", "--logprobs", "20", "--frequency-penalty", "0.3"), 1, 0,
                    0.3);
    check_penalties(RUN("-n", "12", "--temp", "0", "--logprobs", "20", "--presence-penalty", "0.2",
                        "--frequency-penalty", "0.1"),
                    1, 0.2, 0.1);
    check_penalties(RUN("-n", "12", "--temp", "0", "--logprobs", "20", "--repetition-penalty", "100"), 100, 0,
                    0);
    /* The sampled path looks at them as well. */
    struct outcome plain = IDS("--temp", "0.1", "--seed", "3");
    ck_assert(!same(plain, IDS("--temp", "0.1", "--seed", "3", "--presence-penalty", "2")));
    ck_assert(!same(plain, IDS("--temp", "0.1", "--seed", "3", "--frequency-penalty", "2")));
    ck_assert(!same(plain, IDS("--temp", "0.1", "--seed", "3", "--repeat-penalty", "100")));
}
END_TEST

START_TEST(a_bias_forces_an_id_or_forbids_it)
{
    struct outcome plain = IDS("--temp", "0"), forced = IDS("--temp", "0", "--logit-bias", "77:100");
    ck_assert_uint_eq(forced.n, N);
    for (size_t i = 0; i < N; i++)
        ck_assert_int_eq(forced.ids[i], 77);
    char ban[32];
    snprintf(ban, sizeof ban, "%d:-100", (int)plain.ids[1]);
    struct outcome banned = IDS("--temp", "0", "--logit-bias", ban, "--logit-bias", "2:0.5");
    for (size_t i = 0; i < banned.n; i++)
        ck_assert_int_ne(banned.ids[i], plain.ids[1]);
    ck_assert_int_eq(REFUSED("--logit-bias", "512:1"), 1);
    ck_assert_ptr_nonnull(strstr(out, "bad_request"));
    ck_assert_ptr_nonnull(strstr(out, "logit_bias: id 512 is outside the vocabulary of 512"));
}
END_TEST

START_TEST(a_text_may_be_biased_or_barred)
{
    /* What greedy decoding makes, by its text: the demo vocabulary has a token for each printable character.
     */
    struct outcome plain = IDS("--temp", "0");
    struct outcome forced = IDS("--temp", "0", "--logit-bias", "q:100");
    for (size_t i = 1; i < forced.n; i++)
        ck_assert_int_eq(forced.ids[i], forced.ids[0]);
    struct outcome barred = IDS("--temp", "0", "--logit-bias", "q:100", "--bad-word", "q");
    for (size_t i = 0; i < barred.n; i++)
        ck_assert_int_ne(barred.ids[i], forced.ids[0]);
    /* Of a text of two tokens the second does not follow the first. */
    struct outcome pair = IDS("--temp", "0", "--logit-bias", "q:100", "--bad-word", "q q");
    for (size_t i = 1; i < pair.n; i++)
        ck_assert(pair.ids[i - 1] != forced.ids[0] || pair.ids[i] != forced.ids[0]);
    ck_assert(!same(plain, forced) && !same(pair, barred));
    ck_assert_int_eq(REFUSED("--logit-bias", "q"), 2);
    ck_assert_int_eq(REFUSED("--logit-bias", "q:101"), 2);
    ck_assert_int_eq(REFUSED("--bad-word", ""), 2);
}
END_TEST

START_TEST(each_sampler_reaches_the_worker)
{
    struct outcome greedy = IDS("--temp", "0"), hot = IDS("--temp", "5", "--seed", "3");
    ck_assert(!same(greedy, hot));
    ck_assert(same(greedy, IDS("--temp", "5", "--seed", "3", "--top-n-sigma", "1e-6")));
    ck_assert(
        same(greedy, IDS("--temp", "5", "--seed", "3", "--dynatemp-range", "5", "--dynatemp-exp", "100")));
    ck_assert(!same(hot, IDS("--temp", "5", "--seed", "3", "--typical", "0.01")));
    ck_assert(
        !same(hot, IDS("--temp", "5", "--seed", "3", "--xtc-probability", "1", "--xtc-threshold", "0")));
    ck_assert(same(hot, IDS("--temp", "5", "--seed", "3", "--xtc-probability", "1", "--xtc-threshold", "1")));
    /* A token that would come for ever, as q: DRY makes an end to that, unless it is a breaker. */
    struct outcome forced = IDS("--temp", "0", "--logit-bias", "q:30");
    ck_assert(same(forced, IDS("--temp", "0", "--logit-bias", "q:30", "--dry-multiplier", "90",
                               "--dry-sequence-breaker", "q")));
    ck_assert(!same(forced, IDS("--temp", "0", "--logit-bias", "q:30", "--dry-multiplier", "90")));
    ck_assert(same(forced, IDS("--temp", "0", "--logit-bias", "q:30", "--dry-multiplier", "90",
                               "--dry-penalty-last-n", "2")));
    ck_assert(same(
        forced, IDS("--temp", "0", "--logit-bias", "q:30", "--dry-multiplier", "90", "--dry-base", "0.5")));
    ck_assert(same(forced, IDS("--temp", "0", "--logit-bias", "q:30", "--dry-multiplier", "90",
                               "--dry-allowed-length", "20")));
    /* A penalty that looks at nothing takes nothing off. */
    ck_assert(same(greedy, IDS("--temp", "0", "--repeat-penalty", "100", "--repeat-last-n", "0")));
    ck_assert(!same(greedy, IDS("--temp", "0", "--repeat-penalty", "100", "--repeat-last-n", "1")));
    ck_assert_int_eq(REFUSED("--typical-p", "1.5"), 2);
    ck_assert_int_eq(REFUSED("--repeat-last-n", "-2"), 2);
    ck_assert_int_eq(REFUSED("--xtc-probability", "nan"), 2);
}
END_TEST

START_TEST(a_private_pool_takes_the_same_parameters)
{
    ck_assert_int_eq(run_program(out, sizeof out, "quern", "run", "--model", tiny_model(), "--raw", "--ids",
                                 "-n", "4", "--logit-bias", "77:100", "--temp", "0", "x", NULL),
                     0);
    ck_assert_str_eq(out, "77 77 77 77\n");
}
END_TEST

START_TEST(stop_strings_and_stop_ids_end_it)
{
    struct outcome plain = IDS("--temp", "0", "--presence-penalty", "2");
    char id[16], stop[16] = "";
    snprintf(id, sizeof id, "%d", (int)plain.ids[3]);
    json_t *json =
        RUN("-n", "12", "--temp", "0", "--presence-penalty", "2", "--stop-id", "1", "--stop-id", id);
    ck_assert_str_eq(json_string_value(json_object_get(json, "reason")), "stop");
    ck_assert_uint_eq(take_ids(json).n, 4);
    json = RUN("-n", "12", "--temp", "0", "--presence-penalty", "2");
    const char *text = json_string_value(json_object_get(json, "text"));
    size_t at = 0;
    while (text[at] && !(text[at] > ' ' && text[at] <= '~'))
        at++;
    ck_assert_msg(text[at], "nothing of \"%s\" can be a stop string", text);
    stop[0] = text[at];
    char before[256];
    snprintf(before, sizeof before, "%.*s", (int)at, text);
    json_decref(json);
    json =
        RUN("-n", "12", "--temp", "0", "--presence-penalty", "2", "--stop", "no such text", "--stop", stop);
    ck_assert_str_eq(json_string_value(json_object_get(json, "reason")), "stop");
    ck_assert_str_eq(json_string_value(json_object_get(json, "text")), before);
    json_decref(json);
}
END_TEST

START_TEST(log_probabilities_come_as_many_as_asked_for)
{
    for (int n = 0; n <= 20; n += 10) {
        char text[16];
        snprintf(text, sizeof text, "%d", n);
        json_t *json = RUN("-n", "2", "--logprobs", text);
        ck_assert_uint_eq(json_array_size(json_array_get(json_object_get(json, "logprobs"), 0)),
                          (size_t)n + 1);
        json_decref(json);
    }
}
END_TEST

START_TEST(a_deadline_ends_it)
{
    ck_assert_int_eq(REFUSED("-n", "4000", "--logit-bias", "77:100", "--deadline-ms", "50"), 1);
    ck_assert_ptr_nonnull(strstr(out, "\"deadline\""));
}
END_TEST

START_TEST(values_out_of_range_are_usage_errors)
{
    static const char *const wrong[][2] = {
        {"--max-tokens", "0"},
        {"--temp", "101"},
        {"--temp", "nan"},
        {"--top-k", "-1"},
        {"--top-p", "1.01"},
        {"--min-p", "-0.1"},
        {"--repeat-penalty", "1e-38"},
        {"--presence-penalty", "2.1"},
        {"--frequency-penalty", "-2.1"},
        {"--seed", "18446744073709551616"},
        {"--priority", "9"},
        {"--deadline-ms", "2592000001"},
        {"--logit-bias", "5"},
        {"--logit-bias", "5:101"},
        {"--logit-bias", "-5:1"},
        {"--logit-bias", ":1"},
        {"--logit-bias", "5:"},
        {"--stop-id", "x"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        ck_assert_msg(REFUSED(wrong[i][0], wrong[i][1]) == 2, "%s %s", wrong[i][0], wrong[i][1]);
}
END_TEST

/* ---- what libquern alone says ---- */

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
    tcase_add_test(tests, max_tokens_is_how_many_are_made);
    tcase_add_test(tests, fit_context_lowers_max_tokens_to_what_the_prompt_leaves);
    tcase_add_test(tests, temperature_0_is_greedy_and_a_high_one_is_not);
    tcase_add_test(tests, a_seed_repeats_an_answer_and_another_one_changes_it);
    tcase_add_test(tests, each_filter_at_its_narrowest_leaves_the_likeliest_alone);
    tcase_add_test(tests, penalties_take_off_what_the_protocol_says);
    tcase_add_test(tests, a_bias_forces_an_id_or_forbids_it);
    tcase_add_test(tests, a_text_may_be_biased_or_barred);
    tcase_add_test(tests, each_sampler_reaches_the_worker);
    tcase_add_test(tests, a_private_pool_takes_the_same_parameters);
    tcase_add_test(tests, stop_strings_and_stop_ids_end_it);
    tcase_add_test(tests, log_probabilities_come_as_many_as_asked_for);
    tcase_add_test(tests, a_deadline_ends_it);
    tcase_add_test(tests, values_out_of_range_are_usage_errors);
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
    return run_tests("parameters", add);
}
