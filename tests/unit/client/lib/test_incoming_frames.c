/* SPDX-License-Identifier: MIT */
/* What libquern makes of frames, of pages of a replay, and of ends, whatever is missing or comes again; and
 * how much it takes at once. */

#include "tests/unit/client/lib/bare.h"
#include "tests/unit/run.h"

#include <errno.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#include "client/lib/requests/delivery.h"
#include "client/lib/incoming.h"
#include "client/lib/requests/request.h"

static struct bytes encode_frame(const struct frame *frame)
{
    return bare_encode(&(struct message){.kind = MESSAGE_FRAME, .frame = *frame});
}

static void take_frame(const struct frame *frame)
{
    struct message message;
    const struct bytes wire = encode_frame(frame);
    ck_assert_int_eq(message_decode(client->frame_decoder, wire.data, wire.len, &message, NULL), 0);
    request_frame(client, &message.frame, wire.data, wire.len);
}

static void take_page(const struct request *request, const struct frame *frame, bool done)
{
    struct message page = {.kind = MESSAGE_REPLAY_OK};
    const struct bytes item = frame ? encode_frame(frame) : (struct bytes){"", 0};
    page.replay_ok.id = request->id;
    page.replay_ok.done = done;
    page.replay_ok.frames.items = &item;
    page.replay_ok.frames.n = frame != NULL;
    incoming_message(client, &page);
}

START_TEST(of_a_frame_that_is_known_in_part_the_rest_is_told)
{
    static const int32_t ids[] = {5, 6, 7};
    static const struct token_logprob logprobs[] = {{5, -1}, {50, -2}, {6, -3}, {60, -4}, {7, -5}, {70, -6}};
    static const struct bytes pieces[] = {{"a", 1}, {"b", 1}, {"c", 1}, {"d", 1}, {"e", 1}, {"f", 1}};
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    struct frame frame = {.id = request->id,
                          .ids = {ids, 3},
                          .text = BYTES_LITERAL("abcdef"),
                          .logprobs = {2, logprobs},
                          .pieces = {pieces, 6}};
    request->next = 1;
    request->off = 2;
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_uint_eq(told.index, 1);
    ck_assert_uint_eq(told.n_ids, 2);
    ck_assert_int_eq(told.ids[0], 6);
    ck_assert_int_eq(told.ids[1], 7);
    ck_assert_str_eq(told.text, "cdef");
    ck_assert_uint_eq(told.n_logprobs, 2);
    ck_assert_int_eq(told.logprobs[0].id, 6);
    ck_assert_float_eq(told.logprobs[3].logprob, -6);
    ck_assert_mem_eq(told.pieces->bytes, "c", 1);
    ck_assert_uint_eq(request->next, 3);
    ck_assert_uint_eq(request->off, 6);
    take_frame(&frame); /* again: all of it is known */
    ck_assert_int_eq(told.calls, 1);
    frame.text = BYTES_LITERAL("abcdefg");
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 2);
    ck_assert_uint_eq(told.n_ids, 0);
    ck_assert_str_eq(told.text, "g");
    request->next = 9; /* beyond it all */
    request->off = 20;
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 2);
    ck_assert_uint_eq(request->next, 9);
}
END_TEST

START_TEST(an_end_tells_all_that_the_broker_said_of_it)
{
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    request->seed = 42;
    struct frame frame = {.id = request->id, .has_end = true};
    frame.end = (struct ending){.reason = END_ERROR,
                                .error = PROTO_MODEL_ERROR,
                                .text = BYTES_LITERAL("not\a number"),
                                .usage = {1, 2, 3, 11, 10},
                                .timing = {4, 5, 6, 7, 8, 9}};
    take_frame(&frame);
    ck_assert_int_eq(told.ends, 1);
    ck_assert_int_eq(told.end.reason, QUERN_ERROR);
    ck_assert_str_eq(told.error, "model_error");
    ck_assert_str_eq(told.error_text, "not? number");
    ck_assert_uint_eq(told.end.seed, 42);
    ck_assert_uint_eq(told.end.prompt_tokens, 1);
    ck_assert_uint_eq(told.end.cached_tokens, 2);
    ck_assert_uint_eq(told.end.output_tokens, 3);
    ck_assert_uint_eq(told.end.drafted_tokens, 11);
    ck_assert_uint_eq(told.end.accepted_tokens, 10);
    ck_assert_double_eq(told.end.queue_ms, 4);
    ck_assert_double_eq(told.end.prefill_ms, 5);
    ck_assert_double_eq(told.end.decode_ms, 6);
    ck_assert_double_eq(told.end.prepare_ms, 7);
    ck_assert_double_eq(told.end.wait_ms, 8);
    ck_assert_double_eq(told.end.lookup_ms, 9);
    ck_assert_uint_eq(client->taken.len, sizeof(struct id128)); /* the broker is to be told */
    ck_assert_uint_eq(quern_active(client), 0);
}
END_TEST

