/* SPDX-License-Identifier: MIT */
/* Every promise of engine.h, on the fake backend: synchronous, and asynchronous one step behind. */

#include "tests/unit/worker/engine/harness.h"

#include <errno.h>
#include <math.h>

#include "common/clock.h"

/* Loop tests run each case on both kinds of backend; the third and the fourth kind have a second group of KV
 * blocks, with a window, and little more of them than a sequence holds. */
static struct harness *start(int kind, struct backend_config backend)
{
    bool asynchronous = kind % 2 > 0;
    fake_script = (struct fake_script){.asynchronous = asynchronous, .again = asynchronous ? 1 : 0};
    if (kind >= 2)
        fake_script.window = 40, fake_script.window_blocks = 6;
    return harness_new(&backend, 0);
}

static struct engine_stats stats_of(const struct harness *h)
{
    struct engine_stats stats;
    engine_stats(h->engine, &stats);
    return stats;
}

START_TEST(a_request_gets_the_ids_and_the_text_of_the_model)
{
    struct harness *h = start(_i, (struct backend_config){0});
    for (uint64_t tag = 1; tag <= 40; tag++) {
        struct engine_request request = request_of(tag, 1 + (uint32_t)tag * 5, 60);
        submit(h, &request);
        run_dry(h);
        check_outcome(h, &request);
    }
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(requests_in_one_batch_do_not_touch_one_another)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 8, .max_rows = 64});
    for (uint64_t tag = 1; tag <= 100; tag++) {
        struct engine_request request =
            request_of(tag, 1 + (uint32_t)(tag * 37) % 300, 1 + (uint32_t)tag % 90);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 1; tag <= 100; tag++) {
        struct engine_request request =
            request_of(tag, 1 + (uint32_t)(tag * 37) % 300, 1 + (uint32_t)tag % 90);
        check_outcome(h, &request);
    }
    ck_assert_uint_le(fake_script.most_rows, 64);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(a_stop_string_ends_the_text_before_it)
{
    struct harness *h = start(_i, (struct backend_config){0});
    const struct bytes stop[] = {BYTES_LITERAL("abc"), BYTES_LITERAL("fe"), BYTES_LITERAL("ddd")};
    int stopped = 0;
    for (uint64_t tag = 1; tag <= 60; tag++) {
        struct engine_request request = request_of(tag, 10, 200);
        request.stop = stop;
        request.n_stop = 3;
        submit(h, &request);
        run_dry(h);
        check_outcome(h, &request);
        const struct outcome *o = &h->outcomes[tag];
        stopped += o->end == ENGINE_END_STOP && o->ids.data[o->ids.len - 1] != FAKE_END;
    }
    ck_assert_int_gt(stopped, 30);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(a_stop_id_ends_the_request_and_adds_no_text)
{
    struct harness *h = start(_i, (struct backend_config){0});
    const int32_t stop_id = 'c';
    for (uint64_t tag = 1; tag <= 20; tag++) {
        struct engine_request request = request_of(tag, 5, 300);
        request.stop_ids = &stop_id;
        request.n_stop_ids = 1;
        submit(h, &request);
        run_dry(h);
        const struct outcome *o = &h->outcomes[tag];
        ck_assert_int_eq(o->end, ENGINE_END_STOP);
        int32_t last = o->ids.data[o->ids.len - 1];
        ck_assert(last == 'c' || last == FAKE_END);
        ck_assert_uint_eq(o->text.len, o->ids.len - 1);
    }
    harness_free(h);
}
END_TEST

START_TEST(max_tokens_is_exact)
{
    struct harness *h = start(_i, (struct backend_config){0});
    int whole = 0;
    for (uint64_t tag = 1; tag <= 70; tag++) {
        struct engine_request request = request_of(tag, 31 + (uint32_t)tag % 3, 1 + (uint32_t)tag % 5);
        submit(h, &request);
        run_dry(h);
        const struct outcome *o = &h->outcomes[tag];
        if (o->end == ENGINE_END_LENGTH)
            ck_assert_uint_eq(o->ids.len, 1 + tag % 5);
        whole += o->end == ENGINE_END_LENGTH;
    }
    ck_assert_int_gt(whole, 50);
    harness_free(h);
}
END_TEST

START_TEST(what_exceeds_a_limit_is_refused_with_both_numbers)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 2, .n_context = 1000, .n_blocks = 20});
    struct error err = {0};
    struct engine_request request = request_of(1, 600, 401);
    ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(err.text, "1001"));
    ck_assert_ptr_nonnull(strstr(err.text, "1000"));
    request = request_of(1, 600, 41);
    ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_TOO_LONG);
    ck_assert_ptr_nonnull(strstr(err.text, "641"));
    ck_assert_ptr_nonnull(strstr(err.text, "640"));
    request = request_of(1, 4, UINT32_MAX);
    request.n_prompt = UINT32_MAX;
    ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_TOO_LONG);
    request = request_of(1, 600, 40); /* exactly all there is */
    submit(h, &request);
    run_dry(h);
    check_outcome(h, &request);
    harness_free(h);
}
END_TEST

