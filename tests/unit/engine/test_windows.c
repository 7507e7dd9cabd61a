/* SPDX-License-Identifier: MIT */
/* Models whose layers see different distances: a windowed group of KV blocks stays small however long a
 * sequence becomes, and no id changes by that. Built for the CPU backend and, as cuda/windows, for the
 * emulated device. */

#include "tests/unit/run.h"
#include "tests/unit/cpu/small_model.h"
#include "engine/engine.h"
#include "engine/backend/kv_groups.h"

#include <stdlib.h>
#include <string.h>

#ifndef BACKEND
#define BACKEND backend_cpu
#endif
extern const struct backend_ops BACKEND;

#define WINDOW   40
#define CONTEXT  512
#define N_PROMPT 200
#define N_OUTPUT 100
#define ROWS     64

static struct model *make_windowed(const char *architecture, uint32_t n_layers)
{
    struct synth_shape shape = thin_shape;
    shape.architecture = architecture;
    shape.n_context = CONTEXT;
    shape.n_layers = n_layers;
    shape.biases = false;
    shape.window = WINDOW;
    shape.cap = shape.logit_cap = strcmp(architecture, "gemma2") == 0 ? 30 : 0;
    return make_model_of(&shape, "Q8_0", 9, true);
}

static void make_prompt(int32_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        ids[i] = (int32_t)(3 + i * 17 % 340);
}

/* ---- groups ---- */

START_TEST(layers_with_an_equal_window_are_a_group_and_the_widest_is_the_first)
{
    struct backend_group groups[BACKEND_MOST_GROUPS];
    struct model *model = make_windowed("gemma3", 13);
    ck_assert_uint_eq(kv_groups_of(model, CONTEXT, groups), 2);
    ck_assert(groups[0].window == 0 && groups[0].n_layers == 2);
    ck_assert(groups[1].window == WINDOW && groups[1].n_layers == 11);
    ck_assert_uint_eq(kv_group_of(groups, 2, model, 5, CONTEXT), 0);
    ck_assert_uint_eq(kv_group_of(groups, 2, model, 6, CONTEXT), 1);
    /* A window that nothing outgrows is none. */
    ck_assert_uint_eq(kv_groups_of(model, WINDOW, groups), 1);
    ck_assert(groups[0].window == 0 && groups[0].n_layers == 13);
    /* More kinds than there may be groups: the narrowest are together, and see what the widest of them does.
     */
    static const uint32_t windows[] = {0, 7, 100, 40, 300, 0, 8, 7, 300, 41, 100, 40, 8};
    for (uint32_t l = 0; l < 13; l++)
        model->layers[l].traits.window = windows[l];
    ck_assert_uint_eq(kv_groups_of(model, CONTEXT, groups), 4);
    static const uint32_t expected[][2] = {{0, 2}, {300, 2}, {100, 2}, {41, 7}};
    for (uint32_t g = 0; g < 4; g++) {
        ck_assert_uint_eq(groups[g].window, expected[g][0]);
        ck_assert_uint_eq(groups[g].n_layers, expected[g][1]);
    }
    for (uint32_t l = 0; l < 13; l++) {
        uint32_t g = kv_group_of(groups, 4, model, l, CONTEXT), sees = groups[g].window;
        ck_assert(sees == 0 || (windows[l] > 0 && sees >= windows[l]));
    }
    model_free(model);
}
END_TEST

/* By counting, for every window and length. */
START_TEST(a_sequence_holds_no_more_of_a_group_than_it_is_said_to)
{
    for (uint32_t window = 0; window <= 200; window++) {
        const struct backend_group group = {.window = window};
        for (uint32_t position = 0; position < 700; position++) {
            const uint32_t seen = window && position + 1 > window ? position + 1 - window : 0;
            ck_assert_uint_eq(backend_first_block(&group, position), seen / 32);
            /* Blocks are given back when one is full, and the next is needed before the one after. */
            const uint32_t given = backend_first_block(&group, position / 32 * 32);
            ck_assert_uint_le(backend_blocks_for(position + 1) - given,
                              backend_held_blocks(&group, position + 1));
        }
        ck_assert_uint_le(kv_group_wants(&group, 3, 700, 64), 3 * backend_blocks_for(700));
    }
}
END_TEST

/* ---- a sequence that outgrows its windows ---- */

/* The ids that follow the prompt, on the backend alone: a table of blocks none of which is ever given back.
 */
