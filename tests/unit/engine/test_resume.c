/* SPDX-License-Identifier: MIT */
/* Answers that are made in pieces: resumed where another worker left off, and several ids a step from drafts.
 * Whatever the pieces, ids and text are those of an undisturbed run. */

#include "tests/unit/engine/harness.h"

static bool memory_ends; /* at the next realloc, and then there is some again */

void *__real_realloc(void *data, size_t size);
void *__wrap_realloc(void *data, size_t size);
void *__wrap_realloc(void *data, size_t size)
{
    if (!memory_ends)
        return __real_realloc(data, size);
    memory_ends = false;
    return NULL;
}

static const struct bytes stops[] = {BYTES_LITERAL("abcdab"), BYTES_LITERAL("ff"), BYTES_LITERAL("cbe")};

static struct engine_request stopping(uint64_t seed)
{
    struct engine_request request = request_of(1, 20, 60);
    request.sampling.seed = seed;
    request.stop = stops;
    request.n_stop = 3;
    return request;
}

static struct harness *start(int asynchronous)
{
    fake_script = (struct fake_script){.asynchronous = asynchronous, .again = asynchronous ? 1 : 0};
    return harness_new(&(struct backend_config){.n_slots = 4}, 0);
}

/* Runs the request until it has made n ids or ended; then it goes elsewhere. True when it had not ended. */
static bool run_part(struct harness *h, const struct engine_request *request, size_t n)
{
    struct error err;
    const struct outcome *o = &h->outcomes[request->tag];
    submit(h, request);
    while (o->ids.len < n && o->end == ENGINE_RUNNING)
        ck_assert_int_ge(engine_step(h->engine, &err), 0);
    return o->end == ENGINE_RUNNING;
}

/* Resumes on another engine behind `n` ids and `offset` bytes, as a worker does: what came out together is
 * the whole answer. */
static void check_rest(int asynchronous, const struct engine_request *request, const struct ids *ids,
                       const struct buffer *text, uint32_t n, size_t offset)
{
    struct harness *h = start(asynchronous);
    struct engine_request rest = *request;
    struct outcome *o = &h->outcomes[rest.tag];
    rest.output = ids->data;
    rest.n_output = o->n_before = n;
    rest.text_offset = offset;
    submit(h, &rest);
    run_dry(h);
    check_idle(h);
    struct ids all = {0};
    struct buffer whole = {0};
    ids_append(&all, ids->data, n);
    ids_append(&all, o->ids.data, o->ids.len);
    buffer_append(&whole, text->data, offset);
    buffer_append(&whole, o->text.data, o->text.len);
    ids_deinit(&o->ids);
    buffer_deinit(&o->text);
    o->ids = all;
    o->text = whole;
    check_outcome(h, request);
    ck_assert(o->end == ENGINE_END_STOP || o->end == ENGINE_END_LENGTH);
    harness_free(h);
}

START_TEST(a_resumed_answer_is_the_undisturbed_one_wherever_it_was_cut)
{
    int withheld = 0, cuts = 0;
    for (uint64_t seed = 1; seed <= 12; seed++)
        for (uint32_t n = 0; n < 60; n++) {
            struct harness *h = start(_i);
            struct engine_request request = stopping(seed);
            const struct outcome *o = &h->outcomes[1];
            bool runs = run_part(h, &request, n);
            if (runs) {
                ck_assert_uint_eq(o->ids.len, n);
                withheld += o->text.len < n; /* cut inside what may become a stop string */
                cuts++;
                check_rest(_i, &request, &o->ids, &o->text, n, o->text.len);
                if (o->text.len > 0) /* the last frame was cut in two, and its end is lost */
                    check_rest(_i, &request, &o->ids, &o->text, n, o->text.len / 2);
            }
            harness_free(h);
            if (!runs)
                break;
        }
    ck_assert_int_gt(cuts, 100);
    ck_assert_int_gt(withheld, 20);
}
END_TEST

