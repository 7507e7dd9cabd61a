/* SPDX-License-Identifier: MIT */
/* A real quern-worker with the null backend against a scripted broker: what PROTOCOL.md says of workers. What
 * becomes of prompts is asked in test_prompt.c, how a worker ends in test_endings.c. */

#include "tests/integration/worker/told.h"
#include "tests/unit/run.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zmq.h>

#include "model/convert/synth.h"

START_TEST(a_worker_is_ready_only_after_it_saw_the_subscription)
{
    struct scripted *s = scripted_new(NULL);
    struct message hello = expect(s, MESSAGE_REGISTER);
    ck_assert(bytes_equal(hello.register_.name, BYTES_LITERAL("worker-7")));
    ck_assert_uint_eq(hello.register_.incarnation, 3);
    ck_assert_uint_eq(hello.register_.pid, (uint32_t)s->worker);
    ck_assert(bytes_equal(hello.register_.stream, bytes_of_string(s->stream)));
    ck_assert_uint_eq(hello.register_.context, 4096);
    ck_assert_uint_eq(hello.register_.wseq, 0);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = 1;
    ok.register_ok.subscription.bytes[5] = 77;
    ok.register_ok.heartbeat_ms = 20;
    say(s, &ok);
    zmq_connect(s->sub, s->stream);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, "somebody else's", 15);
    ck_assert(said_nothing(s, 300));
    for (int i = 0; i < WAIT_MS / 20 && s->heartbeats <= 5; i++)
        ck_assert(said_nothing(s, 20));
    ck_assert_uint_gt(s->heartbeats, 5);
    zmq_setsockopt(s->sub, ZMQ_SUBSCRIBE, &ok.register_ok.subscription, 16);
    ck_assert_uint_eq(expect(s, MESSAGE_READY).ready.incarnation, 3);
    struct board_snapshot snapshot;
    int looks = 0;
    do { /* it may be told there a moment later */
        ck_assert(said_nothing(s, 20));
        ck_assert_int_eq(board_read(s->slot, &snapshot), 0);
    } while (snapshot.state != WORKER_READY && ++looks < WAIT_MS / 20);
    ck_assert_int_eq(snapshot.state, WORKER_READY);
    ck_assert_uint_eq(snapshot.pid, (uint32_t)s->worker);
    ck_assert_str_eq(snapshot.device, "null");
    scripted_free(s);
}
END_TEST

START_TEST(a_request_comes_in_contiguous_frames_and_is_the_same_again)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0"));
    handshake(s);
    struct message assign = assignment(1, 5, 200);
    say(s, &assign);
    struct told first = read_request(s, 1);
    ck_assert_uint_eq(first.ids.len, 200);
    ck_assert_uint_eq(first.frames, 200);
    ck_assert_uint_eq(first.last_wseq, 200);
    ck_assert_uint_gt(first.text.len, 199);
    expect(s, MESSAGE_FINISHED);
    assign.assign.id.bytes[0] = 2;
    say(s, &assign);
    struct told second = read_request(s, 2);
    ck_assert_mem_eq(first.ids.data, second.ids.data, 200 * sizeof *first.ids.data);
    expect(s, MESSAGE_FINISHED);
    struct board_snapshot snapshot;
    int looks = 0;
    do { /* it is written now and then */
        ck_assert(said_nothing(s, 20));
        ck_assert_int_eq(board_read(s->slot, &snapshot), 0);
    } while (
        (snapshot.tokens != 400 || snapshot.kv_free != snapshot.kv_total || snapshot.step_started_ns != 0) &&
        ++looks < WAIT_MS / 20);
    ck_assert_uint_eq(snapshot.tokens, 400);
    ck_assert_uint_eq(snapshot.kv_free, snapshot.kv_total);
    ck_assert_uint_eq(snapshot.step_started_ns, 0);
    ck_assert_uint_ge(atomic_load(&s->slot->layers), 400);
    told_deinit(&first);
    told_deinit(&second);
    scripted_free(s);
}
END_TEST

