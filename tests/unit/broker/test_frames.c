/* SPDX-License-Identifier: MIT */
/* Frames of workers: what counts, what is asked for again, what ends a request, and what an earlier broker
 * took. */

#include "broker/frames.h"

#include <string.h>

#include "broker/core/lifecycle.h"
#include "broker/from_workers.h"
#include "common/clock.h"
#include "tests/unit/broker/inside.h"
#include "tests/unit/broker/running.h"
#include "tests/unit/run.h"

#define S  CLOCK_NS_PER_S
#define MS CLOCK_NS_PER_MS

static struct worker *first;

static void set_up(void)
{
    inside_set_up();
    first = &broker->workers[0];
}

/* The next frame of this request, with so many ids and a byte of text for each. */
static struct frame frame_of(const struct request *request, unsigned n)
{
    static const int32_t ids[16];
    return (struct frame){.id = request->home.id,
                          .epoch = request->epoch,
                          .seq = request->log.count,
                          .off = request->log.text_bytes,
                          .ids = {ids, n},
                          .text = {"abcdefghijklmnop", n}};
}

static void publish(const struct request *request, const struct frame *frame)
{
    worker_publishes(0, request->home.session, frame);
}

START_TEST(a_frame_counts_once_and_a_gap_is_asked_for)
{
    struct request *request = run_on_first('r', NULL);
    struct frame frame = frame_of(request, 2);
    publish(request, &frame);
    ck_assert_uint_eq(first->wseq, 1);
    ck_assert(request->prefilled);
    ck_assert_uint_eq(broker->counters.tokens, 2);
    frame.wseq = 1; /* again */
    publish(request, &frame);
    ck_assert_uint_eq(request->log.count, 2);
    expect_nothing(0);
    frame = frame_of(request, 1);
    frame.wseq = 3; /* one is missing */
    publish(request, &frame);
    ck_assert_uint_eq(request->log.count, 2);
    struct message resend = worker_hears(0);
    ck_assert_int_eq(resend.kind, MESSAGE_RESEND);
    ck_assert_uint_eq(resend.resend.wseq, 2);
    frame.wseq = 2;
    publish(request, &frame);
    ck_assert_uint_eq(request->log.count, 3);
    ck_assert_uint_eq(first->resend_asked, 0);
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 2);
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 1);
    ck_assert_int_eq(client_listens(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(a_worker_that_breaks_a_request_is_killed)
{
    enum { SEQ, OFF, ID, VECTOR, CASES };
    for (int wrong = 0; wrong < CASES; wrong++) {
        uint32_t index = 9;
        struct request *request = run_on_first((uint8_t)('1' + wrong), NULL);
        struct frame frame = frame_of(request, 2);
        const uint64_t before = first->wseq;
        frame.seq += wrong == SEQ;
        frame.off += wrong == OFF;
        if (wrong == VECTOR) {
            frame.ids.n = frame.text.len = 0;
            frame.has_end = true;
            frame.end.reason = END_STOP;
            request->embed = true;
            first->embedding = 4;
        }
        if (wrong == ID)
            worker_publishes_under(0, &request->home, &(struct frame){.epoch = frame.epoch});
        else
            publish(request, &frame);
        ck_assert_int_eq(inside_killed(&index), 1);
        ck_assert_uint_eq(index, 0);
        ck_assert_ptr_null(first->stream);
        ck_assert_uint_eq(first->wseq, before);
        ck_assert_uint_eq(request->log.count, 0);
        worker_registers(0, before, before);
        lifecycle_cancel(broker, request);
        lifecycle_end_here(broker, request, &(struct ending){.reason = END_CANCELLED});
        first->embedding = 0;
        while (worker_hears(0).kind != MESSAGE_NONE || client_hears(0).kind != MESSAGE_NONE)
            ;
    }
}
END_TEST

START_TEST(frames_of_what_is_not_its_own_are_passed_over)
{
    struct request *request = run_on_first('r', NULL);
    struct frame frame = frame_of(request, 1);
    uint32_t index;
    frame.epoch.move++; /* another attempt */
    publish(request, &frame);
    frame = frame_of(request, 1);
    worker_publishes(1, request->home.session, &frame);
    ck_assert_uint_eq(request->log.count, 0);
    ck_assert_uint_eq(first->wseq, 1);
    expect_nothing(0);
    frame.id = inside_id('x'); /* nobody's: it is to stop */
    publish(request, &frame);
    struct message cancel = worker_hears(0);
    ck_assert_int_eq(cancel.kind, MESSAGE_CANCEL);
    ck_assert_uint_eq(cancel.cancel.id.bytes[0], 'x');
    frame.has_end = true; /* it has stopped */
    publish(request, &frame);
    expect_nothing(0);
    ck_assert_int_eq(inside_killed(&index), 0);
}
END_TEST

START_TEST(frames_are_acknowledged_within_twenty_milliseconds)
{
    struct request *request = run_on_first('r', NULL);
    struct frame frame = frame_of(request, 1);
    publish(request, &frame);
    expect_nothing(0);
    broker->now += 10 * MS;
    frame = frame_of(request, 1);
    publish(request, &frame);
    broker->now += 10 * MS - 1;
    frames_drain(broker, first);
    expect_nothing(0);
    broker->now++;
    frames_drain(broker, first);
    struct message ack = worker_hears(0);
    ck_assert_int_eq(ack.kind, MESSAGE_ACK);
    ck_assert_uint_eq(ack.ack.wseq, 2);
    broker->now += S;
    frames_drain(broker, first);
    expect_nothing(0);
}
END_TEST

START_TEST(many_frames_are_acknowledged_at_once)
{
    enum { AT_ONCE = 256 };
    struct request *request = run_on_first('r', NULL);
    for (int i = 0; i < AT_ONCE; i++) {
        const struct frame frame = frame_of(request, 0);
        expect_nothing(0);
        publish(request, &frame);
    }
    ck_assert_uint_eq(worker_hears(0).ack.wseq, AT_ONCE);
}
END_TEST

START_TEST(a_vector_is_for_who_asks_for_it)
{
    static const float numbers[4] = {1};
    struct request *request = run_on_first('r', NULL);
    struct frame frame = {.id = request->home.id, .epoch = request->epoch, .has_end = true};
    request->embed = true;
    first->embedding = 4;
    frame.end.reason = END_STOP;
    frame.embedding = (struct bytes){numbers, sizeof numbers};
    publish(request, &frame);
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    ck_assert_int_eq(client_hears(0).kind, MESSAGE_END);
    ck_assert_int_eq(client_listens(0).kind, MESSAGE_NONE);
}
END_TEST

START_TEST(a_request_that_outgrows_the_journal_ends)
{
    struct request *request = run_on_first('r', NULL);
    broker->journal.limit = broker->journal.used;
    for (int i = 0; i < 10000 && request->state == REQUEST_RUNNING; i++) {
        const struct frame frame = frame_of(request, 16);
        publish(request, &frame);
    }
    ck_assert_int_eq(request->state, REQUEST_ENDED);
    struct message end = client_hears(0), said;
    ck_assert_int_eq(end.end.end.error, PROTO_INTERNAL);
    ck_assert_text(end.end.end.text, "no room in the journal");
    while ((said = worker_hears(0)).kind == MESSAGE_ACK)
        ;
    ck_assert_int_eq(said.kind, MESSAGE_CANCEL);
}
END_TEST

/* Worker 0 registers as one that has made 4 frames for an earlier broker, which acknowledged 2. */
static void adopt(void)
{
    frames_close(first);
    first->state = WORKER_STARTING;
    first->peer.bytes[0] ^= 1;
    worker_registers(0, 4, 2);
}

START_TEST(a_worker_is_asked_for_what_an_earlier_broker_may_have_missed)
{
    struct request *request = run_on_first('r', NULL);
    struct frame frame = frame_of(request, 2);
    publish(request, &frame); /* which the earlier one took, but did not acknowledge */
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 2);
    adopt();
    ck_assert(first->adopted && !first->settled);
    ck_assert_uint_eq(first->wseq, 2);
    ck_assert_uint_eq(first->adopted_wseq, 4);
    struct message resend = worker_hears(0);
    ck_assert_int_eq(resend.kind, MESSAGE_RESEND);
    ck_assert_uint_eq(resend.resend.wseq, 3);
    frame.wseq = 3; /* the same, again */
    publish(request, &frame);
    ck_assert_uint_eq(request->log.count, 2);
    ck_assert(!first->settled);
    frame = frame_of(request, 1);
    frame.wseq = 4; /* it had not come */
    publish(request, &frame);
    ck_assert_uint_eq(request->log.count, 3);
    ck_assert(first->settled);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_ASSIGN); /* is said again, once */
    expect_nothing(0);
    ck_assert_uint_eq(client_listens(0).frame.ids.n, 1);
}
END_TEST

