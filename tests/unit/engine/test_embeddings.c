/* SPDX-License-Identifier: MIT */
/* Requests for embeddings in the engine, on the CPU backend and on the null one: alone or among others, in
 * any chunks, preempted or not, the vector is the same bits; and what cannot be asked for is refused. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/embedding.h"
#include "engine/engine.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS  10
#define MOST_EMBD 512

struct rig {
    struct model *model;
    struct engine *engine;
    struct {
        float embedding[MOST_EMBD];
        uint32_t n_embedding, n_ids, n_cached;
        unsigned ends;
        enum engine_end end;
    } outcomes[REQUESTS];
};

static void sink(void *arg, const struct engine_event *event)
{
    struct rig *rig = arg;
    rig->outcomes[event->tag].n_ids += event->n_ids;
    if (event->embedding) {
        ck_assert_int_eq(event->end, ENGINE_END_STOP);
        ck_assert_uint_le(event->n_embedding, MOST_EMBD);
        rig->outcomes[event->tag].n_embedding = event->n_embedding;
        memcpy(rig->outcomes[event->tag].embedding, event->embedding, event->n_embedding * sizeof(float));
    }
    if (event->end == ENGINE_RUNNING)
        return;
    rig->outcomes[event->tag].end = event->end;
    rig->outcomes[event->tag].ends++;
    rig->outcomes[event->tag].n_cached = event->totals->n_cached;
}

static void rig_init(struct rig *rig, const struct backend_ops *backend, struct backend_config config)
{
    struct error err = {0};
    *rig = (struct rig){.model = make_model_of(synth_shape_by_name("tiny"), "Q4_K_M", 5, true)};
    config.n_context = 512;
    const struct engine_config engine = {
        .model = rig->model, .backend = backend, .most_cached = UINT32_MAX, .backend_config = config};
    ck_assert_msg(engine_new(&engine, sink, rig, &rig->engine, &err) == 0, "%s", err.text);
}

static void rig_deinit(struct rig *rig)
{
    engine_free(rig->engine);
    model_free(rig->model);
}

/* Every other makes tokens, of a prompt that begins as all do. */
static bool embeds(uint64_t tag)
{
    return tag % 2 != 0;
}

static int submit(struct rig *rig, uint64_t tag, struct error *err)
{
    int32_t prompt[400];
    uint32_t n = 1 + (uint32_t)tag * 37 % 130;
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = (int32_t)(3 + (i < 64 ? i * 17 : tag * 31 + i * 17) % 480);
    const struct engine_request request = {.tag = tag,
                                           .prompt = prompt,
                                           .n_prompt = n,
                                           .max_tokens = embeds(tag) ? 0 : 110,
                                           .sampling = {SAMPLING_OFF},
                                           .embed = embeds(tag),
                                           .uncached = embeds(tag)};
    return engine_submit(rig->engine, &request, err);
}

static void run(struct rig *rig, uint64_t first, uint64_t end)
{
    struct error err = {0};
    int r;
    for (uint64_t tag = first; tag < end; tag++)
        ck_assert_msg(submit(rig, tag, &err) == 0, "%s", err.text);
    while ((r = engine_step(rig->engine, &err)) == 1)
        ;
    ck_assert_msg(r == 0, "%s", err.text);
}

static void check(const struct rig *alone, const struct rig *rig)
{
    for (int i = 0; i < REQUESTS; i++) {
        ck_assert_uint_eq(rig->outcomes[i].ends, 1);
        ck_assert_uint_eq(rig->outcomes[i].n_embedding > 0, embeds((uint64_t)i));
        ck_assert_uint_eq(rig->outcomes[i].n_embedding, alone->outcomes[i].n_embedding);
        ck_assert_mem_eq(rig->outcomes[i].embedding, alone->outcomes[i].embedding,
                         sizeof alone->outcomes[i].embedding);
        if (!embeds((uint64_t)i))
            continue;
        ck_assert_int_eq(rig->outcomes[i].end, ENGINE_END_STOP);
        ck_assert_uint_eq(rig->outcomes[i].n_ids, 0);
        ck_assert_uint_eq(rig->outcomes[i].n_cached, 0);
    }
}

static const struct backend_ops *const backends[] = {&backend_cpu, &backend_null};

