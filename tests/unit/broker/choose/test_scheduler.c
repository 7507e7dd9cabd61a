/* SPDX-License-Identifier: MIT */
/* The choice of a worker, from the broker's own books. */

#include "broker/choose/scheduler.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

static struct worker serving(const char *model, uint32_t slots)
{
    struct worker worker = {.state = WORKER_READY, .slots = slots, .peer = {.len = 5}};
    snprintf(worker.model, sizeof worker.model, "%s", model);
    return worker;
}

static struct worker *pick(struct worker *workers, size_t n, const char *model)
{
    struct worker *worker = NULL;
    const struct scheduler_wish wish = {.model = bytes_of_string(model)};
    ck_assert_int_eq(scheduler_pick(workers, n, &wish, &worker), 0);
    return worker;
}

START_TEST(load_spreads_by_what_was_assigned_and_comes_back_by_what_ended)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)};
    struct request large = {.decode = 1000}, small[3] = {{.decode = 10}, {.decode = 10}, {.decode = 10}};
    worker_take(pick(workers, 2, ""), &large);
    ck_assert_ptr_eq(large.worker, &workers[0]);
    for (int i = 0; i < 3; i++) {
        worker_take(pick(workers, 2, ""), &small[i]);
        ck_assert_ptr_eq(small[i].worker, &workers[1]);
    }
    worker_drop(&workers[0], &large);
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
    ck_assert_uint_eq(workers[0].load, 0);
}
END_TEST

START_TEST(embeddings_go_where_they_can_be_made)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4), serving("other", 4)};
    const struct scheduler_wish wish = {.model = BYTES_LITERAL("m"), .embed = true};
    struct worker *worker = NULL;
    workers[1].embedding = 64;
    workers[1].load = 1000;
    ck_assert_int_eq(scheduler_pick(workers, 3, &wish, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    workers[1].embedding = 0;
    ck_assert_int_eq(scheduler_pick(workers, 3, &wish, &worker), SCHEDULER_E_NO_WORKER);
    ck_assert(scheduler_lacks_embeddings(workers, 3, &wish));
    const struct scheduler_wish stranger = {.model = BYTES_LITERAL("x"), .embed = true};
    ck_assert(!scheduler_lacks_embeddings(workers, 3, &stranger));
    const struct scheduler_wish tokens = {.model = BYTES_LITERAL("m")};
    ck_assert(!scheduler_lacks_embeddings(workers, 3, &tokens));
    /* One that starts may turn out to make some. */
    workers[0].state = WORKER_STARTING;
    workers[0].model[0] = 0;
    ck_assert_int_eq(scheduler_pick(workers, 3, &wish, &worker), SCHEDULER_E_BUSY);
}
END_TEST

START_TEST(a_pair_goes_where_it_is_ranked)
{
    struct worker workers[] = {serving("embeds", 4), serving("ranks", 4)};
    const struct scheduler_wish pair = {.embed = true, .pair = true};
    struct worker *worker = NULL;
    workers[0].embedding = 64;
    ck_assert_int_eq(scheduler_pick(workers, 2, &pair, &worker), SCHEDULER_E_NO_WORKER);
    ck_assert(scheduler_lacks_embeddings(workers, 2, &pair));
    workers[1].embedding = 2;
    workers[1].ranks = true;
    workers[1].load = 1000;
    ck_assert_int_eq(scheduler_pick(workers, 2, &pair, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    workers[1].state = WORKER_FAILED;
    ck_assert_int_eq(scheduler_pick(workers, 2, &pair, &worker), SCHEDULER_E_NO_WORKER);
}
END_TEST

/* Whatever it is, if it names no model. */
START_TEST(what_is_no_pair_goes_to_no_model_that_ranks)
{
    struct worker workers[] = {serving("embeds", 4), serving("ranks", 4)};
    const struct scheduler_wish embed = {.embed = true}, text = {.bytes = REQUEST_BRIEF_BYTES + 1},
                                named = {.model = BYTES_LITERAL("ranks")};
    struct worker *worker = NULL;
    workers[0].embedding = workers[1].embedding = 64;
    workers[0].load = 1000;
    workers[1].ranks = true;
    ck_assert_int_eq(scheduler_pick(workers, 2, &embed, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[0]);
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
    scheduler_hold(workers, 2, &text);
    ck_assert(workers[0].held && !workers[1].held);
    scheduler_release(workers, 2);
    ck_assert_int_eq(scheduler_pick(workers, 2, &named, &worker), 0); /* it says itself that it cannot */
    ck_assert_ptr_eq(worker, &workers[1]);
    workers[0].embedding = 0;
    ck_assert_int_eq(scheduler_pick(workers, 2, &embed, &worker), SCHEDULER_E_NO_WORKER);
    ck_assert(scheduler_lacks_embeddings(workers, 2, &embed));
    workers[0].embedding = 64;
    workers[0].state = WORKER_STARTING;
    ck_assert_int_eq(scheduler_pick(workers, 2, &embed, &worker), SCHEDULER_E_BUSY); /* it is waited for */
    workers[0].state = WORKER_FAILED;
    ck_assert_int_eq(scheduler_pick(workers, 2, &embed, &worker), 0); /* where all rank, one says so */
    ck_assert_ptr_eq(worker, &workers[1]);
}
END_TEST

START_TEST(a_prompt_that_is_read_is_no_load_any_more)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)};
    struct request long_prompt = {.prefill = 1000, .decode = 10},
                   short_prompt = {.prefill = 10, .decode = 20};
    worker_take(&workers[0], &long_prompt);
    worker_take(&workers[1], &short_prompt);
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
    worker_prefilled(&workers[0], &long_prompt);
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
    worker_drop(&workers[0], &long_prompt);
    worker_drop(&workers[1], &short_prompt);
    ck_assert_uint_eq(workers[0].load, 0);
    ck_assert_uint_eq(workers[1].load, 0);
}
END_TEST

START_TEST(what_comes_one_by_one_goes_to_each_in_turn)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4), serving("m", 4)};
    unsigned got[3] = {0};
    for (int i = 0; i < 30; i++) {
        struct request request = {.prefill = 100, .decode = 10};
        struct worker *worker = pick(workers, 3, "");
        got[worker - workers]++;
        worker_take(worker, &request);
        worker_drop(worker, &request);
    }
    for (int i = 0; i < 3; i++)
        ck_assert_uint_eq(got[i], 10);
}
END_TEST