/* An end is told on two ways. What it counts comes, or three replays in a row bring nothing. */
START_TEST(an_end_that_was_told_is_believed_after_three_replays_that_bring_nothing)
{
    static const int32_t ids[] = {1, 2};
    for (int complete = 0; complete < 2; complete++) {
        struct told told = {0};
        client->state = SESSION_HELLO;
        bare_open();
        struct request *request = bare_request(REQUEST_SENT, &told);
        struct message end = {.kind = MESSAGE_END};
        end.end.id = request->id;
        end.end.count = complete ? 2 : 3;
        end.end.end.reason = END_LENGTH;
        incoming_message(client, &end);
        ck_assert_int_eq(request->state, REQUEST_LIVE);
        for (int i = 0; i < 4; i++) {
            const struct frame frame = {.id = request->id, .ids = {ids, 2}};
            request->replaying = true;
            take_page(request, i == 1 ? &frame : NULL, true); /* which begins the count anew */
            ck_assert_int_eq(told.ends, i == 3);
            if (i < 3)
                ck_assert(!request->replaying);
        }
        ck_assert_uint_eq(told.index, 2);
        ck_assert_int_eq(told.end.reason, complete ? QUERN_LENGTH : QUERN_ERROR);
        ck_assert_str_eq(told.error_text,
                         complete ? "" : "the pool no longer has the output from token 2 on");
    }
}
END_TEST

START_TEST(a_page_is_followed_by_the_next_if_it_brought_something)
{
    static const int32_t ids[] = {1, 2};
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    const struct frame frame = {.id = request->id, .ids = {ids, 2}};
    take_page(request, &frame, false); /* which nobody asked for */
    ck_assert_int_eq(told.calls, 0);
    request->replaying = true;
    take_page(request, NULL, false);
    ck_assert_says_none();
    take_page(request, &frame, false);
    struct message replay = bare_next();
    ck_assert_int_eq(replay.kind, MESSAGE_REPLAY);
    ck_assert_uint_eq(replay.replay.next, 2);
    ck_assert(request->replaying);
    take_page(request, &frame, false); /* asked for twice: the asking for what is behind it is under way */
    ck_assert_says_none();
    ck_assert(request->replaying);
    take_page(request, NULL, true);
    ck_assert_says_none();
    ck_assert(!request->replaying);
}
END_TEST

START_TEST(a_page_with_a_gap_or_of_another_request_is_the_end)
{
    static const int32_t ids[] = {1, 2};
    static const char foreign[] = "the broker replayed a frame of another request",
                      gap[] = "the pool no longer has the output from token 0 on";
    bare_open();
    for (int i = 0; i < 3; i++) {
        struct told told = {0};
        struct request *request = bare_request(REQUEST_LIVE, &told);
        struct frame frame = {.id = request->id, .ids = {ids, 2}};
        frame.id.bytes[3] ^= i == 0;
        frame.seq = i == 1;
        frame.off = i == 2;
        request->replaying = true;
        take_page(request, &frame, true);
        ck_assert_int_eq(told.ends, 1);
        ck_assert_str_eq(told.error, i == 0 ? "internal" : "worker_lost");
        ck_assert_str_eq(told.error_text, i == 0 ? foreign : gap);
    }
}
END_TEST

