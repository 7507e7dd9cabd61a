/* SPDX-License-Identifier: MIT */
/* The broker's books about a worker: whether it may have more, and that they are even when all has ended. */

#include "broker/choose/worker.h"
#include "tests/unit/run.h"

START_TEST(one_serves_that_is_ready_and_can_be_sent_to)
{
    struct worker worker = {.state = WORKER_READY};
    ck_assert(!worker_is_serving(&worker));
    worker.peer.len = 5;
    ck_assert(worker_is_serving(&worker));
    for (int state = 0; state < WORKER_STATE_COUNT; state++) {
        worker.state = (enum worker_state)state;
        ck_assert_int_eq(worker_is_serving(&worker), state == WORKER_READY);
    }
}
END_TEST

START_TEST(one_that_is_ready_may_say_that_it_ends)
{
    for (int state = 0; state < WORKER_STATE_COUNT; state++) {
        struct worker worker = {.state = (enum worker_state)state};
        worker_is_ending(&worker, 7);
        bool ends = state == WORKER_READY;
        ck_assert_int_eq(worker.state, ends ? WORKER_DRAINING : state);
        ck_assert_uint_eq(worker.ending_ns, ends ? 7 : 0);
        worker_is_ending(&worker, 9); /* said again */
        ck_assert_uint_eq(worker.ending_ns, ends ? 7 : 0);
    }
}
END_TEST

START_TEST(a_model_has_its_own_name_and_its_aliases)
{
    struct worker worker = {.model = "m", .aliases = {BYTES_LITERAL("gpt-4o"), BYTES_LITERAL("llama")}};
    worker.n_aliases = 2;
    ck_assert(worker_answers_to(&worker, BYTES_LITERAL("m")));
    ck_assert(worker_answers_to(&worker, BYTES_LITERAL("gpt-4o")));
    ck_assert(worker_answers_to(&worker, BYTES_LITERAL("llama")));
    ck_assert(!worker_answers_to(&worker, BYTES_LITERAL("gpt-4")));
    ck_assert(!worker_answers_to(&worker, BYTES_LITERAL("")));
    worker.n_aliases = 1;
    ck_assert(!worker_answers_to(&worker, BYTES_LITERAL("llama")));
}
END_TEST

START_TEST(a_worker_has_a_few_more_than_its_slots)
{
    struct worker worker = {.slots = 1};
    ck_assert_uint_eq(worker_capacity(&worker), 2);
    worker.slots = 64;
    ck_assert_uint_eq(worker_capacity(&worker), 73);
}
END_TEST

START_TEST(large_requests_go_one_by_one_and_leave_half_of_the_places)
{
    struct worker worker = {.slots = 7}; /* eight places */
    const size_t large = REQUEST_BRIEF_BYTES + 1, huge = 4 * WORKER_UNDER_WAY_BYTES;
    ck_assert(worker_may_be_sent(&worker, huge));
    worker.under_way = 1;
    ck_assert(!worker_may_be_sent(&worker, huge));
    worker.under_way = WORKER_UNDER_WAY_BYTES - large;
    ck_assert(worker_may_be_sent(&worker, large));
    worker.under_way++;
    ck_assert(!worker_may_be_sent(&worker, large));
    ck_assert(worker_may_be_sent(&worker, large - 1));
    worker.under_way = 0;
    worker.n_bulky = 3;
    ck_assert(worker_may_be_sent(&worker, large));
    worker.n_bulky = 4;
    ck_assert(!worker_may_be_sent(&worker, large));
    ck_assert(worker_may_be_sent(&worker, large - 1));
}
END_TEST

static struct request make(bool brief, uint32_t prefill, uint32_t decode)
{
    return (struct request){.queued_kind = brief ? 0 : REQUEST_BULKY, .prefill = prefill, .decode = decode};
}

START_TEST(load_is_what_is_still_to_be_done)
{
    struct worker worker = {.slots = 8};
    struct request brief = make(true, 10, 100), large = make(false, 2000, 50);
    worker_take(&worker, &brief);
    worker_take(&worker, &large);
    ck_assert_ptr_eq(worker.requests, &brief);
    ck_assert_ptr_eq(large.worker, &worker);
    ck_assert_uint_eq(worker.n_requests, 2);
    ck_assert_uint_eq(worker.n_bulky, 1);
    ck_assert_uint_eq(worker.load, 2160);
    worker_prefilled(&worker, &large);
    ck_assert_uint_eq(worker.n_bulky, 0);
    ck_assert_uint_eq(worker.load, 160);
    worker_drop(&worker, &brief); /* before it was read */
    ck_assert_ptr_null(brief.worker);
    ck_assert_uint_eq(worker.load, 50);
    large.finished = true;
    worker.n_finished = 1;
    worker_drop(&worker, &large);
    ck_assert(!large.finished);
    ck_assert_ptr_null(worker.requests);
    ck_assert_uint_eq(worker.n_requests, 0);
    ck_assert_uint_eq(worker.n_bulky, 0);
    ck_assert_uint_eq(worker.n_finished, 0);
    ck_assert_uint_eq(worker.load, 0);
    ck_assert_uint_eq(worker.recent, 2160);
}
END_TEST

START_TEST(a_request_that_moves_is_read_again)
{
    struct worker first = {.slots = 8}, second = {.slots = 8};
    struct request request = make(false, 300, 40);
    worker_take(&first, &request);
    worker_prefilled(&first, &request);
    worker_drop(&first, &request);
    worker_take(&second, &request);
    ck_assert(!request.prefilled);
    ck_assert_uint_eq(second.n_bulky, 1);
    ck_assert_uint_eq(second.load, 340);
    worker_drop(&second, &request);
    ck_assert_uint_eq(second.n_bulky, 0);
    ck_assert_uint_eq(first.load + second.load, 0);
}
END_TEST

START_TEST(large_requests_are_counted_until_they_were_read)
{
    struct worker worker = {.slots = 8};
    struct request first = make(false, 1, 1), second = make(false, 1, 1);
    worker_take(&worker, &first);
    worker_take(&worker, &second);
    ck_assert_uint_eq(worker.n_bulky, 2);
    worker_drop(&worker, &first);
    ck_assert_uint_eq(worker.n_bulky, 1);
    worker_prefilled(&worker, &second);
    worker_drop(&worker, &second);
    ck_assert_uint_eq(worker.n_bulky, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, one_serves_that_is_ready_and_can_be_sent_to);
    tcase_add_test(tests, one_that_is_ready_may_say_that_it_ends);
    tcase_add_test(tests, a_model_has_its_own_name_and_its_aliases);
    tcase_add_test(tests, a_worker_has_a_few_more_than_its_slots);
    tcase_add_test(tests, large_requests_go_one_by_one_and_leave_half_of_the_places);
    tcase_add_test(tests, load_is_what_is_still_to_be_done);
    tcase_add_test(tests, a_request_that_moves_is_read_again);
    tcase_add_test(tests, large_requests_are_counted_until_they_were_read);
}

int main(void)
{
    return run_tests("broker/worker", add);
}
