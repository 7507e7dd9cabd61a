/* SPDX-License-Identifier: MIT */
/* Sequences with a grammar on the fake backend, which asserts that they are not run ahead: what comes out is
 * of the grammar, and the same ids whatever happens around the sequence. */

#include "tests/unit/engine/harness.h"
#include "engine/sampling/masks.h"
#include "text/grammar/grammar.h"
#include "model/model.h"

#define N 12

static const char *const texts[] = {
    "root ::= \"<\" [a-f]{20,60} \">\" root?",
    "root ::= list\nlist ::= \"(\" (list | [a-z])* \")\"",
    "root ::= [a-c]{60,} \" é\" [0-9]+",
};

static struct grammar *grammar_of(enum grammar_kind kind, const char *text)
{
    struct grammar *grammar;
    struct error err = {0};
    int r = grammar_make(kind, bytes_of_string(text), &grammar, &err);
    ck_assert_msg(r == 0, "%s: %s", text, err.text);
    return grammar;
}

/* Requests of which some have a grammar, of lengths that cut some answers off. */
static struct engine_request mixed(uint64_t tag, struct grammar *const *grammars)
{
    struct engine_request request =
        request_of(tag, 5 + (uint32_t)tag * 17 % 90, 30 + (uint32_t)tag * 29 % 120);
    request.grammar = tag % 4 == 3 ? NULL : grammars[tag % 4];
    return request;
}

/* What the tags' answers are, each alone on an engine of its own. */
static void make_alone(struct outcome *ret_outcomes, struct grammar *const *grammars)
{
    fake_script = (struct fake_script){0};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 1}, 0);
    for (uint64_t tag = 0; tag < N; tag++) {
        struct engine_request request = mixed(tag, grammars);
        submit(h, &request);
        run_dry(h);
        ret_outcomes[tag] = h->outcomes[tag];
        h->outcomes[tag] = (struct outcome){0};
    }
    check_idle(h);
    harness_free(h);
}

static void check_same(const struct outcome *alone, const struct outcome *o)
{
    ck_assert_int_eq(alone->end, o->end);
    ck_assert_uint_eq(alone->ids.len, o->ids.len);
    ck_assert_mem_eq(alone->ids.data, o->ids.data, o->ids.len * sizeof *o->ids.data);
    ck_assert_uint_eq(alone->text.len, o->text.len);
    ck_assert_mem_eq(alone->text.data, o->text.data, o->text.len);
}

static void free_outcomes(struct outcome *outcomes, struct grammar **grammars)
{
    for (int i = 0; i < N; i++) {
        ids_deinit(&outcomes[i].ids);
        buffer_deinit(&outcomes[i].text);
    }
    for (int i = 0; i < 3; i++)
        grammar_free(grammars[i]);
}

static void make_grammars(struct grammar **ret_grammars)
{
    for (int i = 0; i < 3; i++)
        ret_grammars[i] = grammar_of(GRAMMAR_GBNF, texts[i]);
}

/* Whether the text is an answer, or with `part` the beginning of one. */
static bool is_answer(struct grammar *grammar, const struct buffer *text, bool part)
{
    struct grammar_answer *answer;
    struct error err = {0};
    ck_assert_int_eq(grammar_answer_new(grammar, &answer, &err), 0);
    int r = grammar_answer_take(answer, (struct bytes){text->data, text->len}, &err);
    bool is = r == 0 && (part || grammar_answer_may_end(answer));
    grammar_answer_free(answer);
    return is;
}

START_TEST(answers_are_of_their_grammar)
{
    struct grammar *grammars[3];
    struct outcome alone[N];
    int ends[2] = {0};
    make_grammars(grammars);
    make_alone(alone, grammars);
    for (uint64_t tag = 0; tag < N; tag++) {
        if (tag % 4 == 3)
            continue;
        bool stopped = alone[tag].end == ENGINE_END_STOP;
        struct buffer text = {0};
        for (size_t i = 0; i < alone[tag].ids.len - stopped; i++) {
            uint8_t byte = (uint8_t)alone[tag].ids.data[i];
            buffer_append(&text, &byte, 1);
        }
        ends[stopped]++;
        ck_assert(is_answer(grammars[tag % 4], &text, !stopped));
        ck_assert(!stopped || alone[tag].ids.data[alone[tag].ids.len - 1] == FAKE_END);
        buffer_deinit(&text);
    }
    ck_assert_int_gt(ends[0], 1);
    ck_assert_int_gt(ends[1], 1);
    free_outcomes(alone, grammars);
}
END_TEST