static void generate_alone(const struct model *model, int32_t *ids, uint32_t n_output)
{
    const uint32_t n_blocks = backend_blocks_for(CONTEXT);
    const struct backend_config config = {.model = model,
                                          .n_slots = 1,
                                          .n_context = CONTEXT,
                                          .n_blocks = n_blocks,
                                          .max_rows = N_PROMPT,
                                          .invariant = true,
                                          .cpu = {.n_threads = 1}};
    const struct backend_slot slot = {.sampling = SAMPLING_GREEDY, .end_position = N_PROMPT + n_output};
    const struct backend_result *results;
    struct backend *backend = NULL;
    struct backend_info info;
    struct error err = {0};
    uint32_t blocks[CONTEXT / 32], told = 0;
    uint64_t ticket;
    for (uint32_t i = 0; i < n_blocks; i++)
        blocks[i] = i;
    ck_assert_msg(BACKEND.open(&config, &backend, &err) == 0, "%s", err.text);
    BACKEND.info(backend, &info);
    ck_assert_int_eq(BACKEND.slot_open(backend, 0, &slot), 0);
    for (uint32_t at = 0, n = N_PROMPT; at + 1 < N_PROMPT + n_output; at += n, n = 1) {
        struct backend_row_set set = {
            .position = at, .ids = ids + at, .n_ids = n, .output = BACKEND_SAMPLE_LAST};
        for (uint32_t g = 0; g < info.n_groups; g++)
            set.blocks[g] = (struct backend_blocks){blocks + told, backend_blocks_for(at + n) - told, told};
        told = backend_blocks_for(at + n);
        ck_assert_int_eq(BACKEND.submit(backend, &(struct backend_step){&set, 1}, &ticket), 0);
        ck_assert_int_eq(BACKEND.poll(backend, ticket, 20000, &results, NULL), 0);
        ck_assert_uint_eq(results[0].n_ids, 1);
        ids[at + n] = results[0].ids[0];
    }
    BACKEND.close(backend);
}

struct answer {
    int32_t ids[N_OUTPUT];
    uint32_t n;
    enum engine_end end;
    struct engine_totals totals;
};

static void keep(void *arg, const struct engine_event *event)
{
    struct answer *answer = arg;
    ck_assert_uint_le(answer->n + event->n_ids, N_OUTPUT);
    memcpy(answer->ids + answer->n, event->ids, event->n_ids * sizeof *event->ids);
    answer->n += event->n_ids;
    answer->end = event->end;
    if (event->totals)
        answer->totals = *event->totals;
}

static struct engine *start(const struct model *model, struct backend_config config, struct answer *answer)
{
    struct engine *engine;
    struct error err = {0};
    config.invariant = true;
    config.cpu.n_threads = 1;
    const struct engine_config full = {
        .model = model, .backend = &BACKEND, .most_cached = UINT32_MAX, .backend_config = config};
    ck_assert_msg(engine_new(&full, keep, answer, &engine, &err) == 0, "%s", err.text);
    return engine;
}

/* Runs a request; `most` is the most blocks of group `g` that were held after any step. */
static void ask(struct engine *engine, struct answer *answer, const int32_t *prompt, uint32_t n_prompt,
                uint32_t max_tokens, uint32_t g, uint32_t *most)
{
    const struct engine_request request = {.tag = 1,
                                           .prompt = prompt,
                                           .n_prompt = n_prompt,
                                           .max_tokens = max_tokens,
                                           .sampling = SAMPLING_GREEDY};
    struct error err = {0};
    struct engine_stats stats;
    int r = engine_submit(engine, &request, &err);
    ck_assert_msg(r == 0, "%s", err.text);
    *answer = (struct answer){0};
    *most = 0;
    do {
        r = engine_step(engine, &err);
        ck_assert_msg(r >= 0, "%s", err.text);
        engine_stats(engine, &stats);
        *most = stats.blocks_held[g] > *most ? stats.blocks_held[g] : *most;
    } while (r == 1);
}

/* Compares as far as the answer goes: an end id ends it, and not the one without an engine. */
static void check_answer(const struct answer *answer, const int32_t *expected)
{
    ck_assert_uint_gt(answer->n, 60);
    ck_assert_mem_eq(answer->ids, expected, answer->n * sizeof *expected);
}

START_TEST(a_long_answer_holds_a_window_of_the_layers_that_have_one)
{
    static const struct {
        const char *architecture;
        uint32_t n_layers, n_groups;
    } models[] = {{"gemma2", 4, 2}, {"gemma3", 7, 2}, {"phi3", 2, 1}};
    static struct answer answer;
    static int32_t ids[N_PROMPT + N_OUTPUT];
    const struct backend_config config = {.n_slots = 1, .n_context = CONTEXT, .max_rows = ROWS};
    struct model *model = make_windowed(models[_i].architecture, models[_i].n_layers);
    const uint32_t windowed = models[_i].n_groups - 1;
    make_prompt(ids, N_PROMPT);
    generate_alone(model, ids, N_OUTPUT);
    struct engine *engine = start(model, config, &answer);
    const struct backend_info *info = engine_backend_info(engine);
    ck_assert_uint_eq(info->n_groups, models[_i].n_groups);
    ck_assert_uint_eq(info->groups[windowed].window, WINDOW);
    uint32_t most;
    ask(engine, &answer, ids, N_PROMPT, N_OUTPUT, windowed, &most);
    check_answer(&answer, ids + N_PROMPT);
    const uint32_t held = backend_held_blocks(&info->groups[windowed], CONTEXT);
    ck_assert_uint_eq(held, 4);
    const uint32_t ahead = backend_blocks_for(info->most_flights * ROWS); /* while the prompt is read */
    ck_assert_uint_le(most, held + ahead);
    ck_assert_uint_eq(info->groups[windowed].n_blocks, held + ahead);
    if (windowed > 0)
        ck_assert_uint_eq(info->groups[0].n_blocks, CONTEXT / 32);
    /* Once more, what was said included: its end is found, of which the windowed group has the window. */
    static int32_t longer[N_PROMPT + N_OUTPUT];
    const uint32_t n = N_PROMPT + answer.n - 40;
    memcpy(longer, ids, sizeof longer);
    ask(engine, &answer, longer, n, 30, windowed, &most);
    ck_assert_mem_eq(answer.ids, ids + n, answer.n * sizeof *ids);
    engine_free(engine);
    model_free(model);
}
END_TEST

