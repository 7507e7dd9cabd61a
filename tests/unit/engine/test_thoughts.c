/* SPDX-License-Identifier: MIT */
/* Budgets for thoughts on the fake backend, whose ids are letters from a to f: what comes out is what a plain
 * reading of the rules in thought.h gives, whatever happens around the sequence. */

#include "tests/unit/engine/harness.h"
#include "engine/thought.h"
#include "model/model.h"
#include "text/dialect/dialect.h"
#include "text/grammar/grammar.h"

#define N 72

static const int32_t end_ids[] = {'!', 'b', 'c', '\n'}, again_ids[] = {'b', 'c'}, marks[] = {FAKE_END};
static struct model_dialect whole, parted; /* an answer is text; or parts, of which any may be a thought */
static struct engine_thinking thinkings[N];

static void setup(void)
{
    struct error err = {0};
    dialect_init(&whole);
    dialect_init(&parted);
    ck_assert_int_eq(
        dialect_read(BYTES_LITERAL("{\"thoughts\": {\"open\": \"a\", \"close\": \"bc\"}}"), &whole, &err), 0);
    ck_assert_int_eq(dialect_read(BYTES_LITERAL("{\"thoughts\": {\"open\": \"a\", \"close\": \"bc\"},"
                                                " \"content\": {\"close\": \"f\"}}"),
                                  &parted, &err),
                     0);
}

static void teardown(void)
{
    dialect_deinit(&whole);
    dialect_deinit(&parted);
}

/* Budgets of all kinds, for prompts that open a thought and others; some requests have none. */
static struct engine_request mixed(uint64_t tag)
{
    static const uint32_t budgets[] = {0, 1, 2, 3, 7, 20, 5000};
    struct engine_request request =
        request_of(tag, 5 + (uint32_t)tag * 17 % 90, 60 + (uint32_t)tag * 29 % 100);
    thinkings[tag] = (struct engine_thinking){.budget = budgets[tag % 7],
                                              .inside = tag % 3 == 0,
                                              .end = end_ids,
                                              .n_end = 4,
                                              .again = again_ids,
                                              .n_again = 2,
                                              .dialect = tag % 2 ? &parted : &whole,
                                              .marks = marks,
                                              .n_marks = 1};
    request.thinking = tag % 8 == 7 ? NULL : &thinkings[tag];
    return request;
}

/* ---- what the rules say ---- */

struct reading {
    enum { BEGINS, THINKS, SPEAKS } place;
    bool after_b, ended;
    uint32_t used;
    const int32_t *forced; /* [n_forced] still to come */
    uint32_t n_forced;
};

static void read_id(struct reading *reading, const struct engine_thinking *thinking, int32_t id)
{
    const bool thought = reading->place == THINKS, forced = reading->n_forced > 0;
    if (thought && reading->after_b && id == 'c')
        reading->place = BEGINS;
    else if (!thought && id == 'f' && thinking->dialect == &parted)
        reading->place = BEGINS;
    else if (reading->place == BEGINS && id != '\n')
        reading->place = id == 'a' ? THINKS : SPEAKS;
    reading->after_b = reading->place == THINKS && id == 'b';
    if (forced) {
        ck_assert_int_eq(id, *reading->forced);
        reading->forced++;
        reading->ended |= --reading->n_forced == 0;
        return;
    }
    reading->used += thought;
    if (reading->place == THINKS && reading->used >= thinking->budget) {
        reading->forced = reading->ended ? again_ids : end_ids;
        reading->n_forced = reading->ended ? 2 : 4;
    }
}

/* The ids that a request has to make. Returns how many of them were forced. */
static uint32_t expected(const struct engine_request *request, struct ids *ret_ids)
{
    const struct engine_thinking *thinking = request->thinking;
    struct reading reading = {.place = thinking && thinking->inside ? THINKS : BEGINS};
    uint32_t n_forced = 0;
    int32_t all[512];
    memcpy(all, request->prompt, request->n_prompt * sizeof *all);
    if (reading.place == THINKS && thinking->budget == 0)
        reading.forced = end_ids, reading.n_forced = 4;
    for (uint32_t n = 0; n < request->max_tokens; n++) {
        int32_t id = fake_next(request->sampling.seed, all, request->n_prompt + n);
        n_forced += reading.n_forced > 0;
        if (reading.n_forced > 0)
            id = *reading.forced;
        ids_push(ret_ids, id);
        all[request->n_prompt + n] = id;
        if (id == FAKE_END)
            break;
        if (thinking)
            read_id(&reading, thinking, id);
    }
    return n_forced;
}

