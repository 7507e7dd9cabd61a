/* SPDX-License-Identifier: MIT */
/* The life of a request, step by step: who holds it, what is told of it, and what the books say. */

#include "broker/core/lifecycle.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#include <string.h>

#include "common/clock.h"

#define S  CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

/* ---- assignment ---- */

static void in_five_seconds(struct generation *generation)
{
    generation->deadline_ms = 5000;
    generation->has_seed = true;
    generation->sampling.seed = 42;
}

START_TEST(a_worker_is_told_what_was_fixed_and_what_time_is_left)
{
    struct request *request = inside_admit(0, 'r', in_five_seconds);
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    ck_assert_uint_eq(broker->admission.queued, 1);
    inside_pass(1500 * MS);
    lifecycle_dispatch(broker);
    ck_assert_uint_eq(broker->admission.queued, 0);
    ck_assert_uint_eq(broker->queue.n, 0);
    struct message assign = worker_hears((int)request->worker->index);
    ck_assert_int_eq(assign.kind, MESSAGE_ASSIGN);
    ck_assert_mem_eq(&assign.assign.session, &request->home.session, 16);
    ck_assert_mem_eq(&assign.assign.id, &request->home.id, 16);
    ck_assert_uint_eq(assign.assign.epoch.boot, INSIDE_BOOT);
    ck_assert_uint_eq(assign.assign.epoch.move, 0);
    ck_assert_uint_eq(assign.assign.deadline_left_ms, 3500);
    ck_assert_uint_eq(assign.assign.queue_us, 1500000);
    ck_assert(assign.assign.generation.has_seed);
    ck_assert_uint_eq(assign.assign.generation.sampling.seed, 42);
    ck_assert_text(assign.assign.generation.prompt.text, "a prompt");
    ck_assert_uint_eq(assign.assign.generation.output.n, 0);
}
END_TEST

START_TEST(who_chose_no_seed_has_the_one_that_he_was_told)
{
    struct message accepted = client_generates(0, 'r', NULL);
    lifecycle_dispatch(broker);
    struct request *request = inside_find(0, 'r');
    struct message assign = worker_hears((int)request->worker->index);
    ck_assert_uint_eq(assign.assign.generation.sampling.seed, accepted.accepted.seed);
    ck_assert(assign.assign.generation.has_seed);
    ck_assert_uint_eq(assign.assign.deadline_left_ms, 0); /* none */
}
END_TEST

START_TEST(the_last_millisecond_of_a_deadline_is_no_endless_one)
{
    struct request *request = inside_admit(0, 'r', in_five_seconds);
    inside_pass(5 * S - 1);
    lifecycle_dispatch(broker);
    ck_assert_uint_eq(worker_hears((int)request->worker->index).assign.deadline_left_ms, 1);
}
END_TEST

START_TEST(what_is_over_in_the_queue_is_given_to_nobody)
{
    inside_admit(0, 'r', in_five_seconds);
    inside_pass(5 * S);
    lifecycle_dispatch(broker);
    expect_end(0, 0, END_DEADLINE);
    inside_admit(0, 's', in_five_seconds);
    inside_pass(5 * S - 1);
    lifecycle_expire(broker);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
    inside_pass(1);
    lifecycle_expire(broker);
    expect_end(0, 0, END_DEADLINE);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_NONE);
    ck_assert_int_eq(worker_hears(1).kind, MESSAGE_NONE);
    ck_assert_uint_eq(broker->counters.ended, 2);
}
END_TEST

static void embedding(struct generation *generation)
{
    generation->embed = true;
    generation->max_tokens = 0;
}