/* As many blocks as one sequence has to hold of it, and not one more, whatever it becomes. */
START_TEST(a_windowed_group_is_never_too_small_for_one)
{
    static struct answer answer;
    static int32_t ids[N_PROMPT + N_OUTPUT];
    struct model *model = make_windowed("phi3", 2);
    make_prompt(ids, N_PROMPT);
    generate_alone(model, ids, N_OUTPUT);
    for (uint32_t n_blocks = 3; n_blocks <= 5; n_blocks++) {
        const struct backend_config config = {
            .n_slots = 2, .n_context = CONTEXT, .n_blocks = n_blocks, .max_rows = ROWS};
        struct engine *engine = start(model, config, &answer);
        struct error err = {0};
        uint32_t most;
        if (n_blocks == 3) { /* one too few: it may be as long as those are, and no longer */
            const struct engine_request request = {
                .tag = 1, .prompt = ids, .n_prompt = 90, .max_tokens = 7, .sampling = SAMPLING_GREEDY};
            ck_assert_uint_eq(engine_max_tokens_in_cache(engine), 96);
            ck_assert_int_eq(engine_submit(engine, &request, &err), ENGINE_E_TOO_LONG);
            ask(engine, &answer, ids, 90, 6, 0, &most);
            ck_assert_int_ne(answer.end, ENGINE_RUNNING);
        } else {
            ck_assert_uint_eq(engine_max_tokens_in_cache(engine), UINT32_MAX);
            ask(engine, &answer, ids, N_PROMPT, N_OUTPUT, 0, &most);
            check_answer(&answer, ids + N_PROMPT);
        }
        engine_free(engine);
    }
    model_free(model);
}
END_TEST

/* Two prompts in turn: of each the windowed group keeps the end, until others have needed all of it. */
START_TEST(a_conversation_goes_on_where_it_ended)
{
    static struct answer answer;
    static int32_t one[N_PROMPT + 40], other[N_PROMPT];
    struct model *model = make_windowed("gemma2", 4);
    const struct backend_config config = {.n_slots = 2, .n_context = CONTEXT, .max_rows = ROWS};
    struct engine *engine = start(model, config, &answer);
    uint32_t most;
    make_prompt(one, N_PROMPT);
    generate_alone(model, one, 40);
    memcpy(other, one + 7, sizeof other);
    ask(engine, &answer, one, N_PROMPT, 20, 1, &most);
    ask(engine, &answer, other, N_PROMPT, 5, 1, &most);
    ck_assert_uint_eq(answer.totals.n_cached, 0);
    ask(engine, &answer, one, N_PROMPT + 20, 20, 1, &most);
    ck_assert_uint_eq(answer.totals.n_cached, N_PROMPT + 19); /* its last block is a copy */
    ck_assert_mem_eq(answer.ids, one + N_PROMPT + 20, answer.n * sizeof *one);
    /* Its beginning is there for layers that see everything, and gone for the others. */
    ask(engine, &answer, one, 100, 5, 1, &most);
    ck_assert_uint_lt(answer.totals.n_cached, 96);
    ask(engine, &answer, one, 100, 5, 1, &most);
    ck_assert_uint_eq(answer.totals.n_cached, 96);
    ask(engine, &answer, one, N_PROMPT + 20, 20, 1, &most); /* and the end still is */
    ck_assert_mem_eq(answer.ids, one + N_PROMPT + 20, answer.n * sizeof *one);
    engine_free(engine);
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, layers_with_an_equal_window_are_a_group_and_the_widest_is_the_first);
    tcase_add_test(tests, a_sequence_holds_no_more_of_a_group_than_it_is_said_to);
    tcase_add_loop_test(tests, a_long_answer_holds_a_window_of_the_layers_that_have_one, 0, 3);
    tcase_add_test(tests, a_windowed_group_is_never_too_small_for_one);
    tcase_add_test(tests, a_conversation_goes_on_where_it_ended);
}

int main(void)
{
    return run_tests("windows", add);
}
