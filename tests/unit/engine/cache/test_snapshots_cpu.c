/* SPDX-License-Identifier: MIT */
/* Models with recurrent layers on the engine and the CPU, or another device: prompts that go on from what was
 * computed before compute what is new, and their bits are those of a prompt that is computed whole. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/engine.h"
#include "engine/snapshots.h"
#include "common/system/shm.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef BACKEND
#define BACKEND   backend_cpu
#define INVARIANT false /* it always is */
#endif
extern const struct backend_ops BACKEND;

#define REQUESTS 32
#define CONTEXT  5120

struct outcome {
    struct ids ids;
    struct buffer logprobs;
    enum engine_end end;
    uint32_t cached;
};

struct rig {
    struct model *model;
    struct engine *engine;
    struct outcome outcomes[REQUESTS];
};

static void sink(void *arg, const struct engine_event *event)
{
    struct rig *rig = arg;
    struct outcome *o = &rig->outcomes[event->tag];
    ids_append(&o->ids, event->ids, event->n_ids);
    buffer_append(&o->logprobs, event->logprobs, event->n_ids * event->n_logprobs * sizeof *event->logprobs);
    o->end = event->end;
}

/* Two recurrent layers of four, of a model of hardly any size. */
static void rig_init(struct rig *rig, struct backend_config config, bool caches)
{
    struct synth_shape shape = hybrid_shape;
    struct error err = {0};
    shape.n_embd = 64;
    shape.n_ff = 64;
    shape.n_context = CONTEXT;
    shape.head_dim = 32;
    shape.delta = (struct delta_net){2, 4, 32, 32, 4, false};
    *rig = (struct rig){.model = make_model_of(&shape, "Q8_0", 5, true)};
    config.n_context = CONTEXT;
    config.cpu.n_threads = 2;
    config.invariant = INVARIANT;
    const struct engine_config engine = {.model = rig->model,
                                         .backend = &BACKEND,
                                         .most_cached = caches ? UINT32_MAX : 0,
                                         .backend_config = config};
    ck_assert_msg(engine_new(&engine, sink, rig, &rig->engine, &err) == 0, "%s", err.text);
}

static void rig_deinit(struct rig *rig)
{
    engine_free(rig->engine);
    model_free(rig->model);
    for (int i = 0; i < REQUESTS; i++) {
        ids_deinit(&rig->outcomes[i].ids);
        buffer_deinit(&rig->outcomes[i].logprobs);
    }
}

static void submit(struct rig *rig, uint64_t tag, const int32_t *prompt, uint32_t n, uint32_t max_tokens)
{
    struct error err = {0};
    struct logit_bias biases[8]; /* no answer ends before its length */
    const struct ids_view ends = tokenizer_end_ids(rig->model->tokenizer);
    ck_assert_uint_le(ends.n, 8);
    for (size_t i = 0; i < ends.n; i++)
        biases[i] = (struct logit_bias){ends.items[i], -100};
    const struct engine_request request = {.tag = tag,
                                           .prompt = prompt,
                                           .n_prompt = n,
                                           .max_tokens = max_tokens,
                                           .sampling = {SAMPLING_RARE_OFF, .temperature = 0.8f,
                                                        .top_p = 0.95f, .repetition_penalty = 1, .seed = tag,
                                                        .logit_bias = {biases, ends.n}},
                                           .n_logprobs = 2};
    int r = engine_submit(rig->engine, &request, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
}

static void run_dry(struct rig *rig)
{
    struct error err = {0};
    int r = 1;
    for (uint32_t i = 0; r == 1; i++) {
        ck_assert_msg(i < 1000000, "the engine hangs");
        r = engine_step(rig->engine, &err);
    }
    ck_assert_msg(r == 0, "%s", err.text);
}

/* Runs a request alone; how many ids of its prompt were computed. */
static uint64_t computed_by(struct rig *rig, uint64_t tag, const int32_t *prompt, uint32_t n,
                            uint32_t max_tokens)
{
    struct engine_stats before, after;
    engine_stats(rig->engine, &before);
    submit(rig, tag, prompt, n, max_tokens);
    run_dry(rig);
    engine_stats(rig->engine, &after);
    return after.prefill_tokens - before.prefill_tokens;
}

static void fill(int32_t *ids, uint32_t n, uint32_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + (seed * 7919 + i * i * 13 + i * 31) % 390);
}

