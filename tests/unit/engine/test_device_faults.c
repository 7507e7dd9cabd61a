/* SPDX-License-Identifier: MIT */
/* A device that fails: what the engine says of it, and who of the requests ends. */

#include "tests/unit/engine/harness.h"

#include <errno.h>

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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 3});
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
            struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 3});
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
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4});
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
        if (h->outcomes[tag].end == ENGINE_END_FAULT)
            ck_assert_str_eq(h->outcomes[tag].fault, "the model produced no finite logit to sample");
        check_outcome(h, &request);
    }
    ck_assert_int_eq(faults, 1);
    check_idle(h);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_loop_test(tests, a_device_says_itself_what_became_of_it, 0, 2);
    tcase_add_loop_test(tests, a_device_that_fails_ends_every_request_with_the_reason, 0, 2);
    tcase_add_loop_test(tests, logits_that_are_not_finite_end_that_sequence_alone, 0, 2);
}

int main(void)
{
    return run_tests("device faults", add);
}