START_TEST(a_least_number_of_tokens_holds_wherever_the_answer_was_cut)
{
    int later = 0;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        struct engine_request request = stopping(seed);
        struct harness *h = start(_i);
        ck_assert(!run_part(h, &request, 100));
        const uint32_t plain = (uint32_t)h->outcomes[1].ids.len;
        harness_free(h);
        for (request.min_tokens = 1; request.min_tokens <= 50; request.min_tokens += 7) {
            h = start(_i);
            const struct outcome *o = &h->outcomes[1];
            const bool runs = run_part(h, &request, request.min_tokens);
            if (runs)
                check_rest(_i, &request, &o->ids, &o->text, (uint32_t)o->ids.len, o->text.len);
            run_dry(h);
            check_outcome(h, &request);
            ck_assert_uint_ge(o->ids.len, request.min_tokens);
            later += plain < 60 && o->ids.len > plain;
            harness_free(h);
        }
    }
    ck_assert_int_gt(later, 20);
}
END_TEST

START_TEST(an_answer_that_lacks_its_end_only_gets_it_at_once)
{
    int ends[2] = {0};
    for (uint64_t seed = 1; seed <= 30; seed++) {
        struct harness *h = start(_i);
        struct engine_request request = stopping(seed);
        request.max_tokens = 15;
        const struct outcome *o = &h->outcomes[1];
        ck_assert(!run_part(h, &request, 100));
        ends[o->end == ENGINE_END_STOP]++;
        check_rest(_i, &request, &o->ids, &o->text, (uint32_t)o->ids.len, o->text.len);
        check_rest(_i, &request, &o->ids, &o->text, (uint32_t)o->ids.len, 0);
        ck_assert_uint_eq(fake_script.steps, 0);
        harness_free(h);
    }
    ck_assert(ends[0] > 2 && ends[1] > 2);
}
END_TEST

/* Of "xab", "ab" is held back: it may become a stop string. Without memory for the "x" an end has no text at
 * all, for "ab" would be taken for what comes first. */
START_TEST(an_end_has_no_text_behind_a_gap)
{
    static const int32_t output[] = {'x', 'a', 'b'};
    for (int without = 0; without < 2; without++) {
        struct error err;
        struct harness *h = start(_i);
        struct engine_request request = stopping(1);
        struct outcome *o = &h->outcomes[1];
        request.output = output;
        request.n_output = o->n_before = 3;
        submit(h, &request);
        ck_assert(engine_cancel(h->engine, 1));
        memory_ends = without;
        ck_assert_int_ge(engine_step(h->engine, &err), 0);
        ck_assert(!memory_ends);
        ck_assert_int_eq(o->end, ENGINE_END_CANCELLED);
        ck_assert_uint_eq(o->text.len, (without ? 0u : 3u));
        ck_assert(without || memcmp(o->text.data, "xab", 3) == 0);
        harness_free(h);
    }
}
END_TEST

START_TEST(a_resumed_request_goes_before_newcomers)
{
    fake_script = (struct fake_script){.asynchronous = _i};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 1}, 0);
    const int32_t output[] = {'a'};
    for (uint64_t tag = 1; tag <= 3; tag++) {
        struct engine_request request = request_of(tag, 8, 4);
        if (tag < 3)
            request.deadline_ns = UINT64_MAX;
        else
            request.output = output, request.n_output = h->outcomes[3].n_before = 1, request.text_offset = 1;
        submit(h, &request);
    }
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[3].ended_as, 1);
    harness_free(h);
}
END_TEST

START_TEST(outputs_that_contradict_the_request_are_refused_by_name)
{
    struct harness *h = start(0);
    const int32_t on_and_on[] = {'a', FAKE_END, 'b'}, beyond[] = {'a', FAKE_VOCAB}, wide[] = {0xc3, 0xa9};
    const struct {
        const char *name;
        const int32_t *output;
        uint32_t n;
        uint64_t offset;
    } cases[] = {{"output[2]", on_and_on, 3, 0},
                 {"output[1]", beyond, 2, 0},
                 {"max_tokens (2)", on_and_on, 3, 0},
                 {"off is 2", on_and_on, 1, 2},
                 {"off is 1", NULL, 0, 1},
                 {"off is 1, inside a character", wide, 2, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct engine_request request = request_of(1, 5, i == 2 ? 2 : 10);
        struct error err = {0};
        request.output = cases[i].output;
        request.n_output = cases[i].n;
        request.text_offset = cases[i].offset;
        ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_INVALID);
        ck_assert_msg(strstr(err.text, cases[i].name) != NULL, "%s", err.text);
    }
    check_idle(h);
    harness_free(h);
}
END_TEST

