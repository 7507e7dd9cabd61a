/* SPDX-License-Identifier: MIT */
/* The promises of engine.h, on the fake backend: synchronous, and asynchronous one step behind. What a step
 * is made of is asked in test_plan.c, what cuts requests off in test_cancel.c, what a device says of itself
 * in test_backend_info.c and how it fails in test_device_faults.c. */

#include "tests/unit/engine/harness.h"

#include <math.h>

#include "common/clock.h"

START_TEST(a_request_gets_the_ids_and_the_text_of_the_model)
{
    struct harness *h = harness_start(_i, (struct backend_config){0});
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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 8, .max_rows = 64});
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

/* Whatever happens on the way, each step, token and request is in one bucket. */
START_TEST(histograms_count_each_step_and_each_token_once)
{
    enum { REQUESTS = 20, OUTPUT = 30 };
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4, .max_rows = 64});
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        struct engine_request request = request_of(tag, 50 + (uint32_t)tag, OUTPUT);
        submit(h, &request);
    }
    run_dry(h);
    const struct engine_stats stats = stats_of(h);
    const struct measures *measures = engine_measures(h->engine);
    ck_assert_uint_eq(histogram_count(&measures->step_decode) + histogram_count(&measures->step_prefill) +
                          histogram_count(&measures->step_mixed),
                      stats.steps);
    ck_assert_uint_gt(histogram_count(&measures->step_decode), 0);
    ck_assert_uint_eq(histogram_count(&measures->step_rows), stats.steps);
    ck_assert_uint_ge(measures->step_rows.sum, stats.prefill_tokens + stats.tokens - REQUESTS);
    ck_assert_uint_eq(histogram_count(&measures->slots_used), stats.steps);
    ck_assert_uint_gt(measures->slots_used.counts[HISTOGRAM_BOUNDS - 1], 0); /* all four */
    ck_assert_uint_eq(measures->slots_used.counts[HISTOGRAM_BOUNDS], 0);
    ck_assert_uint_eq(histogram_count(&measures->kv_used), stats.steps);
    ck_assert_uint_eq(measures->kv_used.counts[HISTOGRAM_BOUNDS], 0);
    ck_assert_uint_gt(measures->kv_used.sum, 0);
    ck_assert_uint_eq(histogram_count(&measures->first_token), REQUESTS);
    ck_assert_uint_eq(histogram_count(&measures->token_gap), stats.tokens - REQUESTS);
    harness_free(h);
}
END_TEST

START_TEST(a_watched_request_tells_how_much_of_its_prompt_is_read)
{
    struct harness *h = harness_start(_i, (struct backend_config){.max_rows = 64});
    struct engine_request request = request_of(1, 300, 5);
    request.watched = true;
    submit(h, &request);
    run_dry(h);
    check_outcome(h, &request);
    const struct outcome *o = &h->outcomes[1];
    ck_assert_int_ge(o->n_readings, 1 + 300 / 64);
    ck_assert_uint_eq(o->reading.n_prompt, 300);
    ck_assert_uint_eq(o->reading.n_cached, 0);
    ck_assert_uint_eq(o->reading.n_read, 300);
    struct engine_request again = request_of(27, 300, 5); /* the same prompt */
    ck_assert_mem_eq(again.prompt, request.prompt, 300 * sizeof *request.prompt);
    again.watched = true;
    submit(h, &again);
    struct engine_request unwatched = request_of(2, 300, 5);
    submit(h, &unwatched);
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[27].reading.n_cached, 299);
    ck_assert_uint_eq(h->outcomes[27].reading.n_read, 300);
    ck_assert_int_eq(h->outcomes[2].n_readings, 0);
    harness_free(h);
}
END_TEST

