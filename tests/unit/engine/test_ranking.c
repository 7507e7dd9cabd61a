/* SPDX-License-Identifier: MIT */
/* Heads that rank: their scores are those of plain C, in every format; and in the engine a pair's are the
 * same bits alone, among others and in any chunks, while text is refused. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/engine.h"
#include "engine/ranking.h"

#include <math.h>
#include <string.h>

#define N_EMBD   4
#define REQUESTS 6

/* A model with nothing but a head: two rows, a bias or none. */
struct headed {
    struct model model;
    struct gguf_tensor weight, bias;
};

static void head(struct headed *headed, enum format format, const void *weights, const float *bias,
                 bool shares)
{
    *headed = (struct headed){.weight = {.format = format, .data = weights},
                              .bias = {.format = FORMAT_F32, .data = bias}};
    headed->model.params.n_embd = N_EMBD;
    headed->model.params.n_labels = 2;
    headed->model.params.rank_shares = shares;
    headed->model.tensors[TENSOR_RANK_HEAD].weight = &headed->weight;
    headed->model.tensors[TENSOR_RANK_HEAD].bias = bias ? &headed->bias : NULL;
}

START_TEST(scores_are_the_product_or_its_shares)
{
    static const float weights[2 * N_EMBD] = {1, -2, 0.5f, 0, 3, 1, 0, -1}, bias[] = {0.25f, -0.5f};
    static const uint16_t halves[2 * N_EMBD] = {0x3c00, 0xc000, 0x3800, 0, 0x4200, 0x3c00, 0, 0xbc00};
    const double state[N_EMBD] = {0.5, 0.25, -1, 2}, raw[2] = {-0.5, -0.25};
    for (int format = 0; format < 2; format++)
        for (int with_bias = 0; with_bias < 2; with_bias++) {
            struct headed headed;
            struct ranking ranking;
            float scores[2];
            head(&headed, format ? FORMAT_F16 : FORMAT_F32, format ? (const void *)halves : weights,
                 with_bias ? bias : NULL, false);
            ck_assert_int_eq(ranking_init(&ranking, &headed.model), 0);
            ck_assert(ranking_of_state(&ranking, state, scores));
            const double y[2] = {raw[0] + (with_bias ? 0.25 : 0), raw[1] - (with_bias ? 0.5 : 0)};
            ck_assert(scores[0] == (float)y[0] && scores[1] == (float)y[1]);
            ranking.shares = true;
            ck_assert(ranking_of_state(&ranking, state, scores));
            const double share = 1 / (1 + exp(y[1] - y[0]));
            ck_assert_double_lt(fabs((double)scores[0] - share), 1e-7);
            ck_assert_double_lt(fabs((double)scores[1] - (1 - share)), 1e-7);
            ranking_deinit(&ranking);
        }
}
END_TEST

START_TEST(shares_of_large_numbers_are_no_overflow_and_what_is_not_finite_is_said)
{
    static const float weights[2 * N_EMBD] = {1, 0, 0, 0, -1, 0, 0, 0};
    struct headed headed;
    struct ranking ranking;
    float scores[2] = {7, 7};
    head(&headed, FORMAT_F32, weights, NULL, true);
    ck_assert_int_eq(ranking_init(&ranking, &headed.model), 0);
    ck_assert(ranking_of_state(&ranking, (double[N_EMBD]){1e5}, scores));
    ck_assert(scores[0] == 1 && scores[1] == 0);
    scores[0] = 7;
    ck_assert(!ranking_of_state(&ranking, (double[N_EMBD]){NAN}, scores));
    ck_assert(!ranking_of_state(&ranking, (double[N_EMBD]){INFINITY}, scores));
    ck_assert(!ranking_of_state(&ranking, (double[N_EMBD]){1e39}, scores)); /* no float */
    ck_assert(scores[0] == 7);
    ranking_deinit(&ranking);
    headed.model.tensors[TENSOR_RANK_HEAD].weight = NULL;
    ck_assert_int_eq(ranking_init(&ranking, &headed.model), 0);
    ck_assert_uint_eq(ranking.n_labels, 0);
}
END_TEST

/* ---- in the engine ---- */

struct outcome {
    float scores[2];
    uint32_t n;
    enum engine_end end;
};

static void sink(void *arg, const struct engine_event *event)
{
    struct outcome *outcome = (struct outcome *)arg + event->tag;
    outcome->end = event->end;
    outcome->n = event->n_embedding;
    if (event->embedding)
        memcpy(outcome->scores, event->embedding, sizeof outcome->scores);
}

static int submit(struct engine *engine, uint64_t tag, bool embed, struct error *err)
{
    int32_t prompt[300];
    const uint32_t n = 40 + 50 * (uint32_t)tag;
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = (int32_t)((i * 7 + tag * 13) % 360);
    const struct engine_request request = {.tag = tag,
                                           .prompt = prompt,
                                           .n_prompt = n,
                                           .embed = embed,
                                           .max_tokens = embed ? 0 : 4,
                                           .sampling = SAMPLING_GREEDY,
                                           .uncached = true};
    return engine_submit(engine, &request, err);
}

static void run(struct engine *engine, const uint64_t *tags, size_t n)
{
    struct error err = {0};
    for (size_t i = 0; i < n; i++)
        ck_assert_msg(submit(engine, tags[i], true, &err) == 0, "%s", err.text);
    while (engine_step(engine, &err) > 0)
        ;
}

START_TEST(a_pair_scores_the_same_bits_alone_and_among_others)
{
    struct model *model = make_model_of(synth_shape_by_name("tiny-rank"), "Q8_0", 5, true);
    const uint64_t all[REQUESTS] = {0, 1, 2, 3, 4, 5};
    struct outcome alone[REQUESTS] = {0}, among[REQUESTS] = {0};
    for (int together = 0; together < 2; together++) {
        struct engine *engine;
        struct error err = {0};
        const struct engine_config config = {
            .model = model,
            .backend = &backend_cpu,
            .most_cached = UINT32_MAX,
            .backend_config = {
                .n_context = 512, .n_slots = 4, .n_blocks = 64, .cpu = {.n_threads = 1 + together}}};
        ck_assert_msg(engine_new(&config, sink, together ? among : alone, &engine, &err) == 0, "%s",
                      err.text);
        ck_assert_uint_eq(engine_embedding(engine), 2);
        for (size_t i = 0; !together && i < REQUESTS; i++)
            run(engine, &all[i], 1);
        if (together)
            run(engine, all, REQUESTS);
        ck_assert_int_eq(submit(engine, 0, false, &err), ENGINE_E_INVALID);
        ck_assert_msg(strstr(err.text, "ranks pairs of texts"), "%s", err.text);
        engine_free(engine);
    }
    for (size_t i = 0; i < REQUESTS; i++) {
        ck_assert_int_eq(alone[i].end, ENGINE_END_STOP);
        ck_assert(alone[i].n == 2 && among[i].n == 2);
        ck_assert_mem_eq(alone[i].scores, among[i].scores, sizeof alone[i].scores);
        ck_assert_double_lt(fabs((double)alone[i].scores[0] + (double)alone[i].scores[1] - 1), 1e-6);
        ck_assert(i == 0 || alone[i].scores[0] < alone[0].scores[0] ||
                  alone[i].scores[0] > alone[0].scores[0]);
    }
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_test(tests, scores_are_the_product_or_its_shares);
    tcase_add_test(tests, shares_of_large_numbers_are_no_overflow_and_what_is_not_finite_is_said);
    tcase_add_test(tests, a_pair_scores_the_same_bits_alone_and_among_others);
}

int main(void)
{
    return run_tests("ranking", add);
}