static void check(const struct harness *h, const struct engine_request *request)
{
    const struct outcome *o = &h->outcomes[request->tag];
    struct ids ids = {0};
    expected(request, &ids);
    ck_assert(o->end == ENGINE_END_STOP || o->end == ENGINE_END_LENGTH);
    for (size_t i = 0; i < o->ids.len; i++)
        ck_assert_msg(o->n_before + i < ids.len && o->ids.data[i] == ids.data[o->n_before + i],
                      "tag %u: output %zu is %d", (unsigned)request->tag, o->n_before + i, o->ids.data[i]);
    ck_assert_uint_eq(o->n_before + o->ids.len, ids.len);
    ids_deinit(&ids);
}

/* ---- the engine ---- */

START_TEST(a_thought_is_ended_at_its_budget_in_every_company)
{
    uint32_t n_forced = 0;
    for (uint64_t tag = 0; tag < N; tag++) {
        const struct engine_request request = mixed(tag);
        struct ids ids = {0};
        n_forced += expected(&request, &ids);
        ids_deinit(&ids);
    }
    ck_assert_uint_gt(n_forced, 100); /* enough happens */
    for (int i = 0; i < 8; i++) {
        const uint32_t n_blocks = i % 4 < 2 ? 0 : 8; /* few: they push one another out */
        fake_script =
            (struct fake_script){.asynchronous = i % 2, .again = i % 2, .abandon_at = i < 4 ? 0 : 20};
        struct harness *h =
            harness_new(&(struct backend_config){.n_slots = 12, .n_context = 512, .n_blocks = n_blocks}, 0);
        struct engine_stats stats;
        for (uint64_t tag = 0; tag < N; tag++) {
            struct engine_request request = mixed(tag);
            submit(h, &request);
        }
        run_dry(h);
        engine_stats(h->engine, &stats);
        ck_assert(n_blocks == 0 || stats.preemptions > 0);
        for (uint64_t tag = 0; tag < N; tag++) {
            const struct engine_request request = mixed(tag);
            check(h, &request);
        }
        check_idle(h);
        harness_free(h);
    }
}
END_TEST

START_TEST(a_resumed_answer_is_ended_where_it_would_have_been)
{
    for (uint64_t tag = 0; tag < N; tag++) {
        struct engine_request request = mixed(tag);
        struct ids ids = {0};
        expected(&request, &ids);
        for (uint32_t n = 0; n <= ids.len; n += test_is_scaled() ? 7 : 1 + n / 9) {
            fake_script = (struct fake_script){.asynchronous = n % 2};
            struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
            request.output = ids.data;
            request.n_output = h->outcomes[tag].n_before = n;
            submit(h, &request);
            run_dry(h);
            check(h, &request);
            harness_free(h);
        }
        ids_deinit(&ids);
    }
}
END_TEST

/* Drafts that are right for a while, as far as ids are not forced. */
static uint32_t draft(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    int32_t all[512];
    memcpy(all, ids, n * sizeof *all);
    for (uint32_t i = 0; i < most; i++)
        all[n + i] = ret_draft[i] = fake_next(*(uint64_t *)arg, all, n + i);
    return most;
}

START_TEST(drafts_do_not_go_beyond_a_budget)
{
    for (uint64_t tag = 0; tag < N; tag++) {
        struct engine_request request = mixed(tag);
        struct error err = {0};
        struct harness *h = calloc(1, sizeof *h);
        const struct engine_config config = {.model = &fake_model,
                                             .backend = &backend_fake,
                                             .draft = draft,
                                             .draft_arg = &request.sampling.seed,
                                             .most_draft = 1 + (uint32_t)tag % 6,
                                             .backend_config = {.n_slots = 4}};
        fake_script = (struct fake_script){.asynchronous = tag % 2};
        ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, &err), 0);
        submit(h, &request);
        run_dry(h);
        check(h, &request);
        if (!request.thinking && h->outcomes[tag].ids.len > 9) /* drafts were taken */
            ck_assert_uint_lt(fake_script.steps, h->outcomes[tag].ids.len);
        harness_free(h);
    }
}
END_TEST

START_TEST(a_sequence_runs_ahead_as_far_as_its_budget_is_not_used_up)
{
    /* Far from its end; at it all the time, as the model opens one thought after the other; in the text. */
    static const struct {
        uint32_t budget, most_ahead;
    } cases[] = {{5000, 2}, {0, 1}};
    for (size_t i = 0; i < 2; i++) {
        struct engine_request request = mixed(0);
        thinkings[0].budget = cases[i].budget;
        request.max_tokens = i == 0 ? 40 : 4;
        request.sampling.seed = lasting_seed(&request, request.max_tokens);
        fake_script = (struct fake_script){.asynchronous = true};
        struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
        submit(h, &request);
        run_dry(h);
        check(h, &request);
        ck_assert_uint_eq(fake_script.most_ahead, cases[i].most_ahead);
        harness_free(h);
    }
}
END_TEST

