/* SPDX-License-Identifier: MIT */
/* Who is next, and how much of a step each gets: order, fairness, and the time that a step may take. */

#include "tests/unit/engine/harness.h"

#include "common/clock.h"

START_TEST(priority_goes_first_then_the_earlier_deadline_then_arrival)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 1});
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
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 3, .n_blocks = 8, .n_context = 256});
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
        struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 16, .max_rows = 128});
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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 8, .max_rows = 64});
    struct error err;
    uint64_t next = 2, steps = 0;
    struct engine_request longer = request_of(1, 2000, 1);
    submit(h, &longer);
    for (; h->outcomes[1].end == ENGINE_RUNNING; steps++) {
        ck_assert_uint_lt(steps, _i ? 200 : 80);
        while (stats_of(h).waiting < 4) {
            struct engine_request shorter = request_of(next++, 60, 1);
            shorter.uncached = true; /* each computes its prompt */
            submit(h, &shorter);
        }
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    }
    harness_free(h);
}
END_TEST

START_TEST(a_short_prompt_is_not_held_up_by_a_long_one)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4, .max_rows = 128});
    struct engine_request longer = request_of(1, 3000, 2), shorter = request_of(2, 50, 2);
    submit(h, &longer);
    submit(h, &shorter);
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[2].first_as, 1);
    harness_free(h);
}
END_TEST

/* Whichever came first: behind one that takes its half, the short prompt goes before the long one. */
START_TEST(of_those_behind_the_first_the_shortest_goes_first)
{
    for (uint64_t shorter = 2; shorter <= 3; shorter++) {
        struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4, .max_rows = 128});
        for (uint64_t tag = 1; tag <= 3; tag++) {
            struct engine_request request = request_of(tag, tag == shorter ? 60 : 2000, 2);
            submit(h, &request);
        }
        run_dry(h);
        ck_assert_uint_eq(h->outcomes[shorter].first_as, 1);
        harness_free(h);
    }
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

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, priority_goes_first_then_the_earlier_deadline_then_arrival, 0, 2);
    tcase_add_loop_test(tests, a_short_prompt_is_not_held_up_by_a_long_one, 0, 2);
    tcase_add_loop_test(tests, of_those_behind_the_first_the_shortest_goes_first, 0, 2);
    tcase_add_loop_test(tests, who_was_preempted_goes_before_newcomers, 0, 2);
    tcase_add_loop_test(tests, a_short_prompt_waits_two_steps_behind_any_number_of_long_ones, 0, 2);
    tcase_add_loop_test(tests, a_long_prompt_ends_however_many_short_ones_come, 0, 2);
    tcase_add_test(tests, slow_rows_are_as_few_as_the_step_has_time_for);
    tcase_add_test(tests, a_speed_that_was_slow_once_is_measured_again);
    tcase_add_test(tests, the_least_chunk_is_shared_too);
    tcase_add_test(tests, prefill_beside_decodes_keeps_to_the_time_of_a_step);
    tcase_add_test(tests, prefill_alone_keeps_to_ten_steps_time);
}

int main(void)
{
    return run_tests("plan", add);
}