/* A frame may bring ids without text, or text without ids. */
START_TEST(what_an_earlier_broker_took_is_known_by_its_ids_or_by_its_text)
{
    uint32_t index;
    struct request *request = run_on_first('r', NULL);
    struct frame frame = frame_of(request, 2), last = frame;
    publish(request, &frame);
    last = frame_of(request, 1);
    if (_i == 0)
        last.text.len = 0;
    else
        last.ids.n = 0;
    publish(request, &last);
    adopt();
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_RESEND);
    frame.wseq = 3;
    last.wseq = 4;
    publish(request, &frame);
    publish(request, &last);
    ck_assert_int_eq(inside_killed(&index), 0);
    ck_assert_uint_eq(request->log.count, _i == 0 ? 3 : 2);
    ck_assert_uint_eq(request->log.text_bytes, _i == 0 ? 2 : 3);
    ck_assert(first->settled);
    ck_assert_int_eq(worker_hears(0).kind, MESSAGE_ASSIGN);
}
END_TEST

START_TEST(a_worker_without_anything_has_nothing_to_be_told)
{
    frames_close(first);
    first->state = WORKER_STARTING;
    first->peer.bytes[0] ^= 1;
    worker_registers(0, 0, 0);
    ck_assert(!first->adopted);
    expect_nothing(0);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, set_up, inside_tear_down);
    tcase_add_test(tests, a_frame_counts_once_and_a_gap_is_asked_for);
    tcase_add_test(tests, a_worker_that_breaks_a_request_is_killed);
    tcase_add_test(tests, frames_of_what_is_not_its_own_are_passed_over);
    tcase_add_test(tests, frames_are_acknowledged_within_twenty_milliseconds);
    tcase_add_test(tests, many_frames_are_acknowledged_at_once);
    tcase_add_test(tests, a_vector_is_for_who_asks_for_it);
    tcase_add_test(tests, a_request_that_outgrows_the_journal_ends);
    tcase_add_test(tests, a_worker_is_asked_for_what_an_earlier_broker_may_have_missed);
    tcase_add_loop_test(tests, what_an_earlier_broker_took_is_known_by_its_ids_or_by_its_text, 0, 2);
    tcase_add_test(tests, a_worker_without_anything_has_nothing_to_be_told);
}

int main(void)
{
    return run_tests("frames", add);
}