static struct grammar *grammar_of(const char *text)
{
    struct grammar *grammar;
    struct error err = {0};
    ck_assert_int_eq(grammar_make(GRAMMAR_GBNF, bytes_of_string(text), &grammar, &err), 0);
    return grammar;
}

START_TEST(a_grammar_that_has_the_end_of_a_thought_goes_on_behind_it)
{
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        struct engine_request request = mixed(0);
        thinkings[0].budget = 6;
        request.grammar = grammar_of("root ::= [d-f!]* \"bc\" \"\\n\"? \"{\" [a-f]{5} \"}\"");
        fake_script = (struct fake_script){.asynchronous = asynchronous};
        struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
        submit(h, &request);
        grammar_free(request.grammar);
        run_dry(h);
        const struct outcome *o = &h->outcomes[0];
        ck_assert_int_eq(o->end, ENGINE_END_STOP);
        const char *bracket = memchr(o->text.data, '{', o->text.len);
        const size_t thought = (size_t)(bracket - (const char *)o->text.data);
        ck_assert(thought == 6 + 4 ? memcmp(bracket - 4, "!bc\n", 4) == 0 : thought < 6 + 4);
        ck_assert_uint_eq(o->text.len, thought + 7);
        harness_free(h);
    }
}
END_TEST

START_TEST(a_grammar_that_forbids_it_ends_the_request_with_the_reason)
{
    struct engine_request request = mixed(0);
    thinkings[0].budget = 6;
    request.grammar = grammar_of("root ::= [d-f]{20}");
    fake_script = (struct fake_script){.asynchronous = true};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
    submit(h, &request);
    grammar_free(request.grammar);
    run_dry(h);
    ck_assert_int_eq(h->outcomes[0].end, ENGINE_END_INVALID);
    ck_assert_msg(strstr(h->outcomes[0].fault, "thinking_budget: the grammar does not allow"), "%s",
                  h->outcomes[0].fault);
    ck_assert_uint_eq(h->outcomes[0].ids.len, 6);
    check_idle(h);
    harness_free(h);
}
END_TEST

/* ---- the reading of a thought ---- */

static struct thought *thought_of(uint32_t budget, bool inside)
{
    struct thought *thought;
    const struct engine_thinking thinking = {.budget = budget,
                                             .inside = inside,
                                             .end = end_ids,
                                             .n_end = 4,
                                             .again = again_ids,
                                             .n_again = 2,
                                             .dialect = &whole};
    ck_assert_int_eq(thought_new(&thinking, FAKE_VOCAB, &thought), 0);
    return thought;
}

static void take(struct thought *thought, const char *text)
{
    for (; *text; text++)
        ck_assert_int_eq(thought_take(thought, fake_model.tokenizer, (uint8_t)*text), 0);
}

START_TEST(an_end_that_the_model_has_begun_is_forced_as_a_whole)
{
    struct thought *thought = thought_of(3, true);
    take(thought, "ddb"); /* and a b, with which the mark begins */
    for (size_t i = 0; i < 4; i++) {
        ck_assert_uint_eq(thought_free_ids(thought), 0);
        ck_assert_int_eq(thought_forced(thought), end_ids[i]);
        const uint32_t *mask = thought_mask(thought, NULL);
        for (int32_t id = 0; id < FAKE_VOCAB; id++)
            ck_assert_int_eq(mask[id / 32] >> id % 32 & 1, id == end_ids[i]);
        ck_assert_int_eq(thought_take(thought, fake_model.tokenizer, end_ids[i]), 0);
    }
    ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
    take(thought, "d");
    ck_assert_uint_eq(thought_free_ids(thought), UINT32_MAX); /* text: no thought can follow */
    thought_free(thought);
    /* One that it completes with the last id of the budget needs none. */
    thought = thought_of(4, true);
    take(thought, "ddbc");
    ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
    thought_free(thought);
}
END_TEST

START_TEST(a_thought_ends_behind_a_whole_character)
{
    struct thought *thought = thought_of(2, true);
    take(thought, "d\xf0"); /* used up, in the middle of one of four bytes */
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
        ck_assert_uint_eq(thought_free_ids(thought), 1);
        take(thought, (const char *[]){"\x9f", "\x98", "\x80"}[i]);
    }
    ck_assert_int_eq(thought_forced(thought), '!');
    thought_free(thought);
    /* Three ids that add nothing to it are all it waits for. */
    thought = thought_of(1, true);
    take(thought, "\xe2");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
        ck_assert_int_eq(thought_take(thought, fake_model.tokenizer, FAKE_END), 0);
    }
    ck_assert_int_eq(thought_forced(thought), '!');
    thought_free(thought);
}
END_TEST