START_TEST(a_value_out_of_range_is_refused_by_name)
{
    struct harness *h = start(0, (struct backend_config){0});
    const struct bytes empty = {0};
    const int32_t bad_id = FAKE_VOCAB;
    const struct logit_bias bias = {FAKE_VOCAB, 1};
    struct {
        const char *name;
        struct engine_request request;
    } cases[18];
    for (size_t i = 0; i < 18; i++)
        cases[i].request = request_of(1, 4, 4);
    size_t n = 0;
    cases[n].name = "temperature", cases[n++].request.sampling.temperature = -1;
    cases[n].name = "temperature", cases[n++].request.sampling.temperature = NAN;
    cases[n].name = "temperature", cases[n++].request.sampling.temperature = INFINITY;
    cases[n].name = "top_p", cases[n++].request.sampling.top_p = 1.5;
    cases[n].name = "top_p", cases[n++].request.sampling.top_p = NAN;
    cases[n].name = "min_p", cases[n++].request.sampling.min_p = 1.5f;
    cases[n].name = "min_p", cases[n++].request.sampling.min_p = NAN;
    cases[n].name = "repetition_penalty", cases[n++].request.sampling.repetition_penalty = 0;
    cases[n].name = "repetition_penalty", cases[n++].request.sampling.repetition_penalty = 1e-38;
    cases[n].name = "logit_bias", cases[n++].request.sampling.logit_bias = (struct logit_bias_list){&bias, 1};
    cases[n].name = "prompt", cases[n++].request.n_prompt = 0;
    cases[n].name = "max_tokens", cases[n++].request.max_tokens = 0;
    cases[n].name = "logprobs", cases[n++].request.n_logprobs = 1000;
    cases[n].name = "priority", cases[n++].request.priority = INT32_MAX;
    cases[n].name = "priority", cases[n++].request.priority = INT32_MIN;
    cases[n].name = "stop[0]", cases[n].request.stop = &empty, cases[n++].request.n_stop = 1;
    cases[n].name = "stop_ids[0]", cases[n].request.stop_ids = &bad_id, cases[n++].request.n_stop_ids = 1;
    cases[n].name = "prompt[0]", cases[n].request.prompt = &bad_id, cases[n++].request.n_prompt = 1;
    for (size_t i = 0; i < n; i++) {
        struct error err = {0};
        ck_assert_int_eq(engine_submit(h->engine, &cases[i].request, &err), ENGINE_E_INVALID);
        ck_assert_msg(strstr(err.text, cases[i].name) != NULL, "%s: %s", cases[i].name, err.text);
    }
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(a_tag_is_refused_while_alive_and_free_after_its_end)
{
    struct harness *h = start(_i, (struct backend_config){0});
    struct engine_request request = request_of(3, 20, 30);
    struct error err = {0};
    for (int round = 0; round < 5; round++) {
        submit(h, &request);
        ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_INVALID);
        while (h->outcomes[3].end == ENGINE_RUNNING)
            ck_assert_int_ge(engine_step(h->engine, &err), 0);
        check_outcome(h, &request);
        harness_forget(h, 3); /* at once, while the last step may still be in flight */
    }
    run_dry(h);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(a_full_queue_says_so)
{
    fake_script = (struct fake_script){0};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 1}, 3);
    struct error err = {0};
    for (uint64_t tag = 1; tag <= 3; tag++) {
        struct engine_request request = request_of(tag, 4, 4);
        submit(h, &request);
    }
    struct engine_request request = request_of(4, 4, 4);
    ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_FULL);
    struct engine_request resumed = request_of(5, 4, 4); /* it had its place already, elsewhere */
    const int32_t output = 'a';
    resumed.output = &output;
    resumed.n_output = h->outcomes[5].n_before = 1;
    submit(h, &resumed);
    while (stats_of(h).waiting >= 3)
        ck_assert_int_eq(engine_step(h->engine, &err), 1); /* two start */
    submit(h, &request);
    run_dry(h);
    ck_assert_uint_eq(h->n_ended, 5);
    harness_free(h);
}
END_TEST

/* ---- memory ---- */

START_TEST(when_blocks_run_out_the_youngest_gives_way_and_nothing_is_lost)
{
    /* Twelve that grow to 8 blocks each, and 20 blocks: prompts fit, answers do not. */
    struct harness *h = start(_i, (struct backend_config){.n_slots = 12, .n_blocks = 20, .n_context = 256});
    for (uint64_t tag = 1; tag <= 12; tag++) {
        struct engine_request request = request_of(tag, 20, 230);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 1; tag <= 12; tag++) {
        struct engine_request request = request_of(tag, 20, 230);
        check_outcome(h, &request);
    }
    ck_assert_uint_gt(stats_of(h).preemptions, 0);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(one_that_needs_all_blocks_finishes_among_others)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 6, .n_blocks = 10, .n_context = 320});
    for (uint64_t tag = 1; tag <= 30; tag++) {
        struct engine_request request = tag % 3 ? request_of(tag, 30, 50) : request_of(tag, 200, 120);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 1; tag <= 30; tag++) {
        struct engine_request request = tag % 3 ? request_of(tag, 30, 50) : request_of(tag, 200, 120);
        check_outcome(h, &request);
    }
    check_idle(h);
    harness_free(h);
}
END_TEST

