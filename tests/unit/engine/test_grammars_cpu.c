/* SPDX-License-Identifier: MIT */
/* The demo model on the CPU, hot, with random schemas: what it says is always JSON, and valid; and the same
 * with one thread, with two, and beside others. */

#include "tests/unit/run.h"
#include "tests/unit/text/grammar/accepts.h"
#include "tests/unit/text/grammar/random_schema.h"
#include "tests/unit/text/grammar/validate.h"
#include "engine/engine.h"
#include "model/model.h"

#include <stdlib.h>
#include <string.h>

#define MOST_SCHEMAS 50
#define MOST         120

struct outcome {
    struct ids ids;
    struct buffer text;
    enum engine_end end;
};

static char *schemas[MOST_SCHEMAS];
static struct grammar *grammars[MOST_SCHEMAS];
static struct outcome outcomes[2][MOST_SCHEMAS];
static int n_schemas;

static void sink(void *arg, const struct engine_event *event)
{
    struct outcome *o = (struct outcome *)arg + event->tag;
    ids_append(&o->ids, event->ids, event->n_ids);
    buffer_append(&o->text, event->text.data, event->text.len);
    ck_assert(event->n_ids == 0 || event->n_logprobs == (event->tag % 3 ? 2 : 0));
    o->end = event->end;
}

static void submit(struct engine *engine, const struct model *model, uint64_t tag)
{
    struct error err = {0};
    struct ids prompt = {0};
    char text[64];
    snprintf(text, sizeof text, "Describe the thing number %d, please.", (int)tag);
    ck_assert_int_eq(
        tokenizer_encode(model->tokenizer, bytes_of_string(text), TOKENIZER_ADD_SPECIAL, &prompt), 0);
    const struct engine_request request = {.tag = tag,
                                           .prompt = prompt.data,
                                           .n_prompt = (uint32_t)prompt.len,
                                           .max_tokens = MOST,
                                           .sampling = {.temperature = 1.5f,
                                                        .top_p = 1,
                                                        SAMPLING_RARE_OFF,
                                                        .repetition_penalty = tag % 2 ? 1 : 1.1,
                                                        .frequency_penalty = tag % 4 ? 0 : 0.3,
                                                        .seed = tag * 7},
                                           .n_logprobs = tag % 3 ? 2 : 0,
                                           .grammar = grammars[tag]};
    int r = engine_submit(engine, &request, &err);
    ck_assert_msg(r == 0, "%d: %s", r, err.text);
    ids_deinit(&prompt);
}

static void run_all(const struct model *model, uint32_t n_slots, uint32_t n_threads,
                    struct outcome *ret_outcomes)
{
    struct engine *engine;
    struct error err = {0};
    int r;
    const struct engine_config config = {
        .model = model,
        .backend = &backend_cpu,
        .backend_config = {.n_slots = n_slots, .n_context = 256, .cpu = {.n_threads = n_threads}}};
    ck_assert_msg(engine_new(&config, sink, ret_outcomes, &engine, &err) == 0, "%s", err.text);
    for (uint64_t tag = 0; tag < (uint64_t)n_schemas; tag++)
        submit(engine, model, tag);
    while ((r = engine_step(engine, &err)) == 1)
        ;
    ck_assert_msg(r == 0, "%s", err.text);
    engine_free(engine);
}

static bool begins_answer(struct grammar *grammar, const struct buffer *text)
{
    struct grammar_answer *answer;
    struct error err;
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    int r = grammar_answer_take(answer, (struct bytes){text->data, text->len}, &err);
    grammar_answer_free(answer);
    return r == 0;
}

START_TEST(a_hot_model_says_what_its_schema_allows_and_nothing_else)
{
    struct model *model;
    struct error err = {0};
    int whole = 0;
    random_seed = 23;
    n_schemas = test_rounds(test_is_for_races() ? MOST_SCHEMAS / 2 : MOST_SCHEMAS);
    ck_assert_msg(model_open(DEMO_MODEL, true, &model, &err) == 0, "%s", err.text);
    for (int i = 0; i < n_schemas; i++) {
        json_t *schema = random_schema_root();
        schemas[i] = json_dumps(schema, 0);
        grammars[i] = grammar_of(GRAMMAR_SCHEMA, schemas[i]);
        json_decref(schema);
    }
    run_all(model, 8, 2, outcomes[0]);
    run_all(model, 3, 1, outcomes[1]);
    for (int i = 0; i < n_schemas; i++) {
        const struct outcome *o = &outcomes[0][i], *other = &outcomes[1][i];
        ck_assert(o->end == ENGINE_END_STOP || o->end == ENGINE_END_LENGTH);
        if (o->end == ENGINE_END_STOP)
            ck_assert_msg(validate_text(schemas[i], (const char *)o->text.data, o->text.len),
                          "%s\nmakes\n%.*s", schemas[i], (int)o->text.len, o->text.data);
        else if (o->text.len > 0 && memmem(o->text.data, o->text.len, "\xef\xbf\xbd", 3) == NULL)
            ck_assert_msg(begins_answer(grammars[i], &o->text), "%s\nbegins\n%.*s", schemas[i],
                          (int)o->text.len, o->text.data);
        whole += o->end == ENGINE_END_STOP;
        ck_assert_int_eq(o->end, other->end);
        ck_assert_uint_eq(o->ids.len, other->ids.len);
        ck_assert_mem_eq(o->ids.data, other->ids.data, o->ids.len * sizeof *o->ids.data);
    }
    ck_assert_int_gt(whole, n_schemas / 4); /* how many end in time is the model's doing */
    for (int i = 0; i < n_schemas; i++) {
        grammar_free(grammars[i]);
        free(schemas[i]);
        for (int j = 0; j < 2; j++) {
            ids_deinit(&outcomes[j][i].ids);
            buffer_deinit(&outcomes[j][i].text);
        }
    }
    model_free(model);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_hot_model_says_what_its_schema_allows_and_nothing_else);
}

int main(void)
{
    return run_tests("grammars on the CPU", add);
}
