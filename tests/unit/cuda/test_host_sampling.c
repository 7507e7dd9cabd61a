/* SPDX-License-Identifier: MIT */
/* Host sampling on the emulated device: it changes no answer of a sound device, finds what a broken one
 * samples wrongly, and answers as if it were sound. What it does to whole mixes of requests is
 * tests/unit/cuda/test_mixes.c's. */

#include "cuda/backend.h"
#include "tests/unit/cpu/small_model.h"
#include "tests/unit/cuda/run_step.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS    18 /* more than come to the host at once */
#define STEPS    6
#define VOCAB    360
#define LOGPROBS 2
#define STOP     7

static const struct synth_shape shape = {.name = "sampling",
                                         .n_vocab = VOCAB,
                                         .n_context = 64,
                                         .n_embd = 32,
                                         .n_layers = 1,
                                         .n_heads = 2,
                                         .n_kv_heads = 1,
                                         .head_dim = 16,
                                         .n_ff = 32,
                                         .norm_epsilon = 1e-5f,
                                         .rope_base = 10000};

static struct model *model;

static struct backend *open_backend(bool on_host)
{
    const struct backend_config config = {
        .model = model, .n_slots = SLOTS, .n_context = 64, .n_blocks = SLOTS};
    struct backend *backend = NULL;
    struct error err = {0};
    ck_assert_msg(quern_backend.open(&config, &backend, &err) == 0, "%s", err.text);
    if (on_host)
        ck_assert_msg(quern_host_sampling.begin(backend, &err) == 0, "%s", err.text);
    return backend;
}

static uint64_t recorded_by(struct backend *backend)
{
    struct backend_usage usage;
    quern_backend.usage(backend, &usage);
    return usage.recorded;
}

static uint64_t compared_by(const struct backend *backend)
{
    uint64_t compared, different;
    quern_host_sampling.counts(backend, &compared, &different);
    return compared;
}

static uint64_t different_by(const struct backend *backend)
{
    uint64_t compared, different;
    quern_host_sampling.counts(backend, &compared, &different);
    return different;
}

/* Each third slot is greedy, draws with penalties, or is sampled by its history. */
static void open_slot(struct backend *backend, uint32_t s, const int32_t *prompt, uint32_t n)
{
    static const int32_t stops[] = {STOP};
    struct backend_slot params = {.sampling = SAMPLING_GREEDY,
                                  .n_logprobs = LOGPROBS,
                                  .stop_ids = stops,
                                  .n_stop_ids = 1,
                                  .stops_from = 60,
                                  .end_position = 60,
                                  .history = prompt,
                                  .n_history = n,
                                  .n_prompt = n};
    if (s % 3 > 0)
        params.sampling = (struct sampling){SAMPLING_RARE_OFF,         .temperature = 0.9,       .top_p = 0.9,
                                            .repetition_penalty = 1.2, .frequency_penalty = 0.3, .seed = s};
    if (s % 3 == 2)
        params.sampling.repeat_last_n = 4;
    ck_assert_int_eq(quern_backend.slot_open(backend, s, &params), 0);
}

/* Ids of all slots, and what was said of them. */
struct outcome {
    int32_t ids[STEPS][SLOTS];
    float logprobs[STEPS][SLOTS];
    struct backend_difference differences[STEPS * SLOTS];
    uint32_t of[STEPS * SLOTS]; /* slots of those */
    uint32_t n_differences;
};

static void serve(struct backend *backend, bool on_host, struct outcome *outcome)
{
    int32_t prompts[SLOTS][3];
    uint32_t blocks[SLOTS];
    memset(outcome, 0, sizeof *outcome);
    for (uint32_t s = 0; s < SLOTS; s++) {
        blocks[s] = s;
        for (uint32_t i = 0; i < 3; i++)
            prompts[s][i] = (int32_t)(10 + s * 13 + i * 7);
        open_slot(backend, s, prompts[s], 3);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        struct backend_row_set sets[SLOTS];
        for (uint32_t s = 0; s < SLOTS; s++)
            sets[s] = (struct backend_row_set){.slot = s,
                                               .ids = i == 0 ? prompts[s] : NULL,
                                               .n_ids = i == 0 ? 3 : 1,
                                               .position = i == 0 ? 0 : 2 + i,
                                               .output = BACKEND_SAMPLE_LAST,
                                               .blocks = {{&blocks[s], i == 0, i > 0}}};
        const struct backend_result *results = run_step(backend, sets, SLOTS);
        for (uint32_t s = 0; s < SLOTS; s++) {
            ck_assert_uint_eq(results[s].n_ids, 1);
            outcome->ids[i][s] = results[s].ids[0];
            ck_assert_int_eq(results[s].logprobs[0].id, results[s].ids[0]);
            outcome->logprobs[i][s] = results[s].logprobs[0].logprob;
            const struct backend_difference *differences;
            const uint32_t n = on_host ? quern_host_sampling.differences(backend, s, &differences) : 0;
            for (uint32_t j = 0; j < n; j++) {
                outcome->of[outcome->n_differences] = s;
                outcome->differences[outcome->n_differences++] = differences[j];
            }
        }
    }
    for (uint32_t s = 0; s < SLOTS; s++)
        quern_backend.slot_close(backend, s);
}

static void expect_equal(const struct outcome *a, const struct outcome *b)
{
    ck_assert_mem_eq(a->ids, b->ids, sizeof a->ids);
    ck_assert_mem_eq(a->logprobs, b->logprobs, sizeof a->logprobs);
}

static void set_up(void)
{
    model = make_model(&shape, "F32");
}

