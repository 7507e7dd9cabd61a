/* SPDX-License-Identifier: MIT */
/* What becomes of requests whose worker dies, leaves, ends, or was an earlier broker's. */

#include "tests/unit/broker/logged.h"
#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#include <stdio.h>
#include <string.h>

#include "broker/core/lifecycle.h"
#include "common/clock.h"

#define S  CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

START_TEST(another_worker_goes_on_where_one_died)
{
    struct logged logged;
    struct request *request = run_on_first('r', NULL);
    make(request, 3);
    logged_begin(&logged);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    ck_assert_ptr_nonnull(strstr(logged_end(&logged), "info moving 1 request of worker-0\n"));
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    ck_assert_uint_eq(request->epoch.move, 1);
    ck_assert_uint_eq(request->n_lost, 1);
    ck_assert_uint_eq(broker->counters.moved, 1);
    ck_assert_uint_eq(broker->admission.queued, 1);
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    struct message assign = worker_hears(1);
    ck_assert_int_eq(assign.kind, MESSAGE_ASSIGN);
    ck_assert_uint_eq(assign.assign.epoch.move, 1);
    ck_assert_uint_eq(assign.assign.generation.output.n, 3);
    ck_assert_uint_eq(assign.assign.generation.off, 3);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_NONE);
    make(request, 2);
    inside_produce(request, 0, END_STOP);
    expect_end(0, 5, END_STOP);
}
END_TEST

static void with_a_top_k(struct generation *generation)
{
    generation->sampling.top_k = 7;
}

/* Its second worker, of a pool that was told otherwise meanwhile, would give it other parameters. */
START_TEST(a_moved_request_keeps_the_parameters_that_it_left_out)
{
    sampling_defaults_read(BYTES_LITERAL("temperature=0.6:model top_k=5:pool"), &broker->workers[0].defaults);
    sampling_defaults_read(BYTES_LITERAL("temperature=0.9:pool top_p=0.5:pool"),
                           &broker->workers[1].defaults);
    struct request *request = run_on_first('r', with_a_top_k);
    make(request, 3);
    lifecycle_worker_lost(broker, &broker->workers[0], false, "it died");
    broker->workers[0].state = WORKER_STARTING;
    lifecycle_dispatch(broker);
    const struct sampling sampling = worker_hears(1).assign.generation.sampling;
    ck_assert_double_eq(sampling.temperature, 0.6);
    ck_assert_double_eq(sampling.top_p, 1);
    ck_assert_uint_eq(sampling.top_k, 7);
    ck_assert(sampling_real_is_left(sampling.min_p)); /* the same in both: it is not said */
}
END_TEST

START_TEST(what_kills_three_workers_ends)
{
    struct request *request = run_on_first('r', NULL);
    for (unsigned i = 1; i <= 2; i++) {
        lifecycle_worker_lost(broker, request->worker, false, "it died");
        ck_assert_uint_eq(request->n_lost, i);
        ck_assert_uint_eq(request->epoch.move, i);
        lifecycle_dispatch(broker);
        ck_assert_int_eq(request->state, REQUEST_RUNNING);
    }
    char text[100];
    snprintf(text, sizeof text, "%s: it died; 2 workers running this request had died before",
             request->worker->name);
    lifecycle_worker_lost(broker, request->worker, false, "it died");
    expect_failure(0, 0, PROTO_WORKER_LOST, text);
    ck_assert_uint_eq(broker->counters.moved, 2);
}
END_TEST

START_TEST(a_worker_that_left_has_lost_only_what_it_had_begun)
{
    struct request *fresh = run_on_first('f', NULL), *begun = run_on_first('b', NULL);
    struct request *cancelled = run_on_first('c', NULL);
    make(begun, 1);
    lifecycle_cancel(broker, cancelled);
    lifecycle_worker_lost(broker, &broker->workers[0], true, "");
    ck_assert_int_eq(fresh->state, REQUEST_QUEUED);
    ck_assert_uint_eq(fresh->n_lost, 0);
    ck_assert_uint_eq(fresh->epoch.move, 0);
    ck_assert_int_eq(begun->state, REQUEST_QUEUED);
    ck_assert_uint_eq(begun->n_lost, 1);
    ck_assert_uint_eq(begun->epoch.move, 1);
    expect_end(0, 0, END_CANCELLED);
    ck_assert_ptr_eq(inside_find(0, 'c'), cancelled);
}
END_TEST

/* A worker that is told to end publishes this for what it has. */
static void give_back(const struct request *request)
{
    struct frame frame = {.id = request->home.id,
                          .epoch = request->epoch,
                          .seq = request->log.count,
                          .off = request->log.text_bytes,
                          .has_end = true,
                          .end = {.reason = END_ERROR, .error = PROTO_DRAINING}};
    worker_publishes((int)request->worker->index, request->home.session, &frame);
}