static void check_same(const struct rig *a, const struct rig *b, uint64_t tag)
{
    const struct outcome *x = &a->outcomes[tag], *y = &b->outcomes[tag];
    ck_assert(x->ids.len > 0 && x->end == y->end);
    ck_assert_uint_eq(x->ids.len, y->ids.len);
    ck_assert_mem_eq(x->ids.data, y->ids.data, x->ids.len * sizeof *x->ids.data);
    ck_assert_mem_eq(x->logprobs.data, y->logprobs.data, x->logprobs.len);
}

START_TEST(the_same_prompt_again_computes_what_is_behind_its_last_border)
{
    static struct rig cached, whole;
    int32_t prompt[2000];
    fill(prompt, 2000, 1);
    rig_init(&cached, (struct backend_config){.n_slots = 4}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 4}, false);
    ck_assert_uint_eq(computed_by(&cached, 0, prompt, 2000, 5), 2000);
    ck_assert_uint_eq(computed_by(&cached, 1, prompt, 2000, 20), 2000 - 1984);
    ck_assert_uint_eq(computed_by(&whole, 1, prompt, 2000, 20), 2000);
    ck_assert_uint_eq(computed_by(&cached, 2, prompt, 1984, 20), 1984); /* its own end is 1952 */
    ck_assert_uint_eq(computed_by(&whole, 2, prompt, 1984, 20), 1984);
    ck_assert_uint_eq(computed_by(&cached, 3, prompt, 1984, 20), 32);
    check_same(&cached, &whole, 1);
    check_same(&cached, &whole, 2);
    rig_deinit(&cached);
    rig_deinit(&whole);
}
END_TEST

/* Each turn has 200 ids more, after an answer of 50 that was computed as it came. */
START_TEST(each_turn_computes_what_is_new)
{
    const uint32_t turns = test_is_scaled() ? 6 : 20;
    static struct rig cached, whole;
    static int32_t prompt[CONTEXT];
    uint64_t computed = 0, new = 0;
    uint32_t n = 0;
    rig_init(&cached, (struct backend_config){.n_slots = 4}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 4}, false);
    for (uint32_t turn = 0; turn < turns; turn++) {
        fill(prompt + n, 200, turn);
        n += 200;
        new += 200;
        computed += computed_by(&cached, turn, prompt, n, 50);
        computed_by(&whole, turn, prompt, n, 50);
        check_same(&cached, &whole, turn);
        const struct ids *answer = &cached.outcomes[turn].ids;
        memcpy(prompt + n, answer->data, answer->len * sizeof *prompt);
        n += (uint32_t)answer->len;
    }
    ck_assert_msg((double)computed <= 1.2 * (double)new, "%llu ids computed, %llu were new",
                  (unsigned long long)computed, (unsigned long long)new);
    rig_deinit(&cached);
    rig_deinit(&whole);
}
END_TEST

/* 1000 ids that all begin with. The second finds its blocks and no snapshot, and takes one there. */
START_TEST(a_beginning_that_several_share_is_computed_twice)
{
    static struct rig cached, whole;
    int32_t prompt[1300];
    rig_init(&cached, (struct backend_config){.n_slots = 4}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 4}, false);
    fill(prompt, 1000, 3);
    for (uint32_t i = 0; i < 5; i++) {
        fill(prompt + 1000, 300, 50 + i);
        const uint64_t computed = computed_by(&cached, i, prompt, 1300, 10);
        ck_assert_uint_eq(computed, i < 2 ? 1300 : 1300 - 992);
        computed_by(&whole, i, prompt, 1300, 10);
        check_same(&cached, &whole, i);
    }
    rig_deinit(&cached);
    rig_deinit(&whole);
}
END_TEST

/* The same at once: those that come later wait for the first one's snapshot. */
START_TEST(equal_prompts_at_once_are_computed_once)
{
    static struct rig rig;
    struct engine_stats stats;
    int32_t prompt[900];
    fill(prompt, 900, 4);
    rig_init(&rig, (struct backend_config){.n_slots = 4}, true);
    for (uint64_t tag = 0; tag < 4; tag++)
        submit(&rig, tag, prompt, 900, 10);
    run_dry(&rig);
    engine_stats(rig.engine, &stats);
    ck_assert_uint_eq(stats.prefill_tokens, 900 + 3 * (900 - 896));
    rig_deinit(&rig);
}
END_TEST

/* Two that want five blocks each, and have eight: the junior gives way to the last block of the other,
 * which is the one that it had begun. So what it finished is still there, and a snapshot with it. */