START_TEST(fast_tokens_share_frames_and_none_waits_for_ever)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "50000"));
    handshake(s);
    struct message assign = assignment(1, 5, 3000);
    say(s, &assign);
    struct told told = read_request(s, 1);
    ck_assert_uint_eq(told.ids.len, 3000);
    ck_assert_uint_lt(told.frames, 300);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(text_stop_strings_and_logprobs_are_served)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 300);
    assign.assign.generation.prompt =
        (struct prompt){.form = PROMPT_TEXT, .text = BYTES_LITERAL("Once upon a time")};
    assign.assign.generation.logprobs = 2;
    say(s, &assign);
    struct frame frame;
    struct told whole = {0};
    while (!whole.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.logprobs.width, frame.ids.n ? 2 : 0);
        for (size_t i = 0; i < frame.ids.n; i++)
            ck_assert_int_eq(frame.logprobs.items[2 * i].id, frame.ids.items[i]);
        take_frame(&whole, &frame);
    }
    expect(s, MESSAGE_FINISHED);
    ck_assert_uint_gt(whole.end.usage.prompt_tokens, 2);
    ck_assert_uint_gt(whole.text.len, 40);
    const struct bytes stop = {whole.text.data + 20, 6};
    assign.assign.id.bytes[0] = 2;
    assign.assign.generation.logprobs = 0;
    assign.assign.generation.stop = (struct text_list){&stop, 1};
    say(s, &assign);
    struct told cut = read_request(s, 2);
    ck_assert_int_eq(cut.end.reason, END_STOP);
    ck_assert_uint_le(cut.text.len, 20);
    ck_assert_mem_eq(cut.text.data, whole.text.data, cut.text.len);
    told_deinit(&whole);
    told_deinit(&cut);
    scripted_free(s);
}
END_TEST

START_TEST(unacknowledged_frames_are_sent_again_as_they_were)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0"));
    struct frame frame;
    handshake(s);
    struct message assign = assignment(1, 5, 50), resend = {.kind = MESSAGE_RESEND};
    say(s, &assign);
    struct told first = read_request(s, 1);
    expect(s, MESSAGE_FINISHED);
    resend.resend.wseq = 1;
    say(s, &resend);
    struct told again = read_request(s, 1);
    ck_assert_uint_eq(again.ids.len, 50);
    ck_assert_mem_eq(first.ids.data, again.ids.data, 50 * sizeof *first.ids.data);
    ack(s, 30);
    say(s, &resend);
    for (uint64_t wseq = 31; wseq <= 50; wseq++) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.wseq, wseq);
    }
    ack(s, 50);
    say(s, &resend);
    ck_assert(!next_frame(s, 100, &frame));
    check_serves(s, 2);
    told_deinit(&first);
    told_deinit(&again);
    scripted_free(s);
}
END_TEST

START_TEST(at_a_full_window_no_token_is_made_until_an_acknowledgement)
{
    struct scripted *s = scripted_new(ARGS("--frame-us", "0", "--slots", "16"));
    struct frame frame;
    handshake(s);
    for (uint8_t id = 1; id <= 16; id++) {
        struct message assign = assignment(id, 5, 4000);
        say(s, &assign);
    }
    uint64_t frames = 0;
    while (next_frame(s, frames < WINDOW ? WAIT_MS : 300, &frame))
        ck_assert_uint_eq(frame.wseq, ++frames);
    ck_assert_uint_ge(frames, WINDOW);
    ck_assert_uint_lt(frames, WINDOW + 16);
    ck_assert(said_nothing(s, 50)); /* and it lives */
    ck_assert_uint_gt(s->heartbeats, 0);
    while (frames < 16 * 4000) {
        ack(s, frames);
        while (next_frame(s, 100, &frame))
            ck_assert_uint_eq(frame.wseq, ++frames);
    }
    for (int i = 0; i < 16; i++)
        ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 4000);
    scripted_free(s);
}
END_TEST