/* ---- order ---- */

START_TEST(priority_goes_first_then_the_earlier_deadline_then_arrival)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 1});
    const struct {
        int32_t priority;
        uint64_t deadline_s;
    } given[] = {{0, 0}, {0, 0}, {1, 0}, {0, 29}, {0, 28}, {1, 27}, {-3, 0}, {-3, 26}};
    const uint64_t expected[] = {6, 3, 5, 4, 1, 2, 8, 7}; /* tags */
    uint64_t now = clock_ns();
    for (uint64_t i = 0; i < 8; i++) {
        struct engine_request request = request_of(i + 1, 4, 4);
        request.priority = given[i].priority;
        request.deadline_ns = given[i].deadline_s ? now + given[i].deadline_s * CLOCK_NS_PER_S : 0;
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t i = 0; i < 8; i++)
        ck_assert_uint_eq(h->outcomes[expected[i]].ended_as, i + 1);
    harness_free(h);
}
END_TEST

/* Newcomers with deadlines never end; one without, which had to give way once, runs among them. */
START_TEST(who_was_preempted_goes_before_newcomers)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 3, .n_blocks = 8, .n_context = 256});
    struct error err = {0};
    uint64_t next = 2, steps = 0;
    struct engine_request patient = request_of(1, 100, 150);
    patient.sampling.seed = lasting_seed(&patient, 150);
    submit(h, &patient);
    ck_assert_int_eq(engine_step(h->engine, &err), 1);
    for (; h->outcomes[1].end == ENGINE_RUNNING; steps++) {
        ck_assert_uint_lt(steps, 1000);
        while (stats_of(h).waiting < 4) {
            bool driven_out = stats_of(h).preemptions > 0;
            struct engine_request newcomer =
                driven_out ? request_of(next++, 60, 30) : request_of(next++, 20, 100);
            newcomer.priority = driven_out ? 0 : 1;
            newcomer.deadline_ns = clock_ns() + 3600 * CLOCK_NS_PER_S;
            submit(h, &newcomer);
        }
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    }
    ck_assert_uint_gt(stats_of(h).preemptions, 0);
    check_outcome(h, &patient);
    harness_free(h);
}
END_TEST

START_TEST(a_short_prompt_waits_two_steps_behind_any_number_of_long_ones)
{
    static const uint64_t crowds[] = {1, 2, 3, 8, 15};
    for (size_t c = 0; c < sizeof crowds / sizeof *crowds; c++) {
        struct harness *h = start(_i, (struct backend_config){.n_slots = 16, .max_rows = 128});
        struct error err;
        uint64_t n = crowds[c];
        for (uint64_t tag = 1; tag <= n; tag++) {
            struct engine_request longer = request_of(tag, 3000, 1);
            submit(h, &longer);
        }
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
        struct engine_request shorter = request_of(n + 1, 20, 1);
        submit(h, &shorter);
        uint64_t before = fake_script.steps;
        while (h->outcomes[n + 1].end == ENGINE_RUNNING)
            ck_assert_int_eq(engine_step(h->engine, &err), 1);
        ck_assert_uint_le(fake_script.steps - before, _i ? 3 : 2); /* one may run ahead */
        run_dry(h);
        for (uint64_t tag = 1; tag <= n; tag++) {
            struct engine_request longer = request_of(tag, 3000, 1);
            check_outcome(h, &longer);
        }
        harness_free(h);
    }
}
END_TEST

/* Short prompts without end take half of each step; the other half is for who came first. */
START_TEST(a_long_prompt_ends_however_many_short_ones_come)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 8, .max_rows = 64});
    struct error err;
    uint64_t next = 2, steps = 0;
    struct engine_request longer = request_of(1, 2000, 1);
    submit(h, &longer);
    for (; h->outcomes[1].end == ENGINE_RUNNING; steps++) {
        ck_assert_uint_lt(steps, _i ? 200 : 80);
        while (stats_of(h).waiting < 4) {
            struct engine_request shorter = request_of(next++, 60, 1);
            submit(h, &shorter);
        }
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    }
    harness_free(h);
}
END_TEST

START_TEST(a_short_prompt_is_not_held_up_by_a_long_one)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 4, .max_rows = 128});
    struct engine_request longer = request_of(1, 3000, 2), shorter = request_of(2, 50, 2);
    submit(h, &longer);
    submit(h, &shorter);
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[2].first_as, 1);
    harness_free(h);
}
END_TEST