START_TEST(a_preempted_sequence_goes_on_from_its_snapshot)
{
    static struct rig tight, whole;
    struct engine_stats stats;
    int32_t prompts[2][60];
    rig_init(&tight, (struct backend_config){.n_slots = 2, .n_blocks = 8}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 1}, false);
    for (uint32_t i = 0; i < 2; i++) {
        fill(prompts[i], 60, i);
        submit(&tight, i, prompts[i], 60 - 10 * i, 72);
    }
    run_dry(&tight);
    engine_stats(tight.engine, &stats);
    ck_assert_uint_eq(stats.preemptions, 1);
    ck_assert_uint_gt(stats.prefill_tokens, 60 + 50);
    ck_assert_uint_lt(stats.prefill_tokens, 60 + 50 + 2 * BACKEND_BLOCK_TOKENS);
    computed_by(&whole, 1, prompts[1], 50, 72);
    check_same(&tight, &whole, 1);
    rig_deinit(&tight);
    rig_deinit(&whole);
}
END_TEST

/* Blocks for one or two sequences of the six that want them. */
START_TEST(sequences_that_are_preempted_often_have_the_bits_of_undisturbed_ones)
{
    static struct rig tight, whole;
    struct engine_stats stats;
    int32_t prompt[300];
    rig_init(&tight, (struct backend_config){.n_slots = 6, .n_blocks = 14}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 1}, false);
    for (uint64_t tag = 0; tag < 6; tag++) {
        fill(prompt, 60 + (uint32_t)tag * 20, (uint32_t)tag);
        submit(&tight, tag, prompt, 60 + (uint32_t)tag * 20, 200);
    }
    run_dry(&tight);
    engine_stats(tight.engine, &stats);
    ck_assert_uint_gt(stats.preemptions, 0);
    for (uint64_t tag = 0; tag < 6; tag++) {
        fill(prompt, 60 + (uint32_t)tag * 20, (uint32_t)tag);
        computed_by(&whole, tag, prompt, 60 + (uint32_t)tag * 20, 200);
        check_same(&tight, &whole, tag);
    }
    rig_deinit(&tight);
    rig_deinit(&whole);
}
END_TEST

/* Two snapshots: what was used longest ago has lost its own, and is computed again. */
START_TEST(the_budget_of_snapshots_is_kept)
{
    static struct rig cached, whole;
    struct backend_config config = {.n_slots = 2, .n_snapshots = 2};
    int32_t prompts[3][200];
    rig_init(&cached, config, true);
    rig_init(&whole, config, false);
    for (uint32_t i = 0; i < 3; i++) {
        fill(prompts[i], 200, i);
        ck_assert_uint_eq(computed_by(&cached, i, prompts[i], 200, 4), 200);
    }
    ck_assert_uint_eq(computed_by(&cached, 3, prompts[2], 200, 4), 200 - 192);
    ck_assert_uint_eq(computed_by(&cached, 4, prompts[1], 200, 4), 200 - 192);
    ck_assert_uint_eq(computed_by(&cached, 5, prompts[0], 200, 4), 200);
    computed_by(&whole, 5, prompts[0], 200, 4);
    check_same(&cached, &whole, 5);
    rig_deinit(&cached);
    rig_deinit(&whole);
}
END_TEST

/* ---- the store ---- */

static void share(struct rig *rig, int fd)
{
    struct error err = {0};
    ck_assert_msg(engine_share_prefixes(rig->engine, fd, &err) == 0, "%s", err.text);
}

/* What one worker has computed another need not: the end of a prompt, and the last border of an answer. */
START_TEST(another_worker_goes_on_from_the_store)
{
    static struct rig first, second, whole;
    struct engine_stats stats;
    int32_t prompt[2300];
    int fd;
    ck_assert_int_eq(shm_create("test", 64 << 20, &fd), 0);
    rig_init(&first, (struct backend_config){.n_slots = 2}, true);
    rig_init(&second, (struct backend_config){.n_slots = 2}, true);
    rig_init(&whole, (struct backend_config){.n_slots = 2}, false);
    share(&first, fd);
    share(&second, fd);
    fill(prompt, 2000, 1);
    ck_assert_uint_eq(computed_by(&first, 0, prompt, 2000, 100), 2000);
    ck_assert_uint_eq(computed_by(&second, 1, prompt, 2000, 20), 2000 - 1984);
    computed_by(&whole, 1, prompt, 2000, 20);
    check_same(&second, &whole, 1);

    const struct ids *answer = &first.outcomes[0].ids;
    memcpy(prompt + 2000, answer->data, answer->len * sizeof *prompt);
    const uint32_t n = 2000 + (uint32_t)answer->len;
    fill(prompt + n, 50, 2);
    ck_assert_uint_le(computed_by(&second, 2, prompt, n + 50, 20), 50 + 32);
    computed_by(&whole, 2, prompt, n + 50, 20);
    check_same(&second, &whole, 2);
    engine_stats(second.engine, &stats);
    ck_assert_uint_ge(stats.restores, 62);
    rig_deinit(&first);
    rig_deinit(&second);
    rig_deinit(&whole);
    close(fd);
}
END_TEST