START_TEST(a_stop_string_ends_the_text_before_it)
{
    struct harness *h = harness_start(_i, (struct backend_config){0});
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
    struct harness *h = harness_start(_i, (struct backend_config){0});
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
    struct harness *h = harness_start(_i, (struct backend_config){0});
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
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 2, .n_context = 1000, .n_blocks = 20});
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
    struct harness *h = harness_start(0, (struct backend_config){0});
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
    struct harness *h = harness_start(_i, (struct backend_config){0});
    struct engine_request request = request_of(3, 20, 30);
    struct error err = {0};
    for (int round = 0; round < 5; round++) {
        submit(h, &request);
        ck_assert_int_eq(engine_submit(h->engine, &request, &err), ENGINE_E_INVALID);
        ck_assert_str_eq(err.text, "tag 3 is already in use");
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
    ck_assert_str_eq(err.text, "queue full: 3 requests waiting");
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

/* ---- what there is ---- */

START_TEST(what_waits_and_what_is_held_is_counted)
{
    fake_script = (struct fake_script){.window = 40};
    struct harness *h = harness_new(&(struct backend_config){.n_slots = 1, .max_rows = 32}, 0);
    static const uint32_t lengths[] = {100, 50, 20};
    struct error err = {0};
    for (uint64_t tag = 1; tag <= 3; tag++) {
        struct engine_request request = request_of(tag, lengths[tag - 1], 1);
        submit(h, &request);
    }
    struct engine_stats stats = stats_of(h);
    ck_assert_uint_eq(stats.waiting, 3);
    ck_assert_uint_eq(stats.waiting_tokens, 100 + 50 + 20);
    ck_assert_uint_eq(stats.active + stats.prefill_tokens + stats.steps + stats.tokens, 0);
    ck_assert_int_eq(engine_step(h->engine, &err), 1);
    stats = stats_of(h);
    ck_assert_uint_eq(stats.slots, 1);
    ck_assert_uint_eq(stats.active, 1);
    ck_assert_uint_eq(stats.waiting, 2);
    ck_assert_uint_eq(stats.waiting_tokens, 100 - 32 + 50 + 20);
    ck_assert_uint_eq(stats.prefill_tokens, 32);
    ck_assert_uint_eq(stats.steps, 1);
    for (int g = 0; g < 2; g++)
        ck_assert_uint_eq(stats.blocks_held[g], 1);
    ck_assert_uint_eq(stats.blocks_free, stats.blocks_total - 1);
    run_dry(h);
    stats = stats_of(h);
    ck_assert_uint_eq(stats.prefill_tokens, 100 + 50 + 20);
    ck_assert_uint_eq(stats.tokens, 3);
    check_idle(h);
    harness_free(h);
}
END_TEST

/* ---- memory ---- */

START_TEST(when_blocks_run_out_the_youngest_gives_way_and_nothing_is_lost)
{
    /* Twelve that grow to 8 blocks each, and 20 blocks: prompts fit, answers do not. */
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 12, .n_blocks = 20, .n_context = 256});
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
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 6, .n_blocks = 10, .n_context = 320});
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

START_TEST(an_engine_with_requests_alive_can_be_freed)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 2});
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
    request.cache_salt = r / 200000 % 3 ? BYTES_LITERAL("salt") : (struct bytes){0};
    if (r / 300000 % 3 == 0) {
        request.stop = stop;
        request.n_stop = 2;
    }
    return request;
}

START_TEST(thousands_of_disturbed_requests_end_once_each_and_give_all_back)
{
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 7, .n_blocks = 12, .max_rows = 48});
    struct error err = {0};
    const uint64_t total = MOST_TAGS - 1;
    srand(5);
    for (uint64_t next = 1, steps = 0; next <= total || stats_of(h).active + stats_of(h).waiting > 0;
         steps++) {
        ck_assert_uint_lt(steps, 2000000);
        for (int burst = rand() % 4; burst > 0 && next <= total && stats_of(h).waiting < 60;
             burst--, next++) {
            struct engine_request request = soak_request(next);
            if (rand() % 20 == 0) /* a third has passed, however fast the machine is */
                request.deadline_ns = clock_ns() - CLOCK_NS_PER_MS + (uint64_t)(rand() % 3000) * 1000;
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
    /* A device that is ahead leaves hardly a block idle. */
    ck_assert_uint_gt(fake_script.block_copies, fake_script.asynchronous ? 10 : 500);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_request_gets_the_ids_and_the_text_of_the_model, 0, 2);
    tcase_add_loop_test(tests, requests_in_one_batch_do_not_touch_one_another, 0, 2);
    tcase_add_loop_test(tests, histograms_count_each_step_and_each_token_once, 0, 2);
    tcase_add_loop_test(tests, a_watched_request_tells_how_much_of_its_prompt_is_read, 0, 2);
    tcase_add_loop_test(tests, a_stop_string_ends_the_text_before_it, 0, 2);
    tcase_add_loop_test(tests, a_stop_id_ends_the_request_and_adds_no_text, 0, 2);
    tcase_add_loop_test(tests, max_tokens_is_exact, 0, 2);
    tcase_add_loop_test(tests, what_exceeds_a_limit_is_refused_with_both_numbers, 0, 2);
    tcase_add_test(tests, a_value_out_of_range_is_refused_by_name);
    tcase_add_loop_test(tests, a_tag_is_refused_while_alive_and_free_after_its_end, 0, 2);
    tcase_add_test(tests, a_full_queue_says_so);
    tcase_add_test(tests, what_waits_and_what_is_held_is_counted);
    tcase_add_loop_test(tests, when_blocks_run_out_the_youngest_gives_way_and_nothing_is_lost, 0, 4);
    tcase_add_loop_test(tests, one_that_needs_all_blocks_finishes_among_others, 0, 4);
    tcase_add_loop_test(tests, an_engine_with_requests_alive_can_be_freed, 0, 2);
    tcase_add_loop_test(tests, sixteen_equal_prompts_at_once_are_little_more_work_than_one, 0, 2);
    tcase_add_loop_test(tests, thousands_of_disturbed_requests_end_once_each_and_give_all_back, 0, 4);
}

int main(void)
{
    return run_tests("engine", add);
}
