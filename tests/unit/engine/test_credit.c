/* SPDX-License-Identifier: MIT */
/* Credit: a sequence makes as many ids as it may, gives its place to others, and goes on when it gets more.
 */

#include "common/clock.h"
#include "tests/unit/engine/harness.h"

static uint64_t lasting(struct engine_request *request)
{
    return request->sampling.seed = lasting_seed(request, request->max_tokens);
}

START_TEST(without_credit_a_sequence_stops_exactly_and_its_slot_is_free)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 1});
    struct engine_request held = request_of(1, 40, 100), other = request_of(2, 10, 20);
    lasting(&held);
    held.credit = 7;
    submit(h, &held);
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[1].ids.len, 7);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_RUNNING);
    ck_assert_uint_eq(stats_of(h).active, 0);
    ck_assert_uint_eq(stats_of(h).waiting, 1);
    ck_assert_uint_eq(stats_of(h).held, 1);
    ck_assert_uint_eq(fake_script.open_slots, 0);
    ck_assert(engine_is_idle(h->engine));
    submit(h, &other); /* has the only slot now */
    ck_assert(!engine_is_idle(h->engine));
    run_dry(h);
    check_outcome(h, &other);
    ck_assert(engine_credit(h->engine, 1, 5)); /* less than it has: nothing changes */
    ck_assert(engine_is_idle(h->engine));
    ck_assert(engine_credit(h->engine, 1, 41));
    ck_assert(!engine_is_idle(h->engine));
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[1].ids.len, 41);
    ck_assert(engine_credit(h->engine, 1, 1000)); /* more than there will be */
    run_dry(h);
    check_outcome(h, &held);
    ck_assert(!engine_credit(h->engine, 1, 1000)); /* it is over */
    ck_assert_uint_eq(stats_of(h).preemptions, 0);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(credit_that_comes_in_time_is_not_noticed)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 4});
    struct engine_request request = request_of(3, 20, 200);
    struct error err;
    lasting(&request);
    request.credit = 20;
    submit(h, &request);
    while (engine_step(h->engine, &err) == 1) {
        ck_assert_uint_eq(stats_of(h).held, 0);
        if (h->outcomes[3].end == ENGINE_RUNNING)
            ck_assert(engine_credit(h->engine, 3, (uint32_t)h->outcomes[3].ids.len + 10));
    }
    check_outcome(h, &request);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(what_waits_for_credit_can_be_cancelled_and_has_deadlines)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 2});
    for (uint64_t tag = 1; tag <= 2; tag++) {
        struct engine_request request = request_of(tag, 20, 200);
        lasting(&request);
        request.credit = 3;
        request.deadline_ns = tag == 2 ? clock_ns() + 30 * CLOCK_NS_PER_MS : 0;
        submit(h, &request);
    }
    while (h->outcomes[2].end == ENGINE_RUNNING) /* its owner looks now and then */
        run_dry(h);
    ck_assert_int_eq(h->outcomes[2].end, ENGINE_END_DEADLINE);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_RUNNING);
    ck_assert(engine_cancel(h->engine, 1));
    ck_assert(!engine_is_idle(h->engine));
    run_dry(h);
    ck_assert_int_eq(h->outcomes[1].end, ENGINE_END_CANCELLED);
    ck_assert_uint_eq(h->outcomes[1].ids.len, 3);
    check_idle(h);
    harness_free(h);
}
END_TEST

START_TEST(one_that_is_resumed_counts_what_it_has_made)
{
    struct harness *h = harness_start(_i, (struct backend_config){.n_slots = 2});
    struct engine_request request = request_of(4, 20, 60);
    int32_t ids[64];
    struct buffer text = {0};
    enum engine_end end;
    lasting(&request);
    uint32_t n = undisturbed(&request, ids, &text, &end);
    ck_assert_uint_eq(n, 60);
    request.output = ids;
    request.n_output = 30;
    request.text_offset = 30;
    request.credit = 30;
    h->outcomes[4].n_before = 30;
    submit(h, &request);
    ck_assert(engine_is_idle(h->engine));
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[4].ids.len, 0);
    ck_assert(engine_credit(h->engine, 4, 31));
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[4].ids.len, 1);
    ck_assert_int_eq(h->outcomes[4].ids.data[0], ids[30]);
    ck_assert(engine_credit(h->engine, 4, 60));
    run_dry(h);
    ck_assert_uint_eq(h->outcomes[4].ids.len, 30);
    ck_assert_mem_eq(h->outcomes[4].ids.data, ids + 30, 30 * sizeof *ids);
    ck_assert_int_eq(h->outcomes[4].end, ENGINE_END_LENGTH);
    check_idle(h);
    buffer_deinit(&text);
    harness_free(h);
}
END_TEST

/* However credit comes, and with too few slots and blocks: each makes what it would have made alone, and
 * never more than it may. */
START_TEST(credit_in_drops_changes_no_answer)
{
    enum { REQUESTS = 120 };
    struct harness *h =
        harness_start(_i, (struct backend_config){.n_slots = 5, .n_blocks = 14, .max_rows = 48});
    uint32_t credit[REQUESTS + 1] = {0};
    struct error err = {0};
    srand(7);
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        struct engine_request request = request_of(tag, 1 + (uint32_t)tag % 50, 150);
        credit[tag] = request.credit = 1 + (uint32_t)rand() % 40;
        submit(h, &request);
    }
    for (uint64_t steps = 0; h->n_ended < REQUESTS; steps++) {
        ck_assert_uint_lt(steps, 200000);
        uint64_t tag = 1 + (uint64_t)rand() % REQUESTS;
        credit[tag] += (uint32_t)rand() % 30;
        engine_credit(h->engine, tag, credit[tag]);
        fake_script.abandon_at = rand() % 50 == 0 ? fake_script.steps + 1 : 0;
        ck_assert_int_ge(engine_step(h->engine, &err), 0);
        for (uint64_t i = 1; i <= REQUESTS; i++)
            ck_assert_uint_le(h->outcomes[i].ids.len, credit[i]);
    }
    for (uint64_t tag = 1; tag <= REQUESTS; tag++) {
        struct engine_request request = request_of(tag, 1 + (uint32_t)tag % 50, 150);
        check_outcome(h, &request);
    }
    run_dry(h);
    check_idle(h);
    harness_free(h);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 120);
    tcase_add_loop_test(tests, without_credit_a_sequence_stops_exactly_and_its_slot_is_free, 0, 2);
    tcase_add_loop_test(tests, credit_that_comes_in_time_is_not_noticed, 0, 2);
    tcase_add_loop_test(tests, what_waits_for_credit_can_be_cancelled_and_has_deadlines, 0, 2);
    tcase_add_loop_test(tests, one_that_is_resumed_counts_what_it_has_made, 0, 2);
    tcase_add_loop_test(tests, credit_in_drops_changes_no_answer, 0, 4);
}

int main(void)
{
    return run_tests("engine/credit", add);
}