START_TEST(what_is_saved_at_a_worker_is_taken_off_its_load)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)}, *worker;
    const uint64_t saved[] = {0, 900};
    const struct scheduler_wish wish = {.saved = saved};
    workers[1].load = 899;
    ck_assert_int_eq(scheduler_pick(workers, 2, &wish, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    workers[1].load = 901;
    ck_assert_int_eq(scheduler_pick(workers, 2, &wish, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[0]);
}
END_TEST

START_TEST(unequal_workers_share_by_their_slots)
{
    struct worker workers[] = {serving("m", 2), serving("m", 8)};
    workers[0].load = 30;
    workers[1].load = 100;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
    workers[1].load = 130;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
}
END_TEST

START_TEST(a_full_worker_gets_nothing)
{
    struct worker workers[] = {serving("m", 1), serving("m", 1)}, *worker;
    struct request requests[8] = {{.decode = 1}};
    unsigned n = 0;
    const struct scheduler_wish any = {0};
    while (scheduler_pick(workers, 2, &any, &worker) == 0)
        worker_take(worker, &requests[n++]);
    ck_assert_uint_eq(n, 2 * worker_capacity(&workers[0]));
    ck_assert_int_eq(scheduler_pick(workers, 2, &any, &worker), SCHEDULER_E_BUSY);
}
END_TEST

START_TEST(a_model_is_matched_by_its_whole_name)
{
    struct worker workers[] = {serving("alpha", 1), serving("beta", 1)}, *worker;
    ck_assert_ptr_eq(pick(workers, 2, "beta"), &workers[1]);
    const struct scheduler_wish bet = {.model = BYTES_LITERAL("bet")};
    ck_assert_int_eq(scheduler_pick(workers, 2, &bet, &worker), SCHEDULER_E_NO_WORKER);
}
END_TEST

START_TEST(a_worker_that_starts_is_a_hope_and_one_that_failed_is_none)
{
    struct worker workers[] = {{.state = WORKER_STARTING}, {.state = WORKER_FAILED}}, *worker;
    const struct scheduler_wish any = {0}, m = {.model = BYTES_LITERAL("m")};
    ck_assert_int_eq(scheduler_pick(workers, 2, &m, &worker), SCHEDULER_E_BUSY);
    workers[0].state = WORKER_FAILED;
    ck_assert_int_eq(scheduler_pick(workers, 2, &any, &worker), SCHEDULER_E_NO_WORKER);
}
END_TEST

START_TEST(what_was_begun_with_a_model_goes_on_with_no_other)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)}, *worker;
    const uint8_t first[16] = {1}, second[16] = {2}, third[16] = {3};
    memcpy(workers[0].digest, first, sizeof first);
    memcpy(workers[1].digest, second, sizeof second);
    struct scheduler_wish wish = {.model = BYTES_LITERAL("m"), .digest = second};
    workers[1].load = 1000;
    ck_assert_int_eq(scheduler_pick(workers, 2, &wish, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    wish.digest = third;
    ck_assert_int_eq(scheduler_pick(workers, 2, &wish, &worker), SCHEDULER_E_NO_WORKER);
}
END_TEST

START_TEST(what_is_large_goes_to_a_worker_that_has_taken_what_was_sent_before)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)}, *worker;
    struct scheduler_wish large = {.bytes = 2 * WORKER_UNDER_WAY_BYTES}, brief = {.bytes = 1000};
    workers[0].under_way = workers[1].under_way = REQUEST_BRIEF_BYTES + 1;
    ck_assert_int_eq(scheduler_pick(workers, 2, &large, &worker), SCHEDULER_E_BUSY);
    ck_assert_int_eq(scheduler_pick(workers, 2, &brief, &worker), 0);
    workers[1].under_way = 0; /* one that is larger than the bound goes alone */
    ck_assert_int_eq(scheduler_pick(workers, 2, &large, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    large.bytes = WORKER_UNDER_WAY_BYTES / 2; /* others together */
    ck_assert_int_eq(scheduler_pick(workers, 2, &large, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[0]);
}
END_TEST

START_TEST(a_large_one_that_waits_for_a_link_to_itself_is_not_passed_by_smaller_ones)
{
    struct worker workers[] = {serving("m", 4), serving("other", 4)}, *worker;
    const struct scheduler_wish large = {.model = BYTES_LITERAL("m"), .bytes = 2 * WORKER_UNDER_WAY_BYTES},
                                small = {.embed = true, .bytes = REQUEST_BRIEF_BYTES + 1},
                                brief = {.bytes = REQUEST_BRIEF_BYTES};
    workers[0].embedding = workers[1].embedding = 64;
    workers[0].under_way = REQUEST_BRIEF_BYTES + 1;
    workers[1].load = 1000;
    ck_assert_int_eq(scheduler_pick(workers, 2, &large, &worker), SCHEDULER_E_BUSY);
    scheduler_hold(workers, 2, &brief); /* waits for no link, so it keeps none */
    ck_assert_int_eq(scheduler_pick(workers, 2, &small, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[0]);
    scheduler_hold(workers, 2, &large);
    ck_assert_int_eq(scheduler_pick(workers, 2, &small, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]); /* where the large one cannot go */
    ck_assert_int_eq(scheduler_pick(workers, 1, &small, &worker), SCHEDULER_E_BUSY);
    ck_assert_int_eq(scheduler_pick(workers, 1, &brief, &worker), 0);
    scheduler_release(workers, 2);
    ck_assert_int_eq(scheduler_pick(workers, 1, &small, &worker), 0);
}
END_TEST

START_TEST(large_requests_have_half_of_the_places_until_they_were_read)
{
    struct worker workers[] = {serving("m", 4)}, *worker;
    const struct scheduler_wish large = {.bytes = 100000}, brief = {.bytes = 1000};
    struct request requests[3], small = {.queued_kind = 0};
    for (int i = 0; i < 3; i++)
        requests[i] = (struct request){.prefill = 1, .queued_kind = REQUEST_BULKY};
    worker_take(&workers[0], &small);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(scheduler_pick(workers, 1, &large, &worker), 0);
        worker_take(worker, &requests[i]);
    }
    ck_assert_int_eq(scheduler_pick(workers, 1, &large, &worker), SCHEDULER_E_BUSY);
    ck_assert_int_eq(scheduler_pick(workers, 1, &brief, &worker), 0);
    worker_prefilled(&workers[0], &requests[0]);
    ck_assert_int_eq(scheduler_pick(workers, 1, &large, &worker), 0);
    for (int i = 0; i < 3; i++)
        worker_drop(&workers[0], &requests[i]);
    worker_drop(&workers[0], &small);
    ck_assert_uint_eq(workers[0].n_bulky, 0);
    ck_assert_uint_eq(workers[0].load, 0);
}
END_TEST

START_TEST(a_large_question_goes_to_a_worker_that_works_on_none)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)}, *worker;
    const struct bytes any = {0};
    workers[0].asked = 1;
    ck_assert_int_eq(scheduler_pick_any(workers, 2, any, true, &worker), 0);
    ck_assert_ptr_eq(worker, &workers[1]);
    workers[1].asked = 2;
    ck_assert_int_eq(scheduler_pick_any(workers, 2, any, true, &worker), SCHEDULER_E_BUSY);
    ck_assert_int_eq(scheduler_pick_any(workers, 2, any, false, &worker), 0);
    ck_assert_int_eq(scheduler_pick_any(workers, 2, BYTES_LITERAL("n"), true, &worker),
                     SCHEDULER_E_NO_WORKER);
}
END_TEST

