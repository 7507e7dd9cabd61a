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
}

int main(void)
{
    return run_tests("parameters", add);
}