START_TEST(the_least_chunk_is_shared_too)
{
    /* A step has time for fewer than 32 rows, so chunks are of 32: 60 steps for the long prompt alone. */
    fake_script = (struct fake_script){.row_ns = 30000, .chunk_least = 32};
    struct harness *h = calloc(1, sizeof *h);
    struct engine_config config = {
        .model = &fake_model, .backend = &backend_fake, .backend_config = {.n_slots = 4}, .step_ms = 1};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
    struct engine_request decoding = request_of(1, 10, 1000), longer = request_of(2, 1920, 1),
                          shorter = request_of(3, 40, 1);
    struct error err;
    decoding.sampling.seed = 14834; /* a long answer */
    submit(h, &decoding);
    while (h->outcomes[1].ids.len < 3)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    submit(h, &longer);
    submit(h, &shorter);
    for (int steps = 0; h->outcomes[3].end == ENGINE_RUNNING; steps++) {
        ck_assert_int_lt(steps, 20);
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    }
    ck_assert_int_eq(h->outcomes[2].end, ENGINE_RUNNING);
    harness_free(h);
}
END_TEST

START_TEST(slow_rows_are_as_few_as_the_step_has_time_for)
{
    /* 2 ms a row: the backend's 100 ms have room for some fifty, and its 32 for no more than sixteen. */
    fake_script = (struct fake_script){.row_ns = 2000000};
    struct harness *h = calloc(1, sizeof *h);
    struct engine_config config = {.model = &fake_model,
                                   .backend = &backend_fake,
                                   .backend_config = {.n_slots = 4, .max_rows = 400},
                                   .step_ms = 32};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
    struct engine_request first = request_of(11, 20, 400), second = request_of(12, 100, 2);
    first.sampling.seed = 60; /* a long answer */
    submit(h, &first);
    struct error err;
    while (h->outcomes[11].ids.len < 3)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    submit(h, &second);
    fake_script.most_rows = 0;
    while (h->outcomes[12].ids.len == 0 && h->outcomes[11].end == ENGINE_RUNNING)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    ck_assert_int_eq(h->outcomes[11].end, ENGINE_RUNNING);
    ck_assert_uint_ge(fake_script.most_rows, 8);
    ck_assert_uint_le(fake_script.most_rows, 17);
    harness_free(h);
}
END_TEST

START_TEST(a_speed_that_was_slow_once_is_measured_again)
{
    fake_script = (struct fake_script){.row_ns = 20000000, .alone_ms = 100};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 2, .max_rows = 400}, 0);
    struct engine_request slow = request_of(1, 100, 1), fast = request_of(2, 2000, 1);
    submit(h, &slow);
    run_dry(h);
    fake_script.row_ns = 0;
    fake_script.most_rows = 0;
    submit(h, &fast);
    run_dry(h);
    ck_assert_uint_eq(fake_script.most_rows, 400); /* it was down to 8 */
    harness_free(h);
}
END_TEST

START_TEST(prefill_beside_decodes_keeps_to_the_time_of_a_step)
{
    /* 0.1 ms a row, 10 ms a step: as many rows as fit alone, about a hundred beside a decode. */
    fake_script = (struct fake_script){.row_ns = 100000};
    struct harness *h = calloc(1, sizeof *h);
    struct engine_config config = {.model = &fake_model,
                                   .backend = &backend_fake,
                                   .backend_config = {.n_slots = 4, .max_rows = 400},
                                   .step_ms = 10};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
    struct engine_request first = request_of(11, 1000, 400), second = request_of(12, 1500, 2);
    first.sampling.seed = 60; /* a long answer */
    submit(h, &first);
    struct error err;
    while (h->outcomes[11].ids.len < 3)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    ck_assert_uint_eq(fake_script.most_rows, 400);
    submit(h, &second);
    fake_script.most_rows = 0;
    while (h->outcomes[12].ids.len == 0 && h->outcomes[11].end == ENGINE_RUNNING)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    ck_assert_int_eq(h->outcomes[11].end, ENGINE_RUNNING); /* else this showed nothing */
    ck_assert_uint_ge(fake_script.most_rows, 33);
    ck_assert_uint_le(fake_script.most_rows, 130);
    harness_free(h);
}
END_TEST

START_TEST(prefill_alone_keeps_to_ten_steps_time)
{
    /* 0.5 ms a row, 1 ms a step: chunks of 20 rows would be the time, 32 are the least. */
    fake_script = (struct fake_script){.row_ns = 500000, .chunk_least = 32};
    struct harness *h = calloc(1, sizeof *h);
    struct engine_config config = {.model = &fake_model,
                                   .backend = &backend_fake,
                                   .backend_config = {.n_slots = 4, .max_rows = 1000},
                                   .step_ms = 1};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
    struct engine_request first = request_of(1, 200, 1), second = request_of(2, 600, 1);
    submit(h, &first);
    run_dry(h);
    fake_script.most_rows = 0;
    submit(h, &second);
    run_dry(h);
    ck_assert_uint_eq(fake_script.most_rows, 32);
    harness_free(h);
}
END_TEST