START_TEST(what_a_worker_gives_back_waits_for_another)
{
    struct request *fresh = run_on_first('f', NULL), *begun = run_on_first('b', NULL);
    struct request *cancelled = run_on_first('c', NULL);
    make(begun, 1);
    lifecycle_cancel(broker, cancelled);
    give_back(fresh);
    give_back(begun);
    give_back(cancelled);
    ck_assert_int_eq(broker->workers[0].state, WORKER_DRAINING);
    ck_assert_int_eq(fresh->state, REQUEST_QUEUED);
    ck_assert_uint_eq(fresh->epoch.move, 0);
    ck_assert_int_eq(begun->state, REQUEST_QUEUED);
    ck_assert_uint_eq(begun->epoch.move, 1);
    ck_assert_uint_eq(begun->n_lost, 0);
    ck_assert_uint_eq(begun->log.count, 1);
    expect_end(0, 0, END_CANCELLED);
    ck_assert_uint_eq(broker->counters.moved, 1);
    lifecycle_dispatch(broker);
    ck_assert_ptr_eq(fresh->worker, &broker->workers[1]);
    ck_assert_ptr_eq(begun->worker, &broker->workers[1]);
    ck_assert_int_eq(client_listens(0).kind, MESSAGE_NONE); /* which clients never hear of */
}
END_TEST

/* Worker 0 says that it is ending. */
static void end_worker(void)
{
    const struct message beat = {.kind = MESSAGE_HEARTBEAT, .heartbeat = {.draining = true, .ref = 3}};
    worker_says(0, &beat);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_PONG);
    ck_assert_int_eq(broker->workers[0].state, WORKER_DRAINING);
}

static void expect_relief(bool is_relieved)
{
    struct logged logged;
    logged_begin(&logged);
    lifecycle_relieve(broker);
    const char *said = strstr(logged_end(&logged), "info worker-0 is ending: handing over 1 request\n");
    ck_assert_int_eq(said != NULL, is_relieved);
    struct message drain = worker_hears(0);
    ck_assert_int_eq(drain.kind, is_relieved ? MESSAGE_DRAIN : MESSAGE_NONE);
    ck_assert(!is_relieved || drain.drain.hand_over);
}

START_TEST(a_worker_that_ends_hands_over_once_somebody_can_go_on)
{
    run_on_first('r', NULL);
    expect_relief(false);
    broker->workers[1].digest[0]++; /* it serves something else */
    end_worker();
    inside_pass(10 * S);
    expect_relief(false);
    broker->workers[1].digest[0]--;
    broker->workers[1].context = broker->workers[0].context - 1; /* what runs may not fit there */
    expect_relief(false);
    broker->workers[1].context = broker->workers[0].context;
    broker->workers[1].state = WORKER_LOADING;
    expect_relief(false);
    broker->workers[1].state = WORKER_READY;
    expect_relief(true);
    expect_relief(false); /* it was told */
}
END_TEST

START_TEST(a_worker_that_ends_alone_hands_over_when_its_time_is_up)
{
    run_on_first('r', NULL);
    broker->workers[1].state = WORKER_FAILED;
    end_worker();
    inside_pass(30 * S - 1);
    expect_relief(false);
    inside_pass(1);
    broker->draining = true; /* nobody comes after it */
    expect_relief(false);
    broker->draining = false;
    expect_relief(true);
}
END_TEST

START_TEST(a_worker_that_ends_with_nothing_is_told_nothing)
{
    end_worker();
    inside_pass(100 * S);
    expect_relief(false);
}
END_TEST

/* ---- what an earlier broker had given ---- */

START_TEST(a_worker_of_an_earlier_broker_is_told_again_what_it_has)
{
    struct request *running = run_on_first('r', NULL), *cancelled = run_on_first('c', NULL);
    lifecycle_cancel(broker, cancelled);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_CANCEL);
    lifecycle_adopted(broker, &broker->workers[0]);
    struct message said = worker_hears(0);
    ck_assert_int_eq(said.kind, MESSAGE_ASSIGN);
    ck_assert_mem_eq(&said.assign.id, &running->home.id, 16);
    said = worker_hears(0);
    ck_assert_int_eq(said.kind, MESSAGE_ASSIGN);
    ck_assert_mem_eq(&said.assign.id, &cancelled->home.id, 16);
    said = worker_hears(0);
    ck_assert_int_eq(said.kind, MESSAGE_CANCEL);
    ck_assert_mem_eq(&said.cancel.id, &cancelled->home.id, 16);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_NONE);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, inside_set_up, inside_tear_down);
    tcase_add_test(tests, another_worker_goes_on_where_one_died);
    tcase_add_test(tests, a_moved_request_keeps_the_parameters_that_it_left_out);
    tcase_add_test(tests, what_kills_three_workers_ends);
    tcase_add_test(tests, a_worker_that_left_has_lost_only_what_it_had_begun);
    tcase_add_test(tests, what_a_worker_gives_back_waits_for_another);
    tcase_add_test(tests, a_worker_that_ends_hands_over_once_somebody_can_go_on);
    tcase_add_test(tests, a_worker_that_ends_alone_hands_over_when_its_time_is_up);
    tcase_add_test(tests, a_worker_that_ends_with_nothing_is_told_nothing);
    tcase_add_test(tests, a_worker_of_an_earlier_broker_is_told_again_what_it_has);
}

int main(void)
{
    return run_tests("broker/lifecycle workers", add);
}