START_TEST(a_cancel_ends_its_request_alone)
{
    /* A short window would end them by itself: the frames are large, so all 4000 tokens make few. */
    struct scripted *s = scripted_new(ARGS("--frame-us", "1000", "--ctx", "1000000", "--kv-blocks", "70000"));
    struct frame frame;
    struct told told[3] = {{{0}, {0}, 0, 0, {0}, false}};
    handshake(s);
    for (uint8_t id = 1; id <= 2; id++) {
        struct message assign = assignment(id, 5, 900000);
        say(s, &assign);
    }
    ck_assert(next_frame(s, WAIT_MS, &frame));
    take_frame(&told[frame.id.bytes[0]], &frame);
    struct message cancel = {.kind = MESSAGE_CANCEL};
    cancel.cancel.session.bytes[0] = 1;
    for (uint8_t id = 1; id <= 2; id++) {
        cancel.cancel.id.bytes[0] = id;
        say(s, &cancel);
        while (!told[id].ended) {
            ck_assert(next_frame(s, WAIT_MS, &frame));
            take_frame(&told[frame.id.bytes[0]], &frame);
            ack(s, frame.wseq);
        }
        ck_assert_int_eq(told[id].end.reason, END_CANCELLED);
        ck_assert(!told[3 - id].ended || id == 2);
        struct message finished = expect(s, MESSAGE_FINISHED);
        ck_assert_uint_eq(finished.finished.count, told[id].ids.len);
    }
    cancel.cancel.id.bytes[0] = 99; /* nobody's */
    say(s, &cancel);
    check_serves(s, 3);
    told_deinit(&told[1]);
    told_deinit(&told[2]);
    scripted_free(s);
}
END_TEST

START_TEST(on_a_real_device_a_long_prefill_can_be_cancelled_and_heartbeats_go_on)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--threads", "1"));
    struct frame frame;
    handshake(s);
    struct message assign = assignment(1, 2000, 50), cancel = {.kind = MESSAGE_CANCEL};
    say(s, &assign);
    usleep(5000);
    cancel.cancel.session.bytes[0] = cancel.cancel.id.bytes[0] = 1;
    say(s, &cancel);
    ck_assert(next_frame(s, WAIT_MS, &frame));
    ck_assert(frame.has_end && frame.end.reason == END_CANCELLED);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.count, 0);
    assign = assignment(2, 2000, 5);
    say(s, &assign);
    uint64_t heartbeats = s->heartbeats, layers = atomic_load(&s->slot->layers);
    struct told told = read_request(s, 2);
    ck_assert_uint_eq(told.ids.len, 5);
    expect(s, MESSAGE_FINISHED);
    ck_assert_uint_gt(s->heartbeats, heartbeats);
    ck_assert_uint_ge(atomic_load(&s->slot->layers), layers + 2 * (4 + 2000 / 512));
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(loading_moves_the_counter_that_proves_progress)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--threads", "2"));
    expect(s, MESSAGE_REGISTER);
    /* Seven matrices a layer, and the head. */
    ck_assert_uint_ge(atomic_load(&s->slot->layers), 7 * synth_shape_by_name("tiny")->n_layers + 1);
    scripted_free(s);
}
END_TEST

START_TEST(an_assignment_said_twice_is_one_generation_and_a_newer_epoch_replaces_it)
{
    struct scripted *s = scripted_new(ARGS("--ctx", "1000000", "--kv-blocks", "70000"));
    struct frame frame;
    handshake(s);
    struct message old = assignment(1, 5, 900000);
    say(s, &old);
    say(s, &old);
    ck_assert(next_frame(s, WAIT_MS, &frame));
    ck_assert_uint_eq(frame.epoch.move, 0);
    struct message newer = assignment(1, 5, 30);
    newer.assign.epoch.move = 1;
    say(s, &newer);
    do
        ck_assert(next_frame(s, WAIT_MS, &frame));
    while (frame.epoch.move == 0);
    struct told told = {0};
    take_frame(&told, &frame);
    while (!told.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        ck_assert_uint_eq(frame.epoch.move, 1); /* the old one is silent */
        take_frame(&told, &frame);
    }
    ck_assert_uint_eq(told.ids.len, 30);
    ck_assert_uint_eq(expect(s, MESSAGE_FINISHED).finished.epoch.move, 1);
    ck_assert(said_nothing(s, 100));
    check_serves(s, 2);
    told_deinit(&told);
    scripted_free(s);
}
END_TEST