START_TEST(what_nobody_can_run_any_more_ends_and_says_why)
{
    inside_admit(0, 'r', NULL);
    struct request *moved = inside_admit(1, 's', NULL);
    moved->epoch.move = 1;
    broker->workers[0].state = broker->workers[1].state = WORKER_FAILED;
    lifecycle_dispatch(broker);
    expect_failure(0, 0, PROTO_NO_WORKER, "no worker serves this request any more");
    expect_failure(1, 0, PROTO_WORKER_LOST, "no worker is left to continue it");
    broker->workers[0].state = broker->workers[1].state = WORKER_READY;
    broker->workers[0].embedding = 4;
    inside_admit(0, 'e', embedding);
    broker->workers[0].embedding = 0;
    lifecycle_dispatch(broker);
    expect_failure(0, 0, PROTO_UNSUPPORTED, LIFECYCLE_NO_EMBEDDINGS);
}
END_TEST

START_TEST(no_more_is_given_than_workers_take)
{
    const uint32_t room = 2 * worker_capacity(&broker->workers[0]);
    for (uint32_t i = 0; i < room + 1; i++)
        inside_admit(0, (uint8_t)i, NULL);
    lifecycle_dispatch(broker);
    ck_assert_uint_eq(broker->queue.n, 1);
    ck_assert_uint_eq(broker->workers[0].n_requests, room / 2);
    ck_assert_uint_eq(broker->workers[1].n_requests, room / 2);
    lifecycle_end_here(broker, broker->workers[1].requests, &(struct ending){.reason = END_STOP});
    lifecycle_dispatch(broker);
    ck_assert_uint_eq(broker->queue.n, 0);
}
END_TEST

START_TEST(a_request_that_was_given_stays_with_its_model)
{
    static const uint8_t other[16] = {8};
    struct request *request = run_on_first('r', NULL);
    make(request, 2);
    ck_assert(request->has_digest);
    memcpy(broker->workers[1].digest, other, sizeof other);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    ck_assert_int_eq(request->state, REQUEST_QUEUED); /* the other would go on with something else */
    memcpy(broker->workers[1].digest, broker->workers[0].digest, sizeof other);
    lifecycle_dispatch(broker);
    ck_assert_ptr_eq(request->worker, &broker->workers[1]);
}
END_TEST

/* ---- the end ---- */

START_TEST(a_request_ends_once_and_its_room_is_given_back)
{
    struct request *request = run_on_first('r', NULL);
    ck_assert_uint_eq(broker->counters.admitted, 1);
    ck_assert_uint_gt(broker->workers[0].load, 0);
    make(request, 3);
    ck_assert_uint_eq(broker->counters.tokens, 3);
    inside_produce(request, 2, END_LENGTH);
    struct message frame = client_listens(0);
    ck_assert_uint_eq(frame.frame.seq, 3);
    ck_assert(frame.frame.has_end);
    struct message end = client_hears(0);
    ck_assert_uint_eq(end.end.count, 5);
    ck_assert_uint_eq(end.end.end.usage.prompt_tokens, 3);
    ck_assert_uint_eq(end.end.epoch.boot, INSIDE_BOOT);
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_uint_eq(broker->counters.ended, 1);
    ck_assert_uint_eq(broker->counters.tokens, 5);
    ck_assert_uint_eq(broker->workers[0].n_requests, 0);
    ck_assert_ptr_null(request->session);
    ck_assert_ptr_null(request->share);
    ck_assert_uint_eq(broker->journal.used, broker->journal.settled);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(a_cancel_ends_what_waits_and_is_told_once_to_who_runs_it)
{
    struct request *request = inside_admit(0, 'q', NULL);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_uint_eq(broker->queue.n, 0);
    ck_assert_uint_eq(broker->admission.queued, 0);
    expect_end(0, 0, END_CANCELLED);
    request = run_on_first('r', NULL);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    struct message cancel = worker_hears(0);
    ck_assert_int_eq(cancel.kind, MESSAGE_CANCEL);
    ck_assert_mem_eq(&cancel.cancel.id, &request->home.id, 16);
    ck_assert_mem_eq(&cancel.cancel.session, &request->home.session, 16);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_NONE);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(a_cancel_that_is_not_heeded_is_done_here_after_two_seconds)
{
    struct request *request = run_on_first('r', NULL);
    make(request, 2);
    lifecycle_cancel(broker, request);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_CANCEL);
    inside_pass(2 * S - 1);
    lifecycle_end_overdue(broker);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    inside_pass(1);
    broker->workers[0].drained = false; /* it may have said its end, which is not read yet */
    lifecycle_end_overdue(broker);
    ck_assert_int_eq(request->state, REQUEST_CANCELLING);
    broker->workers[0].drained = true;
    lifecycle_end_overdue(broker);
    expect_end(0, 2, END_CANCELLED);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(a_deadline_that_is_not_heeded_is_held_here_two_seconds_later)
{
    struct request *request = run_on_first('r', in_five_seconds);
    run_on_first('s', NULL); /* which has none */
    inside_pass(7 * S - 1);
    lifecycle_end_overdue(broker);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    inside_pass(1);
    lifecycle_end_overdue(broker);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_CANCEL);
    expect_end(0, 0, END_DEADLINE);
    inside_pass(1000 * S);
    lifecycle_end_overdue(broker);
    ck_assert_uint_eq(broker->workers[0].n_requests, 1);
}
END_TEST