/* ---- cancel and deadline ---- */

START_TEST(a_cancel_takes_effect_within_one_step_in_every_phase)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 2, .max_rows = 64});
    struct error err;
    struct engine_request decoding = request_of(1, 10, 3000), prefilling = request_of(2, 3000, 10),
                          waiting = request_of(3, 10, 10);
    decoding.sampling.seed = 4; /* gives a long answer */
    submit(h, &decoding);
    while (h->outcomes[1].ids.len < 3)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    submit(h, &prefilling);
    submit(h, &waiting);
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    ck_assert_uint_eq(stats_of(h).active, 2);
    ck_assert_uint_eq(stats_of(h).waiting, 1);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_RUNNING);
    for (uint64_t tag = 1; tag <= 3; tag++) {
        ck_assert(engine_cancel(h->engine, tag));
        ck_assert(engine_cancel(h->engine, tag)); /* once more changes nothing */
    }
    size_t made = h->outcomes[1].ids.len;
    ck_assert_int_ge(engine_step(h->engine, &err), 0);
    for (uint64_t tag = 1; tag <= 3; tag++) {
        ck_assert_int_eq(h->outcomes[tag].end, ENGINE_END_CANCELLED);
        ck_assert(!engine_cancel(h->engine, tag));
    }
    ck_assert_uint_eq(h->outcomes[1].ids.len, made);
    run_dry(h);
    check_outcome(h, &decoding);
    check_idle(h);
    harness_free(h);
}
END_TEST

struct hook {
    struct harness *h;
    int calls, cancel_at;
    bool moot_seen;
};

static bool progress_cancels(void *arg)
{
    struct hook *hook = arg;
    if (++hook->calls == hook->cancel_at) {
        ck_assert(!engine_step_is_moot(hook->h->engine));
        ck_assert(engine_cancel(hook->h->engine, 1));
    }
    hook->moot_seen |= engine_step_is_moot(hook->h->engine);
    return engine_step_is_moot(hook->h->engine);
}

START_TEST(a_cancel_from_the_progress_hook_abandons_the_step)
{
    for (int at = 1; at < 12; at++) {
        struct hook hook = {.cancel_at = at};
        hook.h =
            start(_i, (struct backend_config){
                          .max_rows = 50, .n_slots = 2, .progress = progress_cancels, .progress_arg = &hook});
        struct engine_request request = request_of(1, 300, 30);
        request.sampling.seed = 4;
        submit(hook.h, &request);
        run_dry(hook.h);
        ck_assert(hook.moot_seen);
        ck_assert_int_eq(hook.h->outcomes[1].end, ENGINE_END_CANCELLED);
        check_idle(hook.h);
        request = request_of(2, 40, 9); /* the engine is as good as before */
        submit(hook.h, &request);
        run_dry(hook.h);
        check_outcome(hook.h, &request);
        harness_free(hook.h);
    }
}
END_TEST

static bool progress_watches(void *arg)
{
    struct hook *hook = arg;
    hook->moot_seen |= engine_step_is_moot(hook->h->engine);
    return false;
}

/* Nobody waits for a flight of which all is to be computed again. */
START_TEST(a_step_that_follows_an_abandoned_one_is_moot)
{
    struct hook hook = {0};
    hook.h = start(1, (struct backend_config){.progress = progress_watches, .progress_arg = &hook});
    struct engine_request request = request_of(1, 30, 30);
    request.sampling.seed = lasting_seed(&request, 30);
    fake_script.abandon_at = 4;
    submit(hook.h, &request);
    run_dry(hook.h);
    ck_assert(hook.moot_seen);
    check_outcome(hook.h, &request);
    harness_free(hook.h);
}
END_TEST

static void sink_that_cancels(void *arg, const struct engine_event *event)
{
    struct harness *h = arg;
    harness_sink(h, event);
    if (event->end != ENGINE_RUNNING && event->tag == 2)
        ck_assert(engine_cancel(h->engine, 1));
}