START_TEST(a_thought_that_never_opens_costs_nothing)
{
    struct thought *thought = thought_of(0, false);
    ck_assert_uint_eq(thought_free_ids(thought), 1); /* the first id may open one */
    take(thought, "dabca");
    ck_assert_uint_eq(thought_free_ids(thought), UINT32_MAX);
    thought_free(thought);
}
END_TEST

START_TEST(another_thought_is_closed_at_once_behind_a_forced_end)
{
    struct thought *thought = thought_of(0, true);
    take(thought, "!bc\n");
    ck_assert_uint_eq(thought_free_ids(thought), 1);
    take(thought, "a");
    ck_assert_int_eq(thought_forced(thought), 'b');
    take(thought, "b");
    ck_assert_int_eq(thought_forced(thought), 'c');
    take(thought, "cd");
    ck_assert_uint_eq(thought_free_ids(thought), UINT32_MAX);
    thought_free(thought);
}
END_TEST

START_TEST(ids_that_close_nothing_are_forced_once)
{
    static const int32_t other[] = {'!'};
    struct thought *thought;
    const struct engine_thinking thinking = {.budget = 1,
                                             .inside = true,
                                             .end = other,
                                             .n_end = 1,
                                             .again = other,
                                             .n_again = 1,
                                             .dialect = &whole};
    ck_assert_int_eq(thought_new(&thinking, FAKE_VOCAB, &thought), 0);
    take(thought, "d!");
    ck_assert_uint_eq(thought_free_ids(thought), UINT32_MAX);
    take(thought, "dddd");
    ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
    thought_free(thought);
}
END_TEST

/* A mark that closes a part and opens a thought with one id: the next was perhaps sampled beside it. */
START_TEST(a_thought_that_opens_in_the_text_has_an_id_that_is_free)
{
    struct model_dialect odd;
    struct thought *thought;
    struct error err = {0};
    dialect_init(&odd);
    ck_assert_int_eq(dialect_read(BYTES_LITERAL("{\"thoughts\": {\"open\": \">\", \"close\": \"bc\"},"
                                                " \"content\": {\"close\": \"<end\"}}"),
                                  &odd, &err),
                     0);
    const struct engine_thinking thinking = {.end = end_ids,
                                             .n_end = 4,
                                             .again = again_ids,
                                             .n_again = 2,
                                             .dialect = &odd,
                                             .marks = marks,
                                             .n_marks = 1};
    ck_assert_int_eq(thought_new(&thinking, FAKE_VOCAB, &thought), 0);
    take(thought, "d");
    ck_assert_uint_eq(thought_free_ids(thought), 2);
    ck_assert_int_eq(thought_take(thought, fake_model.tokenizer, FAKE_END), 0);
    ck_assert_int_eq(thought_forced(thought), TOKENIZER_NONE);
    ck_assert_uint_eq(thought_free_ids(thought), 1);
    take(thought, "d");
    ck_assert_int_eq(thought_forced(thought), '!');
    thought_free(thought);
    dialect_deinit(&odd);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, setup, teardown);
    tcase_add_test(tests, a_thought_is_ended_at_its_budget_in_every_company);
    tcase_add_test(tests, a_resumed_answer_is_ended_where_it_would_have_been);
    tcase_add_test(tests, drafts_do_not_go_beyond_a_budget);
    tcase_add_test(tests, a_sequence_runs_ahead_as_far_as_its_budget_is_not_used_up);
    tcase_add_test(tests, a_grammar_that_has_the_end_of_a_thought_goes_on_behind_it);
    tcase_add_test(tests, a_grammar_that_forbids_it_ends_the_request_with_the_reason);
    tcase_add_test(tests, an_end_that_the_model_has_begun_is_forced_as_a_whole);
    tcase_add_test(tests, a_thought_ends_behind_a_whole_character);
    tcase_add_test(tests, a_thought_that_never_opens_costs_nothing);
    tcase_add_test(tests, another_thought_is_closed_at_once_behind_a_forced_end);
    tcase_add_test(tests, ids_that_close_nothing_are_forced_once);
    tcase_add_test(tests, a_thought_that_opens_in_the_text_has_an_id_that_is_free);
}

int main(void)
{
    return run_tests("thoughts", add);
}