/* Of several that wait each gets its snapshot, though one comes in at a time, and though the cache, if it has
 * few blocks, has no room for what two of them need: who was brought something begins with it. */
START_TEST(those_that_wait_together_all_go_on_from_the_store)
{
    static struct rig first, second, whole;
    struct engine_stats stats;
    struct backend_config config = {.n_slots = 4, .n_blocks = _i ? 24 : 0};
    int32_t prompts[4][600];
    int fd;
    ck_assert_int_eq(shm_create("test", 64 << 20, &fd), 0);
    rig_init(&first, (struct backend_config){.n_slots = 4}, true);
    rig_init(&second, config, true);
    rig_init(&whole, (struct backend_config){.n_slots = 4}, false);
    share(&first, fd);
    share(&second, fd);
    for (uint32_t i = 0; i < 4; i++) {
        fill(prompts[i], 600, i);
        ck_assert_uint_eq(computed_by(&first, i, prompts[i], 600, 4), 600);
    }
    for (uint32_t i = 0; i < 4; i++)
        submit(&second, i, prompts[i], 600, 20);
    run_dry(&second);
    engine_stats(second.engine, &stats);
    ck_assert_uint_eq(stats.prefill_tokens, 4 * (600 - 576));
    for (uint32_t i = 0; i < 4; i++) {
        computed_by(&whole, i, prompts[i], 600, 20);
        check_same(&second, &whole, i);
    }
    rig_deinit(&first);
    rig_deinit(&second);
    rig_deinit(&whole);
    close(fd);
}
END_TEST

/* ---- the policy ---- */

START_TEST(borders_are_those_that_the_policy_names)
{
    struct sequence s = {.state = SEQUENCE_PREFILLING, .space = 1, .n_prefill = 5000, .branch = 320};
    ck_assert_uint_eq(snapshots_prompt_end(&s), 4992);
    ck_assert_uint_eq(snapshots_next(&s, 319), 0);
    ck_assert_uint_eq(snapshots_next(&s, 320), 320);
    ck_assert_uint_eq(snapshots_next(&s, 5000), 320);
    ck_assert(!snapshots_follow(&s, 320, SNAPSHOTS_STRIDE - 1));
    ck_assert(snapshots_follow(&s, 320, SNAPSHOTS_STRIDE));
    s.fed = 320;
    ck_assert_uint_eq(snapshots_next(&s, 5000), SNAPSHOTS_STRIDE);
    s.fed = 2 * SNAPSHOTS_STRIDE;
    ck_assert_uint_eq(snapshots_next(&s, 4992), 4992);
    ck_assert(!snapshots_follow(&s, 4992, 5000));
    s.fed = 4992;
    ck_assert_uint_eq(snapshots_next(&s, 5000), 0);
    s.state = SEQUENCE_DECODING;
    s.fed = 5023;
    ck_assert_uint_eq(snapshots_next(&s, 5024), 5024);
    ck_assert_uint_eq(snapshots_next(&s, 5025), 0);
    s.space = 0; /* kept by nobody */
    ck_assert_uint_eq(snapshots_next(&s, 5024), 0);
}
END_TEST

/* An emulated device takes longer for an id: what only has other numbers of them is left to the CPU. */
static void add(TCase *tests)
{
    tcase_set_timeout(tests, 280);
    tcase_add_test(tests, a_preempted_sequence_goes_on_from_its_snapshot);
    tcase_add_test(tests, the_budget_of_snapshots_is_kept);
    if (INVARIANT)
        return;
    tcase_add_test(tests, equal_prompts_at_once_are_computed_once);
    tcase_add_loop_test(tests, those_that_wait_together_all_go_on_from_the_store, 0, 2);
    if (test_is_for_races())
        return;
    tcase_add_test(tests, the_same_prompt_again_computes_what_is_behind_its_last_border);
    tcase_add_test(tests, each_turn_computes_what_is_new);
    tcase_add_test(tests, a_beginning_that_several_share_is_computed_twice);
    tcase_add_test(tests, sequences_that_are_preempted_often_have_the_bits_of_undisturbed_ones);
    tcase_add_test(tests, another_worker_goes_on_from_the_store);
    tcase_add_test(tests, borders_are_those_that_the_policy_names);
}

int main(void)
{
    return run_tests("snapshots", add);
}