START_TEST(all_ends_with_the_reason_when_the_broker_leaves)
{
    run_on_first('r', NULL);
    inside_admit(1, 'q', NULL);
    lifecycle_end_all(broker, "good night");
    expect_failure(0, 0, PROTO_DRAINING, "good night");
    expect_failure(1, 0, PROTO_DRAINING, "good night");
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_CANCEL);
    ck_assert_uint_eq(broker_n_alive(broker), 0);
}
END_TEST

/* ---- finished ---- */

static struct message finished(const struct request *request, uint64_t wseq, uint64_t count)
{
    struct message message = {.kind = MESSAGE_FINISHED};
    message.finished.session = request->home.session;
    message.finished.id = request->home.id;
    message.finished.epoch = request->epoch;
    message.finished.wseq = wseq;
    message.finished.count = count;
    message.finished.end = (struct ending){.reason = END_LENGTH, .usage = {3, 0, (uint32_t)count}};
    return message;
}

START_TEST(a_request_that_finished_ends_when_its_frames_are_here)
{
    struct request *request = run_on_first('r', NULL);
    make(request, 2);
    struct message message = finished(request, 2, 4);
    worker_says(0, &message);
    worker_says(0, &message); /* said again */
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    ck_assert_uint_eq(broker->workers[0].n_finished, 1);
    inside_produce(request, 2, END_REASON_COUNT);
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_uint_eq(broker->workers[0].n_finished, 0);
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 2);
    expect_end(0, 4, END_LENGTH);
}
END_TEST

START_TEST(a_request_that_finished_ends_at_once_if_all_is_here)
{
    struct request *request = run_on_first('r', NULL);
    make(request, 2);
    struct message message = finished(request, 1, 2);
    worker_says(0, &message);
    expect_end(0, 2, END_LENGTH);
}
END_TEST

START_TEST(a_worker_that_counts_otherwise_than_its_frames_is_not_believed)
{
    struct request *request = run_on_first('r', NULL);
    make(request, 2);
    struct message message = finished(request, 1, 3);
    worker_says(0, &message);
    expect_failure(0, 2, PROTO_INTERNAL, "worker-0 generated 3 tokens, but 2 arrived");
}
END_TEST

START_TEST(who_does_not_have_a_request_does_not_finish_it)
{
    struct request *request = run_on_first('r', NULL);
    struct message message = finished(request, 0, 0);
    worker_says(1, &message);
    message.finished.epoch.move++;
    worker_says(0, &message);
    message = finished(request, 0, 0);
    message.finished.id.bytes[0]++;
    worker_says(0, &message);
    ck_assert_int_eq(request->state, REQUEST_RUNNING);
    ck_assert(!request->finished);
}
END_TEST

/* ---- what is counted, what is kept ---- */

