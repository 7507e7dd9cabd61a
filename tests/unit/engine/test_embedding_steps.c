/* SPDX-License-Identifier: MIT */
/* What the engine asks of a device for embeddings, on the fake backend, which asserts the rules of slots that
 * embed: each row summed once, from the first on, whatever happens to its steps. */

#include "tests/unit/engine/harness.h"
#include "engine/embedding.h"

#include <errno.h>

#define REQUESTS 12

struct heard {
    float vectors[REQUESTS][FAKE_EMBD];
    unsigned ends[REQUESTS], vectors_told[REQUESTS];
};

static void sink(void *arg, const struct engine_event *event)
{
    struct heard *heard = arg;
    if (event->embedding) {
        ck_assert_uint_eq(event->n_embedding, FAKE_EMBD);
        memcpy(heard->vectors[event->tag], event->embedding, sizeof heard->vectors[0]);
        heard->vectors_told[event->tag]++;
    }
    heard->ends[event->tag] += event->end != ENGINE_RUNNING;
}

/* Every third makes tokens instead. */
static struct engine_request request_at(uint64_t tag)
{
    const bool embed = tag % 3 != 0;
    struct engine_request request = request_of(tag, 20 + (uint32_t)tag * 17, embed ? 0 : 60);
    request.embed = request.uncached = embed;
    return request;
}

static void check(const struct heard *heard)
{
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        const struct engine_request request = request_at(tag);
        double sums[FAKE_EMBD] = {0}, state[FAKE_EMBD];
        float vector[FAKE_EMBD];
        ck_assert_uint_eq(heard->ends[tag], 1);
        ck_assert_uint_eq(heard->vectors_told[tag], request.embed);
        if (!request.embed)
            continue;
        for (uint32_t n = 1; n <= request.n_prompt; n++) {
            fake_state(request.prompt, n, state);
            for (uint32_t i = 0; i < FAKE_EMBD; i++)
                sums[i] += state[i];
        }
        ck_assert(embedding_of_sums(sums, FAKE_EMBD, vector));
        ck_assert_mem_eq(heard->vectors[tag], vector, sizeof vector);
    }
}

/* How often a sequence was preempted. */
static uint64_t run(const struct backend_config *backend, const struct fake_script *script)
{
    static struct heard heard;
    struct error err = {0};
    struct engine *engine;
    struct engine_stats stats;
    heard = (struct heard){0};
    fake_script = *script;
    fake_script.embeds = true;
    const struct engine_config config = {.model = &fake_model,
                                         .backend = &backend_fake,
                                         .most_cached = UINT32_MAX,
                                         .backend_config = *backend};
    ck_assert_msg(engine_new(&config, sink, &heard, &engine, &err) == 0, "%s", err.text);
    for (uint64_t tag = 0; tag < REQUESTS; tag++) {
        const struct engine_request request = request_at(tag);
        ck_assert_msg(engine_submit(engine, &request, &err) == 0, "%s", err.text);
    }
    int r = 1;
    for (int steps = 0; r == 1; steps++) {
        ck_assert_int_lt(steps, 100000);
        r = engine_step(engine, &err);
    }
    ck_assert_msg(r == 0, "%s", err.text);
    check(&heard);
    engine_stats(engine, &stats);
    ck_assert_uint_eq(stats.blocks_free, stats.blocks_total);
    ck_assert_uint_eq(fake_script.open_slots, 0);
    engine_free(engine);
    return stats.preemptions;
}

/* _i: asynchronous or not. */
START_TEST(each_row_is_summed_once_however_its_prompt_is_cut)
{
    for (uint32_t rows = 1; rows <= 512; rows = rows * 2 + 3)
        run(&(struct backend_config){.n_slots = 5, .max_rows = rows},
            &(struct fake_script){.asynchronous = _i, .again = 1});
}
END_TEST

/* The longest prompt alone takes seven blocks. */
START_TEST(what_was_summed_before_a_preemption_is_not_summed_twice)
{
    uint64_t preemptions = 0;
    for (uint32_t blocks = 8; blocks <= 14; blocks++)
        for (uint32_t rows = 8; rows <= 64; rows += 14)
            preemptions += run(&(struct backend_config){.n_slots = 5, .max_rows = rows, .n_blocks = blocks},
                               &(struct fake_script){.asynchronous = _i});
    ck_assert_uint_gt(preemptions, 0);
}
END_TEST

START_TEST(a_step_that_was_abandoned_is_summed_again_from_the_first_row)
{
    for (uint64_t step = 1; step <= 20; step++)
        run(&(struct backend_config){.n_slots = 3, .max_rows = 40},
            &(struct fake_script){.asynchronous = _i, .abandon_at = step});
}
END_TEST

START_TEST(a_step_that_is_refused_sums_nothing)
{
    run(&(struct backend_config){.n_slots = 5, .max_rows = 64},
        &(struct fake_script){.asynchronous = _i, .refusal = -ENOMEM, .most_sets = 1});
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, each_row_is_summed_once_however_its_prompt_is_cut, 0, 2);
    tcase_add_loop_test(tests, what_was_summed_before_a_preemption_is_not_summed_twice, 0, 2);
    tcase_add_loop_test(tests, a_step_that_was_abandoned_is_summed_again_from_the_first_row, 0, 2);
    tcase_add_loop_test(tests, a_step_that_is_refused_sums_nothing, 0, 2);
}

int main(void)
{
    return run_tests("engine/embedding_steps", add);
}
