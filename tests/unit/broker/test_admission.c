/* SPDX-License-Identifier: MIT */
/* Admission: the bounds of the queue, the time to come back, and what is fixed at the door. */

#include "broker/admission.h"
#include "common/clock.h"
#include "tests/unit/run.h"

START_TEST(the_queue_is_bounded_in_requests_and_in_bytes)
{
    struct admission admission = {.max_queued = 2, .max_queued_bytes = 100};
    ck_assert(admission_has_room(&admission, 100));
    ck_assert(!admission_has_room(&admission, 101));
    admission_queued(&admission, 60);
    ck_assert(!admission_has_room(&admission, 41));
    ck_assert(admission_has_room(&admission, 40));
    admission_queued(&admission, 10);
    ck_assert(!admission_has_room(&admission, 1));
    admission_dequeued(&admission, 60);
    ck_assert(admission_has_room(&admission, 90));
}
END_TEST

START_TEST(the_retry_time_follows_the_rate_of_ends_and_is_bounded)
{
    struct admission admission = {.max_queued = 10000, .max_queued_bytes = 1 << 20};
    admission.queued = 8000;
    ck_assert_uint_eq(admission_retry_ms(&admission), 10000);
    uint64_t now = CLOCK_NS_PER_S;
    for (int i = 0; i < 10000; i++)
        admission_ended(&admission, now += CLOCK_NS_PER_MS);
    uint32_t at_a_thousand = admission_retry_ms(&admission);
    ck_assert_uint_ge(at_a_thousand, 900);
    ck_assert_uint_le(at_a_thousand, 1100);
    admission.queued = 0;
    ck_assert_uint_eq(admission_retry_ms(&admission), 100);
    admission_ended(&admission, now + 100 * CLOCK_NS_PER_S);
    admission.queued = 8000;
    ck_assert_uint_eq(admission_retry_ms(&admission), 10000);
}
END_TEST

START_TEST(a_seed_is_drawn_only_for_those_who_chose_none)
{
    struct request request = {0};
    struct generation generation;
    generation_defaults(&generation);
    admission_fix(&request, &generation, 42, 1000);
    ck_assert_uint_eq(request.seed, 42);
    generation.has_seed = true;
    generation.sampling.seed = 7;
    admission_fix(&request, &generation, 42, 1000);
    ck_assert_uint_eq(request.seed, 7);
}
END_TEST

START_TEST(a_deadline_counts_from_arrival_and_an_endless_one_is_none)
{
    struct request request = {.deadline_ns = UINT64_MAX};
    struct generation generation;
    generation_defaults(&generation);
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, UINT64_MAX);
    generation.deadline_ms = UINT64_MAX;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, UINT64_MAX);
    generation.deadline_ms = 3;
    admission_fix(&request, &generation, 0, 1000);
    ck_assert_uint_eq(request.deadline_ns, 1000 + 3 * CLOCK_NS_PER_MS);
}
END_TEST

START_TEST(the_cost_is_the_prompt_and_what_may_come)
{
    struct request request = {0};
    struct generation generation;
    generation_defaults(&generation);
    generation.max_tokens = 10;
    generation.prompt.form = PROMPT_IDS;
    generation.prompt.ids.n = 33;
    admission_fix(&request, &generation, 0, 0);
    ck_assert_uint_eq(request.cost, 43);
    generation.prompt.form = PROMPT_TEXT;
    generation.prompt.text.len = 400;
    admission_fix(&request, &generation, 0, 0);
    ck_assert_uint_eq(request.cost, 111);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, the_queue_is_bounded_in_requests_and_in_bytes);
    tcase_add_test(tests, the_retry_time_follows_the_rate_of_ends_and_is_bounded);
    tcase_add_test(tests, a_seed_is_drawn_only_for_those_who_chose_none);
    tcase_add_test(tests, a_deadline_counts_from_arrival_and_an_endless_one_is_none);
    tcase_add_test(tests, the_cost_is_the_prompt_and_what_may_come);
}

int main(void)
{
    return run_tests("broker/admission", add);
}