START_TEST(beside_others_and_after_preemption_the_ids_are_the_same)
{
    struct grammar *grammars[3];
    struct outcome alone[N];
    make_grammars(grammars);
    make_alone(alone, grammars);
    for (int i = 0; i < 8; i++) {
        uint32_t n_blocks = i % 4 < 2 ? 0 : 8; /* few: they push one another out */
        fake_script =
            (struct fake_script){.asynchronous = i % 2, .again = i % 2, .abandon_at = i < 4 ? 0 : 20};
        struct harness *h =
            harness_new(&(struct backend_config){.n_slots = 12, .n_context = 256, .n_blocks = n_blocks}, 0);
        struct engine_stats stats;
        for (uint64_t tag = 0; tag < N; tag++) {
            struct engine_request request = mixed(tag, grammars);
            submit(h, &request);
        }
        run_dry(h);
        engine_stats(h->engine, &stats);
        ck_assert(n_blocks == 0 || stats.preemptions > 0);
        for (uint64_t tag = 0; tag < N; tag++)
            check_same(&alone[tag], &h->outcomes[tag]);
        check_idle(h);
        harness_free(h);
    }
    free_outcomes(alone, grammars);
}
END_TEST

START_TEST(a_resumed_answer_goes_on_wherever_it_was_cut)
{
    struct grammar *grammars[3];
    struct outcome alone[N];
    make_grammars(grammars);
    make_alone(alone, grammars);
    for (uint64_t tag = 0; tag < N; tag++)
        for (uint32_t n = 0; n <= alone[tag].ids.len; n += 1 + n / 7) {
            fake_script = (struct fake_script){.asynchronous = n % 2};
            struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
            struct engine_request request = mixed(tag, grammars);
            struct outcome *o = &h->outcomes[tag];
            request.output = alone[tag].ids.data;
            request.n_output = o->n_before = n;
            submit(h, &request);
            run_dry(h);
            ck_assert_int_eq(o->end, alone[tag].end);
            ck_assert_uint_eq(o->n_before + o->ids.len, alone[tag].ids.len);
            ck_assert_mem_eq(o->ids.data, alone[tag].ids.data + n, o->ids.len * sizeof *o->ids.data);
            ck_assert_mem_eq(o->text.data, alone[tag].text.data, alone[tag].text.len);
            harness_free(h);
        }
    free_outcomes(alone, grammars);
}
END_TEST

static struct outcome *run_one(struct harness **ret_harness, struct engine_request *request,
                               enum grammar_kind kind, const char *text)
{
    fake_script = (struct fake_script){.asynchronous = true};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
    request->grammar = grammar_of(kind, text);
    submit(h, request);
    request->grammar = grammar_free(request->grammar); /* the sequence has its own reference */
    run_dry(h);
    check_idle(h);
    *ret_harness = h;
    return &h->outcomes[request->tag];
}

START_TEST(stop_strings_and_stop_ids_hold_beside_a_grammar)
{
    static const struct bytes stops[] = {BYTES_LITERAL("cd")};
    static const int32_t stop_ids[] = {'z'};
    struct harness *h;
    struct engine_request request = request_of(1, 9, 50);
    request.stop = stops;
    request.n_stop = 1;
    struct outcome *o = run_one(&h, &request, GRAMMAR_REGEX, "ab(cd){5}");
    ck_assert_int_eq(o->end, ENGINE_END_STOP);
    ck_assert_uint_eq(o->text.len, 2);
    harness_free(h);
    /* A stop id is allowed where the grammar ends, and there alone. */
    request = request_of(1, 9, 50);
    request.stop_ids = stop_ids;
    request.n_stop_ids = 1;
    o = run_one(&h, &request, GRAMMAR_REGEX, "[a-z]{7}");
    ck_assert_int_eq(o->end, ENGINE_END_STOP);
    ck_assert_uint_eq(o->text.len, 7);
    ck_assert_uint_eq(o->ids.len, 8);
    for (int i = 0; i < 7; i++)
        ck_assert_int_ne(o->ids.data[i], 'z');
    harness_free(h);
}
END_TEST

START_TEST(a_grammar_that_is_too_much_ends_its_request_with_the_reason)
{
    struct harness *h;
    struct engine_request request = request_of(1, 9, 200);
    struct outcome *o = run_one(&h, &request, GRAMMAR_GBNF,
                                "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"a\" root \"d\"");
    ck_assert_int_eq(o->end, ENGINE_END_INVALID);
    ck_assert_msg(strstr(o->fault, "the grammar is too complex"), "%s", o->fault);
    harness_free(h);
}
END_TEST

START_TEST(a_dead_end_is_named)
{
    struct harness *h;
    struct engine_request request = request_of(1, 9, 200);
    struct outcome *o = run_one(&h, &request, GRAMMAR_GBNF, "root ::= \"ab\" [^\\x00-\\U0010FFFF]");
    ck_assert_int_eq(o->end, ENGINE_END_FAULT);
    ck_assert_msg(strstr(o->fault, "no token of the model"), "%s", o->fault);
    harness_free(h);
}
END_TEST