START_TEST(a_cancel_from_an_event_reaches_one_that_was_about_to_start)
{
    fake_script = (struct fake_script){.asynchronous = _i};
    struct harness *h = calloc(1, sizeof *h);
    const struct engine_config config = {
        .model = &fake_model, .backend = &backend_fake, .backend_config = {.n_slots = 1}};
    ck_assert_int_eq(engine_new(&config, sink_that_cancels, h, &h->engine, NULL), 0);
    for (uint64_t tag = 1; tag <= 3; tag++) {
        struct engine_request request = request_of(tag, 10, 10);
        if (tag == 2)
            request.deadline_ns = 1; /* ends before the step in which the first would start */
        submit(h, &request);
    }
    run_dry(h);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_END_CANCELLED);
    ck_assert_int_eq(h->outcomes[2].end, ENGINE_END_DEADLINE);
    struct engine_request last = request_of(3, 10, 10);
    check_outcome(h, &last);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(an_abandoned_step_costs_no_sequence_a_token)
{
    for (uint64_t at = 1; at < 30; at++) {
        struct harness *h = start(_i, (struct backend_config){.n_slots = 4, .max_rows = 32});
        fake_script.abandon_at = at;
        for (uint64_t tag = 1; tag <= 6; tag++) {
            struct engine_request request = request_of(tag, 60, 30);
            submit(h, &request);
        }
        run_dry(h);
        for (uint64_t tag = 1; tag <= 6; tag++) {
            struct engine_request request = request_of(tag, 60, 30);
            check_outcome(h, &request);
        }
        check_idle(h);
        harness_free(h);
    }
}
END_TEST

START_TEST(the_wait_for_a_slot_is_told_apart_from_computing)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 1});
    struct engine_request first = request_of(1, 10, 20), second = request_of(2, 10, 20);
    fake_script.row_ns = 100000;
    submit(h, &first);
    submit(h, &second);
    run_dry(h);
    const struct outcome *a = &h->outcomes[1], *b = &h->outcomes[2];
    ck_assert_uint_gt(a->decode_ns, 0);
    ck_assert_uint_lt(a->wait_ns + a->lookup_ns, a->prefill_ns);
    ck_assert_uint_gt(b->wait_ns, a->prefill_ns - a->wait_ns - a->lookup_ns + a->decode_ns);
    ck_assert_uint_lt(b->wait_ns + b->lookup_ns, b->prefill_ns);
    harness_free(h);
}
END_TEST

START_TEST(a_deadline_ends_what_waits_and_what_runs)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 1});
    struct engine_request running = request_of(1, 10, 3000), waiting = request_of(2, 10, 10),
                          past = request_of(3, 10, 10), patient = request_of(4, 10, 10);
    running.sampling.seed = 14834; /* an answer of 1055 tokens, a millisecond each */
    running.priority = 5;
    uint64_t now = clock_ns();
    running.deadline_ns = waiting.deadline_ns = now + 400 * CLOCK_NS_PER_MS;
    past.deadline_ns = 1;
    fake_script.row_ns = 1000000;
    submit(h, &running);
    submit(h, &waiting);
    submit(h, &past);
    submit(h, &patient);
    run_dry(h);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_END_DEADLINE);
    ck_assert_int_eq(h->outcomes[2].end, ENGINE_END_DEADLINE);
    ck_assert_int_eq(h->outcomes[3].end, ENGINE_END_DEADLINE);
    ck_assert_uint_gt(h->outcomes[1].ids.len, 0);
    ck_assert_uint_eq(h->outcomes[3].ids.len, 0);
    check_outcome(h, &running);
    check_outcome(h, &patient);
    ck_assert(h->outcomes[4].end == ENGINE_END_LENGTH || h->outcomes[4].end == ENGINE_END_STOP);
    check_idle(h);
    harness_free(h);
}
END_TEST

/* ---- failure ---- */

static void check_failed(struct harness *h, const char *reason)
{
    struct error err = {0};
    int r;
    while ((r = engine_step(h->engine, &err)) == 1)
        ;
    ck_assert_int_eq(r, -EIO);
    ck_assert_ptr_nonnull(strstr(err.text, reason));
    for (uint64_t tag = 1; tag <= 9; tag++) {
        ck_assert_int_ne(h->outcomes[tag].end, ENGINE_RUNNING);
        if (h->outcomes[tag].end == ENGINE_END_FAULT)
            ck_assert_ptr_nonnull(strstr(h->outcomes[tag].fault, reason));
    }
    ck_assert_int_eq(h->outcomes[9].end, ENGINE_END_FAULT); /* it waited */
    ck_assert_int_eq(engine_step(h->engine, &err), -EIO);
    struct engine_request late = request_of(20, 3, 3);
    ck_assert_int_eq(engine_submit(h->engine, &late, &err), -EIO);
}

START_TEST(a_device_says_itself_what_became_of_it)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 3});
    struct error err = {0};
    struct engine_request request = request_of(1, 10, 100);
    fake_script.poll_fails_at = 2;
    fake_script.verdict = -ENODEV;
    submit(h, &request);
    int r;
    while ((r = engine_step(h->engine, &err)) == 1)
        ;
    ck_assert_int_eq(r, -ENODEV);
    ck_assert_ptr_nonnull(strstr(err.text, "fake: the fake is lost"));
    ck_assert_ptr_nonnull(strstr(h->outcomes[1].fault, "the fake is lost"));
    ck_assert_int_eq(engine_submit(h->engine, &request, &err), -ENODEV);
    harness_free(h);
}
END_TEST

