/* SPDX-License-Identifier: MIT */
/* The engine on the CPU backend and a real, if tiny, model: whatever happens around a request, its tokens and
 * log probabilities are the same bits. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/engine.h"
#include "common/system/shm.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REQUESTS 10
#define LOGPROBS 3

struct outcome {
    struct ids ids;
    struct buffer text;
    struct buffer logprobs;
    enum engine_end end;
};

struct rig {
    struct model *model;
    struct engine *engine;
    struct outcome outcomes[REQUESTS];
    uint64_t layers, cancel_at; /* progress calls; at this one request 0 is cancelled */
};

static void sink(void *arg, const struct engine_event *event)
{
    struct rig *rig = arg;
    struct outcome *o = &rig->outcomes[event->tag];
    ids_append(&o->ids, event->ids, event->n_ids);
    buffer_append(&o->text, event->text.data, event->text.len);
    buffer_append(&o->logprobs, event->logprobs, event->n_ids * event->n_logprobs * sizeof *event->logprobs);
    o->end = event->end;
}

static bool progress(void *arg)
{
    struct rig *rig = arg;
    if (++rig->layers == rig->cancel_at)
        engine_cancel(rig->engine, 0);
    return rig->engine && engine_step_is_moot(rig->engine);
}

/* Of the model's layers: a window, all of them, or every other (Gemma 2: two KV groups). */
enum windows { NO_WINDOW, WINDOWS, SOME_WINDOWS };
static enum windows windows;
#define WINDOW 40

static void rig_init(struct rig *rig, struct backend_config config)
{
    struct synth_shape shape = *synth_shape_by_name("tiny");
    const bool slow = test_is_scaled(); /* a tenth of the products then, and as large a cache */
    shape.n_embd = slow ? 64 : shape.n_embd;
    shape.n_ff = slow ? 64 : shape.n_ff;
    shape.window = windows == NO_WINDOW ? 0 : WINDOW;
    shape.architecture = windows == SOME_WINDOWS ? "gemma2" : shape.architecture;
    shape.cap = shape.logit_cap = windows == SOME_WINDOWS ? 30 : 0;
    struct error err = {0};
    *rig = (struct rig){.model = make_model_of(&shape, slow ? "Q8_0" : "Q4_K_M", 5, true)};
    config.progress = progress;
    config.progress_arg = rig;
    const struct engine_config engine = {.model = rig->model,
                                         .backend = &backend_cpu,
                                         .give_back = backend_cpu_give_back,
                                         .most_cached = UINT32_MAX,
                                         .backend_config = config};
    ck_assert_msg(engine_new(&engine, sink, rig, &rig->engine, &err) == 0, "%s", err.text);
    rig->layers = 0; /* the weights counted too */
}

static void rig_deinit(struct rig *rig)
{
    engine_free(rig->engine);
    model_free(rig->model);
    for (int i = 0; i < REQUESTS; i++) {
        ids_deinit(&rig->outcomes[i].ids);
        buffer_deinit(&rig->outcomes[i].text);
        buffer_deinit(&rig->outcomes[i].logprobs);
    }
}

static uint32_t prompt_length(uint64_t tag)
{
    return 1 + (uint32_t)tag * 37 % 130;
}