START_TEST(cancelled_and_abandoned_ones_leave_nothing)
{
    struct grammar *grammar = grammar_of(GRAMMAR_JSON, "");
    for (int i = 0; i < 20; i++) {
        struct error err;
        fake_script = (struct fake_script){.asynchronous = i % 2};
        struct harness *h = harness_new(&(struct backend_config){.n_slots = 2}, 0);
        for (uint64_t tag = 0; tag < 4; tag++) {
            struct engine_request request = request_of(tag, 40, 2000);
            request.grammar = grammar;
            submit(h, &request);
        }
        for (int step = 0; step < i; step++)
            ck_assert_int_ge(engine_step(h->engine, &err), 0);
        for (uint64_t tag = 0; tag < 4; tag += 1 + (uint64_t)(i % 3))
            engine_cancel(h->engine, tag);
        if (i % 4 == 3) { /* freed in the middle of everything */
            harness_free(h);
            continue;
        }
        for (uint64_t tag = 0; tag < 4; tag++)
            engine_cancel(h->engine, tag);
        run_dry(h);
        check_idle(h);
        harness_free(h);
    }
    grammar_free(grammar);
}
END_TEST

static uint32_t draft(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    for (uint32_t i = 0; i < most; i++)
        ret_draft[i] = 'a';
    return most;
}

START_TEST(where_drafts_are_made_masked_ones_get_none)
{
    struct grammar *grammars[3];
    struct outcome alone[N];
    make_grammars(grammars);
    make_alone(alone, grammars);
    fake_script = (struct fake_script){0};
    struct harness *h = calloc(1, sizeof *h);
    struct error err = {0};
    const struct engine_config config = {.model = &fake_model,
                                         .backend = &backend_fake,
                                         .draft = draft,
                                         .most_draft = 3,
                                         .backend_config = {.n_slots = 4}};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, &err), 0);
    for (uint64_t tag = 0; tag < N; tag++) {
        struct engine_request request = mixed(tag, grammars);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 0; tag < N; tag++)
        check_same(&alone[tag], &h->outcomes[tag]);
    harness_free(h);
    free_outcomes(alone, grammars);
}
END_TEST

static bool allows(const struct mask *mask, int32_t id)
{
    mask_await((void *)mask);
    return mask_bits(mask)[id / 32] >> id % 32 & 1;
}

START_TEST(a_control_token_whose_name_is_text_is_allowed_where_that_text_is)
{
    static const int32_t spelled[] = {FAKE_END}, made[] = {'a', FAKE_END};
    for (size_t n = 0; n < 2; n++) {
        struct grammar *grammar = grammar_of(GRAMMAR_GBNF, "root ::= \"a\" (\"<end>\" | \"b\") \"c\"");
        struct masks *masks;
        struct mask *mask, *resumed;
        ck_assert_int_eq(masks_new(fake_model.tokenizer, FAKE_VOCAB, &masks), 0);
        ck_assert_int_eq(mask_new(masks, grammar, (struct ids_view){0}, (struct ids_view){spelled, n},
                                  (struct ids_view){0}, &mask),
                         0);
        ck_assert(allows(mask, 'a') && !allows(mask, FAKE_END));
        mask_take(mask, 'a');
        ck_assert(allows(mask, 'b') && allows(mask, '<') && !allows(mask, 'c'));
        ck_assert_int_eq(allows(mask, FAKE_END), n);
        if (n > 0) {
            mask_take(mask, FAKE_END);
            ck_assert(allows(mask, 'c') && !allows(mask, 'b') && !allows(mask, FAKE_END));
            /* The same where the answer goes on after another worker's. */
            ck_assert_int_eq(mask_new(masks, grammar, (struct ids_view){0}, (struct ids_view){spelled, n},
                                      (struct ids_view){made, 2}, &resumed),
                             0);
            ck_assert(allows(resumed, 'c') && !allows(resumed, 'b') && !allows(resumed, FAKE_END));
            mask_free(resumed);
        }
        mask_free(mask);
        masks_free(masks);
        grammar_free(grammar);
    }
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, a_control_token_whose_name_is_text_is_allowed_where_that_text_is);
    tcase_add_test(tests, answers_are_of_their_grammar);
    tcase_add_test(tests, beside_others_and_after_preemption_the_ids_are_the_same);
    tcase_add_test(tests, a_resumed_answer_goes_on_wherever_it_was_cut);
    tcase_add_test(tests, stop_strings_and_stop_ids_hold_beside_a_grammar);
    tcase_add_test(tests, a_grammar_that_is_too_much_ends_its_request_with_the_reason);
    tcase_add_test(tests, a_dead_end_is_named);
    tcase_add_test(tests, cancelled_and_abandoned_ones_leave_nothing);
    tcase_add_test(tests, where_drafts_are_made_masked_ones_get_none);
}

int main(void)
{
    return run_tests("grammars", add);
}