START_TEST(tokens_count_for_the_key_of_who_asked)
{
    static struct client_key key = {.number = 5};
    HASH_ADD(by_number, broker->client_keys.by_number, number, sizeof key.number, &key);
    broker->allowance.tokens = 1000;
    sessions[0]->key = 5;
    struct request *request = run_on_first('r', NULL);
    make(request, 4);
    ck_assert_double_eq(key.tokens, 996);
    inside_produce(request, 1, END_STOP); /* and three that were read */
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    ck_assert_double_eq(key.tokens, 992);
    sessions[0]->key = 0;
    request = run_on_first('s', NULL);
    inside_produce(request, 1, END_STOP);
    ck_assert_double_eq(key.tokens, 992);
    HASH_CLEAR(by_number, broker->client_keys.by_number);
}
END_TEST

START_TEST(who_says_what_he_has_taken_is_waited_for)
{
    ck_assert(!lifecycle_is_awaited(broker));
    struct request *request = run_on_first('r', NULL);
    sessions[0]->tells = true;
    ck_assert(!lifecycle_is_awaited(broker)); /* it runs: that is another wait */
    inside_produce(request, 1, END_STOP);
    ck_assert(lifecycle_is_awaited(broker));
    sessions[0]->tells = false;
    ck_assert(!lifecycle_is_awaited(broker));
    sessions[0]->tells = true;
    lifecycle_taken(broker, sessions[1], request->home.id); /* whose it is not */
    lifecycle_taken(broker, sessions[0], inside_id('x'));
    ck_assert(lifecycle_is_awaited(broker));
    lifecycle_taken(broker, sessions[0], request->home.id);
    ck_assert(!lifecycle_is_awaited(broker));
}
END_TEST

START_TEST(what_ended_is_forgotten_after_a_minute)
{
    inside_produce(run_on_first('r', NULL), 1, END_STOP);
    inside_pass(60 * S - 1);
    lifecycle_forget(broker);
    ck_assert_ptr_nonnull(inside_find(0, 'r'));
    inside_pass(1);
    lifecycle_forget(broker);
    ck_assert_ptr_null(inside_find(0, 'r'));
    ck_assert_uint_eq(broker->journal.used, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, inside_set_up, inside_tear_down);
    tcase_add_test(tests, a_worker_is_told_what_was_fixed_and_what_time_is_left);
    tcase_add_test(tests, who_chose_no_seed_has_the_one_that_he_was_told);
    tcase_add_test(tests, the_last_millisecond_of_a_deadline_is_no_endless_one);
    tcase_add_test(tests, what_is_over_in_the_queue_is_given_to_nobody);
    tcase_add_test(tests, what_nobody_can_run_any_more_ends_and_says_why);
    tcase_add_test(tests, no_more_is_given_than_workers_take);
    tcase_add_test(tests, a_request_that_was_given_stays_with_its_model);
    tcase_add_test(tests, a_request_ends_once_and_its_room_is_given_back);
    tcase_add_test(tests, a_cancel_ends_what_waits_and_is_told_once_to_who_runs_it);
    tcase_add_test(tests, a_cancel_that_is_not_heeded_is_done_here_after_two_seconds);
    tcase_add_test(tests, a_deadline_that_is_not_heeded_is_held_here_two_seconds_later);
    tcase_add_test(tests, all_ends_with_the_reason_when_the_broker_leaves);
    tcase_add_test(tests, a_request_that_finished_ends_when_its_frames_are_here);
    tcase_add_test(tests, a_request_that_finished_ends_at_once_if_all_is_here);
    tcase_add_test(tests, a_worker_that_counts_otherwise_than_its_frames_is_not_believed);
    tcase_add_test(tests, who_does_not_have_a_request_does_not_finish_it);
    tcase_add_test(tests, tokens_count_for_the_key_of_who_asked);
    tcase_add_test(tests, who_says_what_he_has_taken_is_waited_for);
    tcase_add_test(tests, what_ended_is_forgotten_after_a_minute);
}

int main(void)
{
    return run_tests("broker/lifecycle", add);
}