static void tear_down(void)
{
    unsetenv("QUERN_EMU_SKIP");
    model = model_free(model);
}

START_TEST(a_sound_device_answers_as_before_and_nothing_differs)
{
    static struct outcome usual, compared;
    struct backend *backend = open_backend(false);
    struct backend_info info;
    serve(backend, false, &usual);
    quern_backend.close(backend);
    backend = open_backend(true);
    quern_backend.info(backend, &info);
    ck_assert_uint_eq(info.most_flights, 1);
    const uint64_t recorded = recorded_by(backend); /* by the gate */
    for (int i = 0; i < 2; i++) { /* slots begin anew, and staging that was given back is taken again */
        static const struct backend_idle nothing;
        struct backend_given given;
        serve(backend, true, &compared);
        expect_equal(&usual, &compared);
        ck_assert_uint_eq(compared.n_differences, 0);
        ck_assert_int_eq(quern_give_back(backend, &nothing, &given), 0);
        ck_assert_uint_gt(given.staging, 0);
    }
    ck_assert_uint_eq(compared_by(backend), 2 * STEPS * SLOTS);
    ck_assert_uint_eq(different_by(backend), 0);
    ck_assert_uint_eq(recorded_by(backend), recorded);
    quern_backend.close(backend);
}
END_TEST

/* The kernel that looks for the best of the first output does nothing: the id of the step before stays. */
START_TEST(what_a_broken_device_samples_is_found_and_the_hosts_counts)
{
    static struct outcome usual, broken, compared;
    struct backend *backend = open_backend(false);
    serve(backend, false, &usual);
    setenv("QUERN_EMU_SKIP", "find_best:0", 1);
    serve(backend, false, &broken);
    quern_backend.close(backend);
    ck_assert_mem_ne(usual.ids, broken.ids, sizeof usual.ids);

    unsetenv("QUERN_EMU_SKIP");
    backend = open_backend(true);
    setenv("QUERN_EMU_SKIP", "find_best:0", 1);
    serve(backend, true, &compared);
    expect_equal(&usual, &compared);
    ck_assert_uint_gt(compared.n_differences, 0);
    ck_assert_uint_eq(different_by(backend), compared.n_differences);
    ck_assert_uint_eq(compared_by(backend), STEPS * SLOTS);
    for (uint32_t i = 0; i < compared.n_differences; i++) {
        const struct backend_difference *difference = &compared.differences[i];
        ck_assert_uint_eq(compared.of[i], 0);
        ck_assert_uint_ge(difference->position, 3);
        ck_assert_int_eq(difference->of_host, usual.ids[difference->position - 3][0]);
        ck_assert_int_ne(difference->of_device, difference->of_host);
        /* Slot 0 is greedy, and has no penalty. */
        ck_assert_float_gt(difference->logit_of_host, difference->logit_of_device);
    }
    quern_backend.close(backend);
}
END_TEST

/* Rows of a draft are compared up to the first that is not what the draft says. */
START_TEST(drafts_are_compared_row_by_row)
{
    static const uint32_t block[] = {0};
    int32_t ids[6] = {20, 30}, sampled[4];
    for (int on_host = 0; on_host < 2; on_host++) {
        struct backend *backend = open_backend(on_host);
        open_slot(backend, 1, ids, 2);
        const struct backend_row_set prompt = {
            .slot = 1, .ids = ids, .n_ids = 2, .output = BACKEND_SAMPLE_LAST, .blocks = {{block, 1, 0}}};
        int32_t last = run_step(backend, &prompt, 1)->ids[0];
        for (uint32_t i = 0; i < 4 && !on_host; i++) {
            const struct backend_row_set next = {.slot = 1,
                                                 .n_ids = 1,
                                                 .position = 2 + i,
                                                 .output = BACKEND_SAMPLE_LAST,
                                                 .blocks = {{.told = 1}}};
            ids[2 + i] = last;
            sampled[i] = last = run_step(backend, &next, 1)->ids[0];
        }
        if (on_host) {
            int32_t draft[4];
            memcpy(draft, ids + 2, sizeof draft);
            draft[3] = (draft[3] + 1) % VOCAB; /* wrong */
            const struct backend_row_set set = {.slot = 1,
                                                .ids = draft,
                                                .n_ids = 4,
                                                .position = 2,
                                                .output = BACKEND_SAMPLE_ALL,
                                                .blocks = {{.told = 1}}};
            const struct backend_result *result = run_step(backend, &set, 1);
            ck_assert_uint_eq(result->n_accepted, 2);
            ck_assert_uint_eq(result->n_ids, 3);
            ck_assert_mem_eq(result->ids, sampled, 3 * sizeof *sampled);
            ck_assert_uint_eq(compared_by(backend), 1 + 3);
            /* And from there on, by counts of what was accepted. */
            const struct backend_row_set next = {
                .slot = 1, .n_ids = 1, .position = 5, .output = BACKEND_SAMPLE_LAST, .blocks = {{.told = 1}}};
            ck_assert_int_eq(run_step(backend, &next, 1)->ids[0], sampled[3]);
            ck_assert_uint_eq(different_by(backend), 0);
        }
        quern_backend.close(backend);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_checked_fixture(tests, set_up, tear_down);
    tcase_add_test(tests, a_sound_device_answers_as_before_and_nothing_differs);
    tcase_add_test(tests, what_a_broken_device_samples_is_found_and_the_hosts_counts);
    tcase_add_test(tests, drafts_are_compared_row_by_row);
}

int main(void)
{
    return run_tests("cuda host sampling", add);
}
