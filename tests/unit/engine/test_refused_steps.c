/* SPDX-License-Identifier: MIT */
/* Steps that the backend refuses, for want of memory or by its rules: it did nothing of them and is sound, so
 * the engine goes on with less. */

#include "tests/unit/engine/harness.h"

#include <errno.h>

static const int refusals[] = {-ENOMEM, -EINVAL};

/* _i: bit 0 asynchronous, bit 1 which refusal. */
static struct harness *start(int i, struct backend_config config)
{
    fake_script = (struct fake_script){.asynchronous = i & 1, .refusal = refusals[i >> 1]};
    return harness_new(&config, 0);
}

START_TEST(a_step_that_is_too_large_is_made_smaller_and_nothing_is_lost)
{
    for (uint32_t most = 1; most <= 6; most++) {
        struct harness *h = start(_i, (struct backend_config){.n_slots = 6});
        fake_script.most_sets = most;
        for (uint64_t tag = 1; tag <= 20; tag++) {
            struct engine_request request = request_of(tag, 10 + (uint32_t)tag * 9, 60);
            submit(h, &request);
        }
        run_dry(h);
        for (uint64_t tag = 1; tag <= 20; tag++) {
            struct engine_request request = request_of(tag, 10 + (uint32_t)tag * 9, 60);
            check_outcome(h, &request);
            ck_assert_int_ne(h->outcomes[tag].end, ENGINE_END_FAULT);
        }
        check_idle(h);
        harness_free(h);
    }
}
END_TEST

START_TEST(a_request_whose_steps_are_refused_ends_alone_and_the_device_lives)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 4});
    fake_script.refused_seed = 3;
    for (uint64_t tag = 1; tag <= 8; tag++) {
        struct engine_request request = request_of(tag, 40, 50);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 1; tag <= 8; tag++) {
        struct engine_request request = request_of(tag, 40, 50);
        const struct outcome *o = &h->outcomes[tag];
        ck_assert_msg((o->end == ENGINE_END_FAULT) == (tag == 3), "request %d", (int)tag);
        check_outcome(h, &request);
    }
    const char *said = refusals[_i >> 1] == -ENOMEM ? "fake: out of memory for a step of 40 rows"
                                                    : "fake: step of 40 rows rejected: Invalid argument";
    ck_assert_str_eq(h->outcomes[3].fault, said);
    check_idle(h);
    /* The next one is served. */
    struct engine_request request = request_of(9, 40, 50);
    submit(h, &request);
    run_dry(h);
    check_outcome(h, &request);
    ck_assert_int_ne(h->outcomes[9].end, ENGINE_END_FAULT);
    harness_free(h);
}
END_TEST

START_TEST(a_request_whose_slot_is_refused_ends_alone)
{
    struct harness *h = start(_i & 1, (struct backend_config){.n_slots = 2});
    fake_script.refusal = 0;
    fake_script.slot_refusal = refusals[_i >> 1];
    fake_script.refused_seed = 3;
    for (uint64_t tag = 1; tag <= 5; tag++) {
        struct engine_request request = request_of(tag, 40, 50);
        submit(h, &request);
    }
    run_dry(h);
    for (uint64_t tag = 1; tag <= 5; tag++) {
        struct engine_request request = request_of(tag, 40, 50);
        ck_assert_msg((h->outcomes[tag].end == ENGINE_END_FAULT) == (tag == 3), "request %d", (int)tag);
        check_outcome(h, &request);
    }
    const char *said = refusals[_i >> 1] == -ENOMEM ? "fake: out of memory for the sequence"
                                                    : "fake: sequence rejected: Invalid argument";
    ck_assert_str_eq(h->outcomes[3].fault, said);
    ck_assert_uint_eq(h->outcomes[3].ids.len, 0);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(one_that_is_refused_in_the_middle_of_its_answer_keeps_what_it_has)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 2});
    struct error err = {0};
    struct engine_request request = request_of(1, 10, 200);
    request.sampling.seed = lasting_seed(&request, 150);
    submit(h, &request);
    while (h->outcomes[1].ids.len < 100)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    fake_script.refused_seed = request.sampling.seed;
    run_dry(h);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_END_FAULT);
    ck_assert_ptr_nonnull(strstr(h->outcomes[1].fault, "step of 1 rows"));
    check_outcome(h, &request); /* what it has is the beginning of its answer */
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(a_request_that_was_cancelled_meanwhile_ends_as_cancelled)
{
    struct harness *h = start(_i, (struct backend_config){.n_slots = 3});
    struct error err = {0};
    fake_script.most_sets = 1;
    for (uint64_t tag = 1; tag <= 6; tag++) {
        struct engine_request request = request_of(tag, 20, 100);
        request.sampling.seed = lasting_seed(&request, 100);
        submit(h, &request);
    }
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(engine_step(h->engine, &err), 1);
    for (uint64_t tag = 1; tag <= 6; tag++)
        ck_assert(engine_cancel(h->engine, tag));
    run_dry(h);
    for (uint64_t tag = 1; tag <= 6; tag++)
        ck_assert_int_eq(h->outcomes[tag].end, ENGINE_END_CANCELLED);
    check_idle(h);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_loop_test(tests, a_step_that_is_too_large_is_made_smaller_and_nothing_is_lost, 0, 4);
    tcase_add_loop_test(tests, a_request_whose_steps_are_refused_ends_alone_and_the_device_lives, 0, 4);
    tcase_add_loop_test(tests, a_request_whose_slot_is_refused_ends_alone, 0, 4);
    tcase_add_loop_test(tests, one_that_is_refused_in_the_middle_of_its_answer_keeps_what_it_has, 0, 4);
    tcase_add_loop_test(tests, a_request_that_was_cancelled_meanwhile_ends_as_cancelled, 0, 4);
}

int main(void)
{
    return run_tests("refused steps", add);
}
