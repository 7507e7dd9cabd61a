/* SPDX-License-Identifier: MIT */
/* Requests that are cut off: cancelled in every phase, past their deadline, in steps that are abandoned. */

#include "tests/unit/engine/harness.h"

#include "common/clock.h"

START_TEST(a_cancel_takes_effect_within_one_step_in_every_phase)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 2, .max_rows = 64});
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
        hook.h = harness_start(
            _i, (struct backend_config){
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
    hook.h = harness_start(1, (struct backend_config){.progress = progress_watches, .progress_arg = &hook});
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
        struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4, .max_rows = 32});
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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 1});
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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 1});
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

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_cancel_takes_effect_within_one_step_in_every_phase, 0, 2);
    tcase_add_loop_test(tests, a_cancel_from_the_progress_hook_abandons_the_step, 0, 2);
    tcase_add_test(tests, a_step_that_follows_an_abandoned_one_is_moot);
    tcase_add_loop_test(tests, a_cancel_from_an_event_reaches_one_that_was_about_to_start, 0, 2);
    tcase_add_loop_test(tests, an_abandoned_step_costs_no_sequence_a_token, 0, 4);
    tcase_add_loop_test(tests, the_wait_for_a_slot_is_told_apart_from_computing, 0, 2);
    tcase_add_loop_test(tests, a_deadline_ends_what_waits_and_what_runs, 0, 2);
}

int main(void)
{
    return run_tests("cancel", add);
}
