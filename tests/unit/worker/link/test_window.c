/* SPDX-License-Identifier: MIT */
/* The window of unacknowledged frames, against a plain list of what was put in. */

#include "tests/unit/run.h"
#include "worker/link/window.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static uint8_t topic_of(uint64_t wseq)
{
    return (uint8_t)(wseq * 7);
}

static struct message frame_of(uint64_t seq, struct bytes text)
{
    struct message message = {.kind = MESSAGE_FRAME};
    message.frame.seq = seq;
    message.frame.text = text;
    return message;
}

static int add(struct window *window, struct bytes text)
{
    uint8_t topic[PROTO_TOPIC_BYTES];
    memset(topic, topic_of(window->last + 1), sizeof topic);
    struct message message = frame_of(1000 + window->last + 1, text);
    return window_add(window, topic, &message);
}

/* Kept frames come back as they were; others do not. */
static void check(const struct window *window, struct message_decoder *decoder, uint64_t wseq)
{
    struct bytes topic, payload;
    struct message message;
    bool kept = wseq > window->acked && wseq <= window->last;
    ck_assert_int_eq(window_get(window, wseq, &topic, &payload), kept);
    if (!kept)
        return;
    ck_assert_uint_eq(topic.len, PROTO_TOPIC_BYTES);
    ck_assert_uint_eq(((const uint8_t *)topic.data)[31], topic_of(wseq));
    ck_assert_int_eq(message_decode(decoder, payload.data, payload.len, &message, NULL), 0);
    ck_assert_uint_eq(message.frame.wseq, wseq);
    ck_assert_uint_eq(message.frame.seq, 1000 + wseq);
}

START_TEST(frames_are_numbered_from_one_and_kept_until_acknowledged)
{
    struct window window = {0};
    struct message_decoder *decoder;
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    for (int i = 0; i < 10; i++)
        ck_assert_int_eq(add(&window, BYTES_LITERAL("text")), 0);
    ck_assert_uint_eq(window_kept(&window), 10);
    window_ack(&window, 4);
    for (uint64_t wseq = 0; wseq < 13; wseq++)
        check(&window, decoder, wseq);
    ck_assert_uint_eq(window_kept(&window), 6);
    message_decoder_free(decoder);
    window_deinit(&window);
}
END_TEST

START_TEST(an_acknowledgement_of_the_past_or_the_future_changes_nothing)
{
    struct window window = {0};
    for (int i = 0; i < 5; i++)
        ck_assert_int_eq(add(&window, (struct bytes){0}), 0);
    window_ack(&window, 3);
    window_ack(&window, 2);
    ck_assert_uint_eq(window_kept(&window), 2);
    window_ack(&window, 6);
    window_ack(&window, UINT64_MAX);
    ck_assert_uint_eq(window_kept(&window), 2);
    window_ack(&window, 5);
    ck_assert_uint_eq(window_kept(&window), 0);
    ck_assert_int_eq(add(&window, (struct bytes){0}), 0);
    ck_assert_uint_eq(window.last, 6);
    window_deinit(&window);
}
END_TEST

START_TEST(a_frame_that_cannot_be_encoded_leaves_no_trace)
{
    struct window window = {0};
    ck_assert_int_eq(add(&window, BYTES_LITERAL("good")), 0);
    size_t len = window.bytes.len;
    ck_assert_int_eq(add(&window, BYTES_LITERAL("\xff")), -EINVAL);
    ck_assert_uint_eq(window.last, 1);
    ck_assert_uint_eq(window.bytes.len, len);
    window_deinit(&window);
}
END_TEST

START_TEST(full_is_said_at_the_bound_and_the_rest_is_still_kept)
{
    struct window window = {0};
    struct message_decoder *decoder;
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    for (uint64_t i = 1; i <= WINDOW_MOST + 100; i++) {
        ck_assert_int_eq(window_is_full(&window), i > WINDOW_MOST);
        ck_assert_int_eq(add(&window, (struct bytes){0}), 0);
    }
    for (uint64_t wseq = 1; wseq <= WINDOW_MOST + 100; wseq += 97)
        check(&window, decoder, wseq);
    window_ack(&window, 100);
    ck_assert(window_is_full(&window));
    window_ack(&window, 101);
    ck_assert(!window_is_full(&window));
    message_decoder_free(decoder);
    window_deinit(&window);
}
END_TEST

START_TEST(whatever_the_order_of_adds_and_acks_what_is_kept_is_right_and_memory_is_bounded)
{
    struct window window = {0};
    struct message_decoder *decoder;
    char text[3000];
    memset(text, 'x', sizeof text);
    ck_assert_int_eq(message_decoder_new(&decoder), 0);
    srand(2);
    for (int round = 0; round < 60000; round++) {
        if (window_kept(&window) < 200)
            ck_assert_int_eq(add(&window, (struct bytes){text, (size_t)rand() % sizeof text}), 0);
        if (rand() % 3 == 0)
            window_ack(&window, window.acked + (uint64_t)rand() % 8);
        check(&window, decoder, window.acked + (uint64_t)rand() % 210);
    }
    ck_assert_uint_lt(window.bytes.cap, 4u << 20); /* 200 frames of 3 kB, twice, and growth by half */
    message_decoder_free(decoder);
    window_deinit(&window);
}
END_TEST

static void add_tests(TCase *tests)
{
    tcase_add_test(tests, frames_are_numbered_from_one_and_kept_until_acknowledged);
    tcase_add_test(tests, an_acknowledgement_of_the_past_or_the_future_changes_nothing);
    tcase_add_test(tests, a_frame_that_cannot_be_encoded_leaves_no_trace);
    tcase_add_test(tests, full_is_said_at_the_bound_and_the_rest_is_still_kept);
    tcase_add_test(tests, whatever_the_order_of_adds_and_acks_what_is_kept_is_right_and_memory_is_bounded);
}

int main(void)
{
    return run_tests("window", add_tests);
}