START_TEST(alone_among_others_in_chunks_and_after_preemption_the_bits_are_the_same)
{
    static struct rig alone, batched;
    rig_init(&alone, backends[_i], (struct backend_config){.n_slots = 1, .cpu = {.n_threads = 1}});
    for (uint64_t tag = 0; tag < REQUESTS; tag++)
        run(&alone, tag, tag + 1);
    check(&alone, &alone);
    /* Rows of a step, threads, blocks: ten that need up to six blocks each share eight. */
    const struct backend_config configs[] = {{.max_rows = 512, .cpu = {.n_threads = 2}},
                                             {.max_rows = 16, .cpu = {.n_threads = 1}},
                                             {.max_rows = 13, .cpu = {.n_threads = 2}, .n_blocks = 8}};
    for (int i = 0; i < 3; i++) {
        struct backend_config config = configs[i];
        struct engine_stats stats;
        config.n_slots = 10;
        rig_init(&batched, backends[_i], config);
        run(&batched, 0, REQUESTS);
        check(&alone, &batched);
        engine_stats(batched.engine, &stats);
        ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
        ck_assert(i < 2 || stats.preemptions > 0);
        rig_deinit(&batched);
    }
    rig_deinit(&alone);
}
END_TEST

START_TEST(a_prompt_may_fill_the_context_and_no_more)
{
    static struct rig rig;
    static int32_t prompt[600];
    struct error err = {0};
    rig_init(&rig, &backend_cpu, (struct backend_config){.n_slots = 2, .cpu = {.n_threads = 1}});
    struct engine_request request = {
        .prompt = prompt, .n_prompt = 512, .sampling = {SAMPLING_OFF}, .embed = true, .uncached = true};
    ck_assert_msg(engine_submit(rig.engine, &request, &err) == 0, "%s", err.text);
    while (engine_step(rig.engine, &err) == 1)
        ;
    ck_assert_int_eq(rig.outcomes[0].end, ENGINE_END_STOP);
    ck_assert_uint_eq(rig.outcomes[0].n_embedding, rig.model->params.n_embd);
    request.n_prompt = 513;
    ck_assert_int_eq(engine_submit(rig.engine, &request, &err), ENGINE_E_TOO_LONG);
    rig_deinit(&rig);
}
END_TEST

START_TEST(tokens_and_embeddings_are_not_asked_for_at_once)
{
    static struct rig rig;
    static const int32_t prompt[] = {5, 6, 7};
    struct error err = {0};
    rig_init(&rig, &backend_null, (struct backend_config){.n_slots = 2});
    const struct engine_request good = {
        .prompt = prompt, .n_prompt = 3, .sampling = {SAMPLING_OFF}, .embed = true, .uncached = true};
    struct engine_request wrong[] = {good, good, good, good};
    wrong[0].max_tokens = 1;
    wrong[1].n_logprobs = 1;
    wrong[2].stop_ids = prompt;
    wrong[2].n_stop_ids = 1;
    wrong[3].uncached = false;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        ck_assert_int_eq(engine_submit(rig.engine, &wrong[i], &err), ENGINE_E_INVALID);
        ck_assert_ptr_nonnull(strstr(err.text, "embed"));
    }
    rig_deinit(&rig);
}
END_TEST

START_TEST(a_vector_has_length_one_or_is_none)
{
    double sums[3] = {3e30, -4e30, 0};
    float vector[3];
    ck_assert(embedding_of_sums(sums, 3, vector));
    ck_assert_float_eq_tol(vector[0], 0.6f, 1e-7f);
    ck_assert_float_eq_tol(vector[1], -0.8f, 1e-7f);
    sums[2] = (double)NAN;
    ck_assert(!embedding_of_sums(sums, 3, vector));
    sums[2] = (double)INFINITY;
    ck_assert(!embedding_of_sums(sums, 3, vector));
    ck_assert(!embedding_of_sums((const double[]){0, 0}, 2, vector));
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, alone_among_others_in_chunks_and_after_preemption_the_bits_are_the_same, 0, 2);
    tcase_add_test(tests, a_prompt_may_fill_the_context_and_no_more);
    tcase_add_test(tests, tokens_and_embeddings_are_not_asked_for_at_once);
    tcase_add_test(tests, a_vector_has_length_one_or_is_none);
}

int main(void)
{
    return run_tests("engine/embeddings", add);
}