/* A worker that another took over from may still publish: live that is not seen, in a page it is good. */
START_TEST(an_older_epoch_counts_in_a_page_only)
{
    static const int32_t ids[] = {1, 2};
    struct told told = {0};
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    struct frame frame = {.id = request->id, .epoch = {1, 1}, .ids = {ids, 2}};
    request->epoch = (struct epoch){1, 2};
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 0);
    request->replaying = true;
    take_page(request, &frame, true);
    ck_assert_int_eq(told.calls, 1);
    ck_assert_uint_eq(request->epoch.move, 2);
    frame.seq = 2;
    frame.epoch.move = 3;
    take_frame(&frame);
    ck_assert_int_eq(told.calls, 2);
    ck_assert_uint_eq(request->epoch.move, 3);
}
END_TEST

/* A flood holds up no timer: of 2,048 messages the sockets are left alone for a while. */
START_TEST(so_much_is_taken_at_once_and_the_rest_later)
{
    enum { EACH = 1900 }; /* fewer than one pipe holds */
    struct told told = {0};
    void *second = zmq_socket(client->context, ZMQ_DEALER);
    ck_assert_int_eq(zmq_bind(second, "inproc://second"), 0);
    ck_assert_int_eq(zmq_connect(client->dealer, "inproc://second"), 0);
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, &told);
    struct message ok = {.kind = MESSAGE_CANCEL_OK, .cancel_ok = {request->id}};
    const struct bytes wire = bare_encode(&ok);
    request->cancels = 2 * EACH;
    for (int i = 0; i < EACH; i++) {
        ck_assert_int_eq(zmq_send(broker, wire.data, wire.len, ZMQ_DONTWAIT), (int)wire.len);
        ck_assert_int_eq(zmq_send(second, wire.data, wire.len, ZMQ_DONTWAIT), (int)wire.len);
    }
    bare_take();
    ck_assert_uint_eq(request->cancels, 2 * EACH - 2048);
    bare_take();
    ck_assert_uint_eq(request->cancels, 0);
    bare_take();
    zmq_close(second);
}
END_TEST

static void take_a_millisecond(void *arg, const struct quern_output *output)
{
    static const struct timespec millisecond = {.tv_nsec = 1000000};
    struct request *request = arg;
    request->tells_admitted = true; /* the next time, too */
    request->off++;
    nanosleep(&millisecond, NULL);
}

/* Nor do callbacks that take their time: after 20 ms the rest of what has come waits for the timers. */
START_TEST(what_slow_callbacks_leave_is_taken_later)
{
    enum { ALL = 200 };
    bare_open();
    struct request *request = bare_request(REQUEST_LIVE, NULL);
    struct message ok = {.kind = MESSAGE_ACCEPTED};
    ok.accepted.id = request->id;
    const struct bytes wire = bare_encode(&ok);
    request->fn = take_a_millisecond;
    request->arg = request;
    request->tells_admitted = true;
    for (int i = 0; i < ALL; i++)
        ck_assert_int_eq(zmq_send(broker, wire.data, wire.len, ZMQ_DONTWAIT), (int)wire.len);
    bare_take();
    ck_assert_uint_lt(request->off, ALL / 2);
    for (int i = 0; i < 4; i++)
        bare_take();
    ck_assert_uint_eq(request->off, ALL);
}
END_TEST

static void add(TCase *tests)
{
    tcase_add_checked_fixture(tests, bare_set_up, bare_tear_down);
    tcase_add_test(tests, of_a_frame_that_is_known_in_part_the_rest_is_told);
    tcase_add_test(tests, an_end_tells_all_that_the_broker_said_of_it);
    tcase_add_test(tests, an_end_that_was_told_is_believed_after_three_replays_that_bring_nothing);
    tcase_add_test(tests, a_page_is_followed_by_the_next_if_it_brought_something);
    tcase_add_test(tests, a_page_with_a_gap_or_of_another_request_is_the_end);
    tcase_add_test(tests, an_older_epoch_counts_in_a_page_only);
    tcase_add_test(tests, so_much_is_taken_at_once_and_the_rest_later);
    tcase_add_test(tests, what_slow_callbacks_leave_is_taken_later);
}

int main(void)
{
    return run_tests("client incoming frames", add);
}