START_TEST(a_device_that_fails_ends_every_request_with_the_reason)
{
    for (uint64_t at = 1; at < 20; at++)
        for (int where = 0; where < 2; where++) {
            struct harness *h = start(_i, (struct backend_config){.n_slots = 3});
            *(where ? &fake_script.submit_fails_at : &fake_script.poll_fails_at) = at;
            for (uint64_t tag = 1; tag <= 9; tag++) {
                struct engine_request request = request_of(tag, 10, 100);
                submit(h, &request);
            }
            check_failed(h, where ? "could not be started" : "caught fire");
            harness_free(h);
        }
}
END_TEST

START_TEST(logits_that_are_not_finite_end_that_sequence_alone)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 4});
    fake_script.nan_at = 5;
    for (uint64_t tag = 1; tag <= 4; tag++) {
        struct engine_request request = request_of(tag, 10, 20);
        submit(h, &request);
    }
    run_dry(h);
    int faults = 0;
    for (uint64_t tag = 1; tag <= 4; tag++) {
        struct engine_request request = request_of(tag, 10, 20);
        faults += h->outcomes[tag].end == ENGINE_END_FAULT;
        check_outcome(h, &request);
    }
    ck_assert_int_eq(faults, 1);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(an_engine_with_requests_alive_can_be_freed)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 2});
    struct error err;
    for (uint64_t tag = 1; tag <= 6; tag++) {
        struct engine_request request = request_of(tag, 40, 40);
        submit(h, &request);
    }
    for (int i = 0; i < 4; i++)
        engine_step(h->engine, &err);
    harness_free(h);
}
END_TEST

/* Engine, and what it computed of prompts when sixteen like one another, of 999 ids, came at once. */
static uint64_t prefill_of_sixteen(uint32_t most_cached)
{
    struct harness *h = calloc(1, sizeof *h);
    const struct engine_config config = {.model = &fake_model,
                                         .backend = &backend_fake,
                                         .backend_config = {.n_slots = 16, .n_blocks = 1000, .max_rows = 128},
                                         .most_cached = most_cached};
    ck_assert_int_eq(engine_new(&config, harness_sink, h, &h->engine, NULL), 0);
    for (uint64_t tag = 1; tag <= 16; tag++) {
        struct engine_request request = request_of(1, 999, 20);
        request.tag = tag;
        submit(h, &request);
    }
    engine_step(h->engine, NULL);
    ck_assert_uint_eq(stats_of(h).active,
                      most_cached ? 1 : 16); /* the others wait for the one, or nobody does */
    run_dry(h);
    for (uint64_t tag = 1; tag <= 16; tag++) {
        ck_assert_uint_eq(h->outcomes[tag].ids.len, h->outcomes[1].ids.len);
        ck_assert_mem_eq(h->outcomes[tag].ids.data, h->outcomes[1].ids.data,
                         h->outcomes[1].ids.len * sizeof(int32_t));
    }
    uint64_t rows = stats_of(h).prefill_tokens;
    harness_free(h);
    return rows;
}

START_TEST(sixteen_equal_prompts_at_once_are_little_more_work_than_one)
{
    fake_script = (struct fake_script){.asynchronous = _i};
    ck_assert_uint_eq(prefill_of_sixteen(UINT32_MAX), 999 + 15 * (999 - 31 * 32));
    fake_script = (struct fake_script){.asynchronous = _i};
    ck_assert_uint_eq(prefill_of_sixteen(0), 16 * 999);
}
END_TEST

/* ---- soak ---- */

static struct engine_request soak_request(uint64_t tag)
{
    static const struct bytes stop[] = {BYTES_LITERAL("abca"), BYTES_LITERAL("ff")};
    uint64_t r = tag * 0x9e3779b97f4a7c15ull;
    r ^= r >> 29;
    struct engine_request request = request_of(tag, 1 + (uint32_t)(r % 120), 1 + (uint32_t)(r / 128 % 130));
    request.priority = (int32_t)(r / 65536 % 3);
    if (r / 300000 % 3 == 0) {
        request.stop = stop;
        request.n_stop = 2;
    }
    return request;
}