START_TEST(noise_from_the_broker_harms_nothing)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    uint8_t bytes[300];
    srand(4);
    for (int i = 0; i < 300; i++) {
        size_t len = (size_t)rand() % sizeof bytes;
        for (size_t k = 0; k < len; k++)
            bytes[k] = (uint8_t)rand();
        say_bytes(s, bytes, len, i % 5 == 0);
    }
    say_bytes(s, "\x81\xa1k\xa7unknown", 11, false); /* a map of one: no such kind */
    struct message strange = {.kind = MESSAGE_WELCOME};
    say(s, &strange); /* a kind, but none that is said to workers */
    struct message ping = {.kind = MESSAGE_PING};
    ping.ping.ref = 123;
    say(s, &ping);
    ck_assert_uint_eq(expect(s, MESSAGE_PONG).pong.ref, 123);
    check_serves(s, 1);
    scripted_free(s);
}
END_TEST

START_TEST(of_those_that_wait_for_a_slot_the_highest_priority_starts_first)
{
    struct scripted *s = scripted_new(ARGS("--device", "cpu", "--slots", "1"));
    struct told low = {0}, high = {0};
    struct frame frame;
    handshake(s);
    /* A prefill during which the others arrive. */
    struct message first = assignment(1, 3500, 20), second = assignment(2, 5, 300),
                   third = assignment(3, 5, 20);
    second.assign.generation.priority = -8;
    third.assign.generation.priority = 8;
    say(s, &first);
    say(s, &second);
    say(s, &third);
    while (!high.ended) {
        ck_assert(next_frame(s, WAIT_MS, &frame));
        if (frame.id.bytes[0] == 2)
            take_frame(&low, &frame);
        else if (frame.id.bytes[0] == 3)
            take_frame(&high, &frame);
    }
    ck_assert_uint_eq(low.ids.len, 0);
    told_deinit(&low);
    told_deinit(&high);
    scripted_free(s);
}
END_TEST

START_TEST(a_worker_that_the_broker_does_not_know_registers_again_and_keeps_its_frames)
{
    struct scripted *s = scripted_new(NULL);
    handshake(s);
    struct message assign = assignment(1, 5, 40);
    say(s, &assign);
    struct told first = read_request(s, 1);
    expect(s, MESSAGE_FINISHED);
    struct message unknown = {.kind = MESSAGE_ERROR};
    unknown.error.error = PROTO_HELLO_REQUIRED;
    unknown.error.text = BYTES_LITERAL("expected register first");
    say(s, &unknown);
    ck_assert_uint_eq(expect(s, MESSAGE_REGISTER).register_.wseq, first.last_wseq);
    struct message ok = {.kind = MESSAGE_REGISTER_OK};
    ok.register_ok.boot = 2;
    ok.register_ok.heartbeat_ms = 50;
    say(s, &ok);
    expect(s, MESSAGE_READY);
    struct message resend = {.kind = MESSAGE_RESEND};
    resend.resend.wseq = 1;
    say(s, &resend);
    struct told again = read_request(s, 1);
    ck_assert_uint_eq(again.ids.len, 40);
    told_deinit(&first);
    told_deinit(&again);
    scripted_free(s);
}
END_TEST

static void add(TCase *tests)
{
    tcase_set_timeout(tests, 240);
    tcase_add_test(tests, a_worker_is_ready_only_after_it_saw_the_subscription);
    tcase_add_test(tests, a_request_comes_in_contiguous_frames_and_is_the_same_again);
    tcase_add_test(tests, fast_tokens_share_frames_and_none_waits_for_ever);
    tcase_add_test(tests, text_stop_strings_and_logprobs_are_served);
    tcase_add_test(tests, unacknowledged_frames_are_sent_again_as_they_were);
    tcase_add_test(tests, at_a_full_window_no_token_is_made_until_an_acknowledgement);
    tcase_add_test(tests, a_cancel_ends_its_request_alone);
    tcase_add_test(tests, on_a_real_device_a_long_prefill_can_be_cancelled_and_heartbeats_go_on);
    tcase_add_test(tests, loading_moves_the_counter_that_proves_progress);
    tcase_add_test(tests, an_assignment_said_twice_is_one_generation_and_a_newer_epoch_replaces_it);
    tcase_add_test(tests, noise_from_the_broker_harms_nothing);
    tcase_add_test(tests, of_those_that_wait_for_a_slot_the_highest_priority_starts_first);
    tcase_add_test(tests, a_worker_that_the_broker_does_not_know_registers_again_and_keeps_its_frames);
}

int main(void)
{
    return run_tests("worker", add);
}