START_TEST(at_equal_load_the_one_with_fewer_requests_is_better)
{
    struct worker workers[] = {serving("m", 4), serving("m", 4)};
    workers[0].n_requests = 1;
    workers[1].recent = 10;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
    workers[0] = workers[1];
    workers[1] = serving("m", 4);
    workers[1].n_requests = 1;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
    workers[1].n_requests = 0; /* then the one that got less lately */
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
}
END_TEST

START_TEST(without_load_the_number_of_slots_is_no_reason)
{
    struct worker workers[] = {serving("m", 2), serving("m", 8)};
    workers[0].n_requests = 1;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
    workers[0].n_requests = 0;
    workers[1].n_requests = 1;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
}
END_TEST

START_TEST(a_worker_without_slots_counts_as_one_with_one)
{
    struct worker workers[] = {serving("m", 0), serving("m", 1)};
    workers[0].load = 3;
    workers[1].load = 2;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[1]);
    struct worker other[] = {workers[1], workers[0]};
    ck_assert_ptr_eq(pick(other, 2, ""), &other[0]);
    workers[0].load = 2;
    workers[1].load = 3;
    ck_assert_ptr_eq(pick(workers, 2, ""), &workers[0]);
}
END_TEST

START_TEST(one_that_is_started_again_is_a_hope_for_its_own_model_alone)
{
    struct worker worker = {.state = WORKER_STARTING, .model = "m"}, *chosen;
    const struct scheduler_wish m = {.model = BYTES_LITERAL("m")}, x = {.model = BYTES_LITERAL("x")};
    ck_assert_int_eq(scheduler_pick(&worker, 1, &m, &chosen), SCHEDULER_E_BUSY);
    ck_assert_int_eq(scheduler_pick(&worker, 1, &x, &chosen), SCHEDULER_E_NO_WORKER);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_test(tests, what_is_large_goes_to_a_worker_that_has_taken_what_was_sent_before);
    tcase_add_test(tests, a_large_one_that_waits_for_a_link_to_itself_is_not_passed_by_smaller_ones);
    tcase_add_test(tests, large_requests_have_half_of_the_places_until_they_were_read);
    tcase_add_test(tests, a_large_question_goes_to_a_worker_that_works_on_none);
    tcase_add_test(tests, load_spreads_by_what_was_assigned_and_comes_back_by_what_ended);
    tcase_add_test(tests, embeddings_go_where_they_can_be_made);
    tcase_add_test(tests, a_pair_goes_where_it_is_ranked);
    tcase_add_test(tests, what_is_no_pair_goes_to_no_model_that_ranks);
    tcase_add_test(tests, a_prompt_that_is_read_is_no_load_any_more);
    tcase_add_test(tests, what_comes_one_by_one_goes_to_each_in_turn);
    tcase_add_test(tests, what_is_saved_at_a_worker_is_taken_off_its_load);
    tcase_add_test(tests, unequal_workers_share_by_their_slots);
    tcase_add_test(tests, a_full_worker_gets_nothing);
    tcase_add_test(tests, a_model_is_matched_by_its_whole_name);
    tcase_add_test(tests, what_was_begun_with_a_model_goes_on_with_no_other);
    tcase_add_test(tests, a_worker_that_starts_is_a_hope_and_one_that_failed_is_none);
    tcase_add_test(tests, at_equal_load_the_one_with_fewer_requests_is_better);
    tcase_add_test(tests, without_load_the_number_of_slots_is_no_reason);
    tcase_add_test(tests, a_worker_without_slots_counts_as_one_with_one);
    tcase_add_test(tests, one_that_is_started_again_is_a_hope_for_its_own_model_alone);
}

int main(void)
{
    return run_tests("broker/scheduler", add);
}