START_TEST(thousands_of_disturbed_requests_end_once_each_and_give_all_back)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 7, .n_blocks = 12, .max_rows = 48});
    struct error err = {0};
    const uint64_t total = MOST_TAGS - 1;
    srand(5);
    for (uint64_t next = 1, steps = 0; next <= total || stats_of(h).active + stats_of(h).waiting > 0;
         steps++) {
        ck_assert_uint_lt(steps, 2000000);
        for (int burst = rand() % 4; burst > 0 && next <= total && stats_of(h).waiting < 60;
             burst--, next++) {
            struct engine_request request = soak_request(next);
            if (rand() % 20 == 0)
                request.deadline_ns = clock_ns() + (uint64_t)(rand() % 3000) * 1000;
            submit(h, &request);
        }
        if (rand() % 10 == 0)
            engine_cancel(h->engine, next - (uint64_t)rand() % 60);
        fake_script.abandon_at = rand() % 50 == 0 ? fake_script.steps + 1 : 0;
        int r = engine_step(h->engine, &err);
        ck_assert_msg(r >= 0, "%s", err.text);
    }
    run_dry(h);
    check_idle(h);
    uint64_t ends[6] = {0};
    for (uint64_t tag = 1; tag <= total; tag++) {
        struct engine_request request = soak_request(tag);
        check_outcome(h, &request);
        ends[h->outcomes[tag].end]++;
    }
    ck_assert_uint_eq(h->n_ended, total);
    ck_assert_uint_gt(ends[ENGINE_END_STOP], 100);
    ck_assert_uint_gt(ends[ENGINE_END_LENGTH], 100);
    ck_assert_uint_gt(ends[ENGINE_END_CANCELLED], 100);
    ck_assert_uint_gt(ends[ENGINE_END_DEADLINE], 10);
    ck_assert_uint_eq(ends[ENGINE_END_FAULT], 0);
    ck_assert_uint_gt(stats_of(h).preemptions, 20);
    ck_assert_uint_gt(stats_of(h).cache_hits, 1000);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_request_gets_the_ids_and_the_text_of_the_model, 0, 2);
    tcase_add_loop_test(tests, requests_in_one_batch_do_not_touch_one_another, 0, 2);
    tcase_add_loop_test(tests, a_stop_string_ends_the_text_before_it, 0, 2);
    tcase_add_loop_test(tests, a_stop_id_ends_the_request_and_adds_no_text, 0, 2);
    tcase_add_loop_test(tests, max_tokens_is_exact, 0, 2);
    tcase_add_loop_test(tests, what_exceeds_a_limit_is_refused_with_both_numbers, 0, 2);
    tcase_add_test(tests, a_value_out_of_range_is_refused_by_name);
    tcase_add_loop_test(tests, a_tag_is_refused_while_alive_and_free_after_its_end, 0, 2);
    tcase_add_test(tests, a_full_queue_says_so);
    tcase_add_loop_test(tests, when_blocks_run_out_the_youngest_gives_way_and_nothing_is_lost, 0, 4);
    tcase_add_loop_test(tests, one_that_needs_all_blocks_finishes_among_others, 0, 4);
    tcase_add_loop_test(tests, priority_goes_first_then_the_earlier_deadline_then_arrival, 0, 2);
    tcase_add_loop_test(tests, a_short_prompt_is_not_held_up_by_a_long_one, 0, 2);
    tcase_add_loop_test(tests, who_was_preempted_goes_before_newcomers, 0, 2);
    tcase_add_loop_test(tests, a_short_prompt_waits_two_steps_behind_any_number_of_long_ones, 0, 2);
    tcase_add_loop_test(tests, a_long_prompt_ends_however_many_short_ones_come, 0, 2);
    tcase_add_test(tests, slow_rows_are_as_few_as_the_step_has_time_for);
    tcase_add_test(tests, a_speed_that_was_slow_once_is_measured_again);
    tcase_add_test(tests, the_least_chunk_is_shared_too);
    tcase_add_test(tests, prefill_beside_decodes_keeps_to_the_time_of_a_step);
    tcase_add_test(tests, prefill_alone_keeps_to_ten_steps_time);
    tcase_add_loop_test(tests, a_cancel_takes_effect_within_one_step_in_every_phase, 0, 2);
    tcase_add_loop_test(tests, a_cancel_from_the_progress_hook_abandons_the_step, 0, 2);
    tcase_add_test(tests, a_step_that_follows_an_abandoned_one_is_moot);
    tcase_add_loop_test(tests, a_cancel_from_an_event_reaches_one_that_was_about_to_start, 0, 2);
    tcase_add_loop_test(tests, an_abandoned_step_costs_no_sequence_a_token, 0, 4);
    tcase_add_loop_test(tests, the_wait_for_a_slot_is_told_apart_from_computing, 0, 2);
    tcase_add_loop_test(tests, a_deadline_ends_what_waits_and_what_runs, 0, 2);
    tcase_add_loop_test(tests, a_device_says_itself_what_became_of_it, 0, 2);
    tcase_add_loop_test(tests, a_device_that_fails_ends_every_request_with_the_reason, 0, 2);
    tcase_add_loop_test(tests, logits_that_are_not_finite_end_that_sequence_alone, 0, 2);
    tcase_add_loop_test(tests, an_engine_with_requests_alive_can_be_freed, 0, 2);
    tcase_add_loop_test(tests, sixteen_equal_prompts_at_once_are_little_more_work_than_one, 0, 2);
    tcase_add_loop_test(tests, thousands_of_disturbed_requests_end_once_each_and_give_all_back, 0, 4);
}

int main(void)
{
    return run_tests("engine", add);
}
