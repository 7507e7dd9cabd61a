/* SPDX-License-Identifier: MIT */
/* Workers that are born and die, as the supervisor tells it: what the books make of it, and what is said. */

#include "broker/processes.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/broker/logged.h"
#include "tests/unit/run.h"

#include <string.h>

#include "broker/core/lifecycle.h"
#include "common/clock.h"
#include "proto/supervision.h"

static struct worker *first;
static struct news news;

static void set_up(void)
{
    inside_set_up();
    first = &broker->workers[0];
    news = (struct news){.kind = NEWS_PLACE, .place.link = "inproc://link-0-next"};
}

/* The supervisor says this of the first place. What is logged of it. */
static const char *tell(enum place_state state, uint32_t incarnation, bool left, const char *reason)
{
    static struct logged logged;
    news.place.state = state;
    news.place.incarnation = incarnation;
    news.place.left = left;
    snprintf(news.place.reason, sizeof news.place.reason, "%s", reason);
    ck_assert_int_eq(supervision_send(inside_orders, &news, sizeof news), 0);
    logged_begin(&logged);
    processes_take(broker);
    return logged_end(&logged);
}

#define ck_assert_said(said, what) ck_assert_msg(strstr(said, what), "%s", said)

START_TEST(a_process_is_expected_as_it_was_started)
{
    news.place.pid = 123;
    strcpy(news.place.stream, "inproc://worker-0-next");
    const char *said = tell(PLACE_STARTING, 2, false, "killed by signal 9");
    ck_assert_said(said, "warn worker-0 died: killed by signal 9; restarting it in 0.0 s");
    ck_assert_int_eq(first->state, WORKER_STARTING);
    ck_assert_uint_eq(first->incarnation, 2);
    ck_assert_str_eq(first->endpoint, "inproc://worker-0-next");
    ck_assert_str_eq(first->link_endpoint, "inproc://link-0-next");
    ck_assert_uint_gt(first->link.len, 0); /* and is connected to, */
    ck_assert_uint_eq(first->peer.len, 0); /* but has not registered */
}
END_TEST

START_TEST(a_place_is_as_empty_as_before_its_first_process)
{
    first->ack_due = first->promised_wseq = first->resend_asked = first->adopted_wseq = 7;
    first->wseq = first->acked_wseq = first->ending_ns = 7;
    first->adopted = first->settled = first->relieved = true;
    news.place.start_at = broker->now + 1500 * CLOCK_NS_PER_MS;
    ck_assert_said(tell(PLACE_WAITING, 1, false, "it crashed"),
                   "warn worker-0 died: it crashed; restarting it in 1.5 s");
    ck_assert_int_eq(first->state, WORKER_ABSENT);
    ck_assert_uint_eq(first->peer.len, 0);
    ck_assert_uint_eq(first->link.len, 0);
    ck_assert_ptr_null(first->stream);
    ck_assert_uint_eq(first->wseq, 0);
    ck_assert_uint_eq(first->acked_wseq, 0);
    ck_assert_uint_eq(first->ack_due, 0);
    ck_assert_uint_eq(first->promised_wseq, 0);
    ck_assert_uint_eq(first->resend_asked, 0);
    ck_assert_uint_eq(first->adopted_wseq, 0);
    ck_assert_uint_eq(first->ending_ns, 0);
    ck_assert(!first->adopted && !first->settled && !first->relieved);
}
END_TEST

START_TEST(a_process_that_cannot_be_reached_is_killed)
{
    uint32_t index;
    strcpy(news.place.link, "nowhere");
    ck_assert_said(tell(PLACE_STARTING, 2, false, "killed by signal 9"), "error worker-0: nowhere: ");
    ck_assert_int_eq(inside_killed(&index), 1);
    ck_assert_uint_eq(index, 0);
    ck_assert_uint_eq(first->link.len, 0);
}
END_TEST

START_TEST(each_death_is_told_as_what_it_was)
{
    ck_assert_said(tell(PLACE_WAITING, 1, true, ""),
                   "info worker-0 has ended as ordered; starting the next one\n");
    tell(PLACE_READY, 2, false, "");
    ck_assert_str_eq(tell(PLACE_GONE, 2, false, "it was stopped"), "");
    ck_assert_int_eq(first->state, WORKER_ABSENT);
    tell(PLACE_READY, 3, false, "");
    broker->any_ready = true;
    ck_assert_said(tell(PLACE_FAILED, 3, false, "not a model"),
                   "error worker-0 failed for good: not a model\n");
    ck_assert_int_eq(first->state, WORKER_FAILED);
}
END_TEST

START_TEST(a_failure_that_may_be_everyones_is_told_once_at_the_end)
{
    broker->any_ready = false; /* nobody ever served */
    ck_assert_str_eq(tell(PLACE_FAILED, 1, false, "not a model"), "");
    tell(PLACE_READY, 2, false, "");
    broker->any_ready = true;
    broker->supervisor.places[1].record.state = PLACE_FAILED; /* it is the last one */
    ck_assert_str_eq(tell(PLACE_FAILED, 2, false, "not a model"), "");
}
END_TEST

START_TEST(what_it_published_before_it_died_counts)
{
    struct request *request = inside_admit(0, 'r', NULL);
    broker->workers[1].state = WORKER_DRAINING;
    lifecycle_dispatch(broker);
    struct request_key home = request->home;
    static const int32_t ids[3];
    struct frame frame = {.id = home.id, .epoch = request->epoch, .ids = {ids, 3}};
    void *stream = first->stream;
    first->stream = NULL; /* not read yet */
    frame.wseq = 1;
    worker_publishes_under(0, &home, &frame);
    ck_assert_uint_eq(request->log.count, 0);
    first->stream = stream;
    struct message question = {.kind = MESSAGE_TOKENIZE, .tokenize = {.ref = 3}};
    question.tokenize.has_text = true;
    question.tokenize.text = BYTES_LITERAL("hi");
    client_says(1, &question);
    ck_assert_said(tell(PLACE_WAITING, 1, false, "it crashed"), "moving 1 request of worker-0");
    ck_assert_uint_eq(request->log.count, 3);
    ck_assert_uint_eq(request->n_lost, 1);
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    struct message no = client_hears(1);
    ck_assert_int_eq(no.error.error, PROTO_WORKER_LOST);
    ck_assert_uint_eq(no.error.ref, 3);
}
END_TEST

START_TEST(who_left_is_not_to_blame_for_what_it_had_not_begun)
{
    struct request *request = inside_admit(0, 'r', NULL);
    broker->workers[1].state = WORKER_DRAINING;
    lifecycle_dispatch(broker);
    tell(PLACE_WAITING, 1, true, "");
    ck_assert_int_eq(request->state, REQUEST_QUEUED);
    ck_assert_uint_eq(request->n_lost, 0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, a_process_is_expected_as_it_was_started);
    tcase_add_test(tests, a_place_is_as_empty_as_before_its_first_process);
    tcase_add_test(tests, a_process_that_cannot_be_reached_is_killed);
    tcase_add_test(tests, each_death_is_told_as_what_it_was);
    tcase_add_test(tests, a_failure_that_may_be_everyones_is_told_once_at_the_end);
    tcase_add_test(tests, what_it_published_before_it_died_counts);
    tcase_add_test(tests, who_left_is_not_to_blame_for_what_it_had_not_begun);
}

int main(void)
{
    return run_tests("broker/processes", add);
}