/* Greedy and sampled ones, with and without penalties and biases, of all lengths. */
static void submit(struct rig *rig, uint64_t tag)
{
    int32_t prompt[400];
    struct error err = {0};
    const uint32_t n = prompt_length(tag);
    for (uint32_t i = 0; i < n; i++)
        prompt[i] = (int32_t)(3 + (tag * 31 + i * 17) % 480);
    const struct logit_bias biases[] = {{(int32_t)tag + 5, 3}, {7, -100}};
    const struct engine_request request = {
        .tag = tag,
        .prompt = prompt,
        .n_prompt = n,
        .max_tokens = 20 + (uint32_t)tag * 13 % 60,
        .sampling = {SAMPLING_RARE_OFF, .temperature = tag % 3 ? 0.9f : 0, .top_k = tag % 2 ? 40 : 0,
                     .top_p = 0.95f, .repetition_penalty = tag % 4 ? 1 : 1.2f,
                     .presence_penalty = tag % 5 ? 0 : 0.4, .frequency_penalty = tag % 3 ? 0.3 : 0,
                     .logit_bias = {biases, tag % 3}, .seed = tag * 1000},
        .n_logprobs = LOGPROBS};
    int r = engine_submit(rig->engine, &request, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

static void run_dry(struct rig *rig)
{
    struct error err = {0};
    int r;
    while ((r = engine_step(rig->engine, &err)) == 1)
        ;
    ck_assert_msg(r == 0, "%s", err.text);
}

static void check_same(const struct rig *a, const struct rig *b)
{
    for (int i = 0; i < REQUESTS; i++) {
        const struct outcome *x = &a->outcomes[i], *y = &b->outcomes[i];
        ck_assert(x->end == ENGINE_END_LENGTH || x->end == ENGINE_END_STOP);
        ck_assert_int_eq(x->end, y->end);
        ck_assert_uint_eq(x->ids.len, y->ids.len);
        ck_assert_mem_eq(x->ids.data, y->ids.data, x->ids.len * sizeof *x->ids.data);
        ck_assert_uint_eq(x->text.len, y->text.len);
        ck_assert_mem_eq(x->text.data, y->text.data, x->text.len);
        ck_assert_uint_eq(x->logprobs.len, x->ids.len * LOGPROBS * sizeof(struct logprob));
        ck_assert_uint_eq(x->logprobs.len, y->logprobs.len);
        ck_assert_mem_eq(x->logprobs.data, y->logprobs.data, x->logprobs.len);
    }
}

START_TEST(alone_in_a_batch_in_chunks_and_after_preemption_the_bits_are_the_same)
{
    static struct rig alone, batched;
    rig_init(&alone, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        submit(&alone, tag);
        run_dry(&alone);
    }
    /* Rows of a step, threads, blocks: ten that need up to six blocks each share eight. */
    const struct backend_config configs[] = {{.max_rows = 512, .cpu = {.n_threads = 2}},
                                             {.max_rows = 16, .cpu = {.n_threads = 1}},
                                             {.max_rows = 37, .cpu = {.n_threads = 2}, .n_blocks = 8}};
    for (int i = 0; i < 3; i++) {
        struct backend_config config = configs[i];
        struct engine_stats stats;
        config.n_slots = 10;
        config.n_context = 512;
        rig_init(&batched, config);
        for (uint64_t tag = 0; tag < REQUESTS; tag++)
            submit(&batched, tag);
        run_dry(&batched);
        check_same(&alone, &batched);
        engine_stats(batched.engine, &stats);
        ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
        ck_assert(i < 2 || stats.preemptions > 0);
        rig_deinit(&batched);
    }
    rig_deinit(&alone);
}
END_TEST

START_TEST(what_is_found_in_the_prefix_cache_gives_the_same_bits)
{
    static struct rig alone, again;
    rig_init(&alone, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    for (uint64_t tag = 0; tag < REQUESTS; tag++)
        submit(&alone, tag);
    run_dry(&alone);
    /* Blocks: enough to find everything again, and so few that most of it is evicted in between. What is
     * found ends inside a block where at least eight ids of it are found, and then one is computed. */
    uint32_t rows = 0;
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        const uint32_t n = prompt_length(tag), in_block = (n - 1) % BACKEND_BLOCK_TOKENS;
        rows += n + 2 * (in_block < 8 ? in_block + 1 : 1);
    }
    static const uint32_t n_blocks[] = {100, 14};
    for (int few = 0; few < 2; few++) {
        struct engine_stats stats;
        rig_init(&again, (struct backend_config){.n_slots = 3,
                                                 .n_context = 512,
                                                 .n_blocks = n_blocks[few],
                                                 .max_rows = 40,
                                                 .cpu = {.n_threads = 2}});
        for (int round = 0; round < 3; round++) {
            for (uint64_t i = 0; i < REQUESTS; i++) { /* there and back: some of the last are still cached */
                uint64_t tag = round % 2 ? REQUESTS - 1 - i : i;
                struct outcome *o = &again.outcomes[tag];
                o->ids.len = o->text.len = o->logprobs.len = 0;
                submit(&again, tag);
            }
            run_dry(&again);
            check_same(&alone, &again);
        }
        engine_stats(again.engine, &stats);
        ck_assert_uint_gt(stats.cache_hits, few ? 31 : 1000);
        if (!few)
            ck_assert_uint_eq(stats.prefill_tokens, rows);
        ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
        rig_deinit(&again);
    }
    rig_deinit(&alone);
}
END_TEST

START_TEST(what_slides_out_of_a_window_is_free_and_the_bits_are_the_same)
{
    static struct rig alone, again;
    struct engine_stats stats;
    struct error err = {0};
    windows = _i ? SOME_WINDOWS : WINDOWS;
    rig_init(&alone, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    for (uint64_t tag = 0; tag < REQUESTS; tag++)
        submit(&alone, tag);
    run_dry(&alone);
    /* So few blocks that those of one are another's at once; with the prefixes of all, and some forgotten. */
    rig_init(&again,
             (struct backend_config){
                 .n_slots = 4, .n_context = 512, .n_blocks = 9, .max_rows = 40, .cpu = {.n_threads = 2}});
    for (int round = 0; round < 3; round++) {
        for (uint64_t tag = 0; tag < REQUESTS; tag++) {
            struct outcome *o = &again.outcomes[tag];
            o->ids.len = o->text.len = o->logprobs.len = 0;
            submit(&again, tag);
        }
        run_dry(&again);
        check_same(&alone, &again);
    }
    /* 134 positions and more are in five blocks, of which a window of 40 reaches into three at most. */
    again.outcomes[9].ids.len = 0;
    submit(&again, 9);
    for (int r = 1; again.outcomes[9].ids.len < 60 && r == 1;)
        r = engine_step(again.engine, &err);
    ck_assert_uint_ge(again.outcomes[9].ids.len, 60);
    engine_stats(again.engine, &stats);
    ck_assert_uint_le(stats.blocks_held[_i], 3);
    ck_assert(!_i || stats.blocks_held[0] >= 5); /* where layers see everything all is there */
    run_dry(&again);
    engine_stats(again.engine, &stats);
    ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
    rig_deinit(&again);
    rig_deinit(&alone);
    windows = NO_WINDOW;
}
END_TEST

/* All requests, at once, on an engine of its own that shares its prefixes. */
static void run_sharing(const struct rig *alone, int fd, struct backend_config config,
                        struct engine_stats *ret_stats)
{
    static struct rig rig;
    struct error err = {0};
    rig_init(&rig, config);
    ck_assert_msg(engine_share_prefixes(rig.engine, fd, &err) == 0, "%s", err.text);
    for (uint64_t tag = 0; tag < REQUESTS; tag++)
        submit(&rig, tag);
    run_dry(&rig);
    check_same(alone, &rig);
    engine_stats(rig.engine, ret_stats);
    ck_assert_uint_eq(ret_stats->blocks_free, ret_stats->blocks_total);
    rig_deinit(&rig);
}

/* Engines one after the other, as workers that are started again: what one computed the next finds, as far as
 * the store has room. */
START_TEST(what_comes_from_the_prefix_store_gives_the_same_bits)
{
    static struct rig alone;
    windows = (enum windows)_i; /* blocks slide out while they are owed to the store */
    struct backend_config config = {.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}};
    rig_init(&alone, config);
    for (uint64_t tag = 0; tag < REQUESTS; tag++)
        submit(&alone, tag);
    run_dry(&alone);
    config = (struct backend_config){.n_slots = 3, .n_context = 512, .max_rows = 40, .cpu = {.n_threads = 2}};
    static const size_t sizes[] = {8 << 20, 300 << 10}; /* all of it; eight blocks */
    for (int few = 0; few < 2; few++) {
        struct engine_stats first, second, third;
        int fd;
        ck_assert_int_eq(shm_create("test", sizes[few], &fd), 0);
        run_sharing(&alone, fd, config, &first);
        ck_assert_uint_eq(first.restores, 0);
        run_sharing(&alone, fd, config, &second);
        if (!few) { /* of eight blocks, twice as many asked for in the same order may push each other out */
            ck_assert_uint_gt(second.restores, 0);
            ck_assert_uint_lt(second.prefill_tokens, first.prefill_tokens / 2);
        }
        config.n_blocks = 8; /* preempted, evicted, and brought again */
        run_sharing(&alone, fd, config, &third);
        ck_assert_uint_ge(third.restores, few ? 0 : second.restores);
        ck_assert(_i == WINDOWS || third.preemptions > 0);
        config.n_blocks = 0;
        close(fd);
    }
    rig_deinit(&alone);
    windows = NO_WINDOW;
}
END_TEST

/* Blocks that are owed to the store may be given back before they are copied: what they hold then is not
 * stored, neither under their keys nor under others'. */
START_TEST(what_was_given_back_does_not_get_into_the_store)
{
    static struct rig alone, giving;
    windows = (enum windows)_i;
    struct backend_config config = {.n_slots = 3, .n_context = 512, .cpu = {.n_threads = 1}};
    struct engine_stats stats;
    struct error err = {0};
    int fd, r = 1;
    rig_init(&alone, config);
    rig_init(&giving, config);
    ck_assert_int_eq(shm_create("test", 8 << 20, &fd), 0);
    ck_assert_msg(engine_share_prefixes(giving.engine, fd, &err) == 0, "%s", err.text);
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        submit(&alone, tag);
        submit(&giving, tag);
    }
    run_dry(&alone);
    for (int i = 0; r == 1; i++) {
        struct engine_given given;
        ck_assert_int_eq(engine_give_back(giving.engine, i % 3 == 0, &given), 0);
        r = engine_step(giving.engine, &err);
    }
    ck_assert_msg(r == 0, "%s", err.text);
    check_same(&alone, &giving);
    run_sharing(&alone, fd, config, &stats);
    ck_assert_uint_gt(stats.restores, 0);
    close(fd);
    rig_deinit(&giving);
    rig_deinit(&alone);
    windows = NO_WINDOW;
}
END_TEST

START_TEST(a_store_that_cannot_be_shared_leaves_the_engine_as_it_was)
{
    static struct rig rig;
    struct error err = {0};
    int fd;
    ck_assert_int_eq(shm_create("test", 4096, &fd), 0);
    rig_init(&rig, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    ck_assert_int_eq(engine_share_prefixes(rig.engine, fd, &err), -ENOTSUP);
    submit(&rig, 1);
    run_dry(&rig);
    ck_assert(rig.outcomes[1].end == ENGINE_END_LENGTH || rig.outcomes[1].end == ENGINE_END_STOP);
    rig_deinit(&rig);
    close(fd);
}
END_TEST

START_TEST(a_cancel_at_any_layer_ends_that_request_and_harms_no_other)
{
    static struct rig alone, disturbed;
    rig_init(&alone, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    submit(&alone, 1);
    run_dry(&alone);
    for (uint64_t at = 1; at < 40; at += 3) {
        struct engine_stats stats;
        rig_init(&disturbed, (struct backend_config){
                                 .n_slots = 2, .n_context = 512, .cpu = {.n_threads = 2}, .max_rows = 16});
        disturbed.cancel_at = at;
        submit(&disturbed, 0);
        submit(&disturbed, 1);
        run_dry(&disturbed);
        ck_assert(disturbed.outcomes[0].end == ENGINE_END_CANCELLED);
        ck_assert_uint_eq(disturbed.outcomes[1].ids.len, alone.outcomes[1].ids.len);
        ck_assert_mem_eq(disturbed.outcomes[1].ids.data, alone.outcomes[1].ids.data,
                         alone.outcomes[1].ids.len * sizeof(int32_t));
        engine_stats(disturbed.engine, &stats);
        ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
        rig_deinit(&disturbed);
    }
    rig_deinit(&alone);
}
END_TEST

START_TEST(a_step_abandoned_for_a_cancel_leaves_the_backend_good)
{
    static struct rig alone, rig;
    rig_init(&alone, (struct backend_config){.n_slots = 1, .n_context = 512, .cpu = {.n_threads = 1}});
    submit(&alone, 3);
    run_dry(&alone);
    rig_init(&rig, (struct backend_config){.n_slots = 2, .n_context = 512, .cpu = {.n_threads = 1}});
    for (uint64_t at = 1; at <= 6; at++) { /* alone in its step: the step itself is given up */
        rig.cancel_at = rig.layers + at;
        submit(&rig, 0);
        run_dry(&rig);
        ck_assert_int_eq(rig.outcomes[0].end, ENGINE_END_CANCELLED);
    }
    submit(&rig, 3);
    run_dry(&rig);
    ck_assert_uint_eq(rig.outcomes[3].ids.len, alone.outcomes[3].ids.len);
    ck_assert_mem_eq(rig.outcomes[3].ids.data, alone.outcomes[3].ids.data,
                     rig.outcomes[3].ids.len * sizeof(int32_t));
    rig_deinit(&rig);
    rig_deinit(&alone);
}
END_TEST

static void add(TCase *tests)
{
    const int kinds = test_is_for_races() ? 1 : 3; /* of windows */
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, alone_in_a_batch_in_chunks_and_after_preemption_the_bits_are_the_same);
    if (!test_is_for_races()) {
        tcase_add_test(tests, what_is_found_in_the_prefix_cache_gives_the_same_bits);
        tcase_add_loop_test(tests, what_slides_out_of_a_window_is_free_and_the_bits_are_the_same, 0, 2);
    }
    tcase_add_loop_test(tests, what_comes_from_the_prefix_store_gives_the_same_bits, 0, kinds);
    tcase_add_loop_test(tests, what_was_given_back_does_not_get_into_the_store, 0, kinds);
    tcase_add_test(tests, a_store_that_cannot_be_shared_leaves_the_engine_as_it_was);
    tcase_add_test(tests, a_cancel_at_any_layer_ends_that_request_and_harms_no_other);
    tcase_add_test(tests, a_step_abandoned_for_a_cancel_leaves_the_backend_good);
}

int main(void)
{
    return run_tests("engine on the cpu", add);
}