/* ---- drafts ---- */

/* Knows the answer to what seed 4 asks, and is wrong now and then; its drafts are of every length. */
static uint32_t guess(void *arg, const int32_t *ids, uint32_t n, uint32_t most, int32_t *ret_draft)
{
    uint64_t *state = arg;
    int32_t all[512];
    memcpy(all, ids, n * sizeof *all);
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    uint32_t length = (uint32_t)(*state >> 33) % (most + 1);
    for (uint32_t i = 0; i < length; i++) {
        bool wrong = (*state >> (20 + i)) % 4 == 0;
        ret_draft[i] = all[n + i] = wrong ? 'z' : fake_next(4, all, n + i);
    }
    return length;
}

START_TEST(drafts_give_several_ids_a_step_and_change_none)
{
    for (uint64_t round = 0; round < 40; round++) {
        fake_script = (struct fake_script){
            .asynchronous = _i % 2, .again = _i % 2, .n_snapshots = _i < 2 ? 0 : 3 + (uint32_t)round % 5};
        uint64_t state = round;
        struct harness *h = calloc(1, sizeof *h);
        struct error err = {0};
        const struct engine_config config = {
            .model = &fake_model,
            .backend = &backend_fake,
            .most_cached = UINT32_MAX,
            .backend_config = {.n_slots = 5, .n_blocks = 12, .max_rows = 16, .n_context = 256},
            .draft = guess,
            .draft_arg = &state,
            .most_draft = 6};
        ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, &err), 0);
        fake_script.abandon_at = round % 2 ? round : 0;
        for (uint64_t tag = 1; tag <= 6; tag++) {
            struct engine_request request = request_of(tag, 10, 20 + 20 * (uint32_t)tag);
            request.sampling.seed = tag % 2 ? 4 : 15; /* and of seed 15 it knows nothing */
            if (tag > 3)
                request.stop = stops, request.n_stop = 3;
            submit(h, &request);
        }
        run_dry(h);
        uint64_t ids = 0;
        for (uint64_t tag = 1; tag <= 6; tag++) {
            struct engine_request request = request_of(tag, 10, 20 + 20 * (uint32_t)tag);
            request.sampling.seed = tag % 2 ? 4 : 15;
            if (tag > 3)
                request.stop = stops, request.n_stop = 3;
            check_outcome(h, &request);
            ids += h->outcomes[tag].ids.len;
        }
        ck_assert_uint_gt(ids, 50);
        check_idle(h);
        harness_free(h);
    }
}
END_TEST

START_TEST(right_drafts_save_steps)
{
    uint64_t steps[2];
    for (int with = 0; with < 2; with++) {
        fake_script = (struct fake_script){.asynchronous = _i % 2, .n_snapshots = _i < 2 ? 0 : 4};
        uint64_t state = 9;
        struct harness *h = calloc(1, sizeof *h);
        const struct engine_config config = {.model = &fake_model,
                                             .backend = &backend_fake,
                                             .most_cached = UINT32_MAX,
                                             .draft = with ? guess : NULL,
                                             .draft_arg = &state,
                                             .most_draft = 7};
        ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
        struct engine_request request = request_of(1, 10, 200);
        request.sampling.seed = 4;
        submit(h, &request);
        run_dry(h);
        check_outcome(h, &request);
        steps[with] = fake_script.steps;
        harness_free(h);
    }
    ck_assert_uint_lt(steps[1] * 3, steps[0] * 2);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_resumed_answer_is_the_undisturbed_one_wherever_it_was_cut, 0, 2);
    tcase_add_loop_test(tests, a_least_number_of_tokens_holds_wherever_the_answer_was_cut, 0, 2);
    tcase_add_loop_test(tests, an_answer_that_lacks_its_end_only_gets_it_at_once, 0, 2);
    tcase_add_loop_test(tests, an_end_has_no_text_behind_a_gap, 0, 2);
    tcase_add_loop_test(tests, a_resumed_request_goes_before_newcomers, 0, 2);
    tcase_add_test(tests, outputs_that_contradict_the_request_are_refused_by_name);
    tcase_add_loop_test(tests, drafts_give_several_ids_a_step_and_change_none, 0, 4);
    tcase_add_loop_test(tests, right_drafts_save_steps, 0, 4);
}

int main(void)
{
    return run_tests("resume", add);
}
